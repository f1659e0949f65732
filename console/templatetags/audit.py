"""Where what the audit is about is to be seen."""

from typing import Final
from urllib.parse import urlencode

from django import template
from django.urls import reverse

from console.audit_changes import AuditedChange

register = template.Library()

# Under each of these lists, a thing's page has its id for a name.
_LISTS: Final = {
    "alert": "alerts",
    "alert_channel": "alert_channels",
    "alert_rule": "alert_rules",
    "dead_letter": "dead_letters",
    "isolation_request": "isolation_requests",
    "operation": "operations",
    "queue": "queues",
    "rebalance": "rebalances",
    "replay": "operations",
    "tenant": "tenants",
    "tenant_profile": "tenant_profiles",
    "user": "users",
}

# In these lists all of a thing is told.
_ONLY_LISTED: Final = {"silence": "silences", "token": "tokens"}


@register.filter
def page_of(audited: AuditedChange) -> str:
    """Empty: it has none. What was deleted since is not there."""
    kind = audited.entry.object_type
    if kind == "dead_letter_group":
        return f"{reverse('dead_letters')}?{urlencode({'group': audited.page_id})}"
    if kind in _ONLY_LISTED:
        return reverse(_ONLY_LISTED[kind])
    return f"{reverse(_LISTS[kind])}{audited.page_id}/" if kind in _LISTS else ""
