"""What an entry of a configuration document depends on: things of other sections, by their names."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from queueapi.configuration.reading import Entry, Identity, identity_of
from queueapi.configuration.sections import ALERT_CHANNELS, ALERT_RULES, PROFILES, QUEUES, TENANTS, Section
from queueapi.models import AlertChannel, Queue, Tenant, TenantProfile

Spoilt = set[tuple[str, Identity]]
_Parent = tuple[Section, dict[str, Any], QuerySet[Any]]


def is_orphan(entry: Entry, spoilt: Spoilt) -> bool:
    """Whether what it depends on is not there because of a problem that is told already."""
    return any(
        (section.name, identity_of(section, values)) in spoilt and not rows.exists()
        for section, values, rows in _parents(entry)
    )


def _parents(entry: Entry) -> Iterator[_Parent]:
    values = entry.values
    if entry.section is TENANTS and "profile" in values:
        yield PROFILES, {"name": values["profile"]}, TenantProfile.objects.filter(name__iexact=values["profile"])
    if entry.section in (QUEUES, ALERT_RULES) and values.get("tenant") is not None:
        yield TENANTS, {"name": values["tenant"]}, Tenant.objects.filter(name__iexact=values["tenant"])
    if entry.section is ALERT_RULES:
        yield from _of_rule(entry)


def _of_rule(entry: Entry) -> Iterator[_Parent]:
    values = entry.values
    tenant, queue = values.get("tenant"), values.get("queue")
    if tenant is not None and queue is not None:
        rows = Queue.objects.filter(tenant__name__iexact=tenant, name__iexact=queue)
        yield QUEUES, {"tenant": tenant, "name": queue}, rows
    for name in (*values.get("channels", ()), *values.get("escalation_channels", ())):
        yield ALERT_CHANNELS, {"name": name}, AlertChannel.objects.filter(name__iexact=name)
