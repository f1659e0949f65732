"""Where what the audit is about is to be seen."""

from typing import Final
from urllib.parse import urlencode

from django import template
from django.urls import reverse

from queueapi.models import AuditEntry

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
    "tenant": "tenants",
    "tenant_profile": "tenant_profiles",
    "user": "users",
}


@register.filter
def page_of(entry: AuditEntry) -> str:
    """Empty: it has none. What was deleted since is not there."""
    if entry.object_type == "dead_letter_group":
        return f"{reverse('dead_letters')}?{urlencode({'group': entry.object_id})}"
    name = _LISTS.get(entry.object_type)
    return f"{reverse(name)}{entry.object_id}/" if name else ""
