"""Where what the audit is about is to be seen."""

from typing import Final

from django import template
from django.urls import reverse

from queueapi.models import AuditEntry

register = template.Library()

# Under each of these lists, a thing's page has its id for a name.
_LISTS: Final = {
    "alert": "alerts",
    "alert_channel": "alert_channels",
    "alert_rule": "alert_rules",
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
    name = _LISTS.get(entry.object_type)
    return f"{reverse(name)}{entry.object_id}/" if name else ""
