"""What a configuration document has: sections, each a list of entries, and the keys of these."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from django.db.models import Model

from queueapi.actions import alert_channels, alert_rules
from queueapi.actions.queue_checks import CHANGEABLE
from queueapi.actions.tenant_profiles import PROFILE_FIELDS
from queueapi.actions.tenants import TENANT_FIELDS
from queueapi.configuration.values import (
    FILES,
    ID,
    LIST_OF_TEXTS,
    TEXT,
    TEXT_OR_NULL,
    YES_OR_NO,
    Kind,
    kind_of_field,
)
from queueapi.models import AlertChannel, AlertRule, MessageType, Queue, Tenant, TenantProfile

# Rises when a document of the one before would mean something else.
FORMAT: Final = 1
FORMAT_KEY: Final = "format"


@dataclass(frozen=True, slots=True)
class Section:
    """One list of the document.

    thing     what an entry is, in plans and problems
    identity  keys that say which thing is meant, whatever their case
    needed    what else a new thing cannot do without
    kinds     all keys, in the order in which they are written, with what each may hold
    """

    name: str
    thing: str
    identity: tuple[str, ...]
    needed: tuple[str, ...]
    kinds: Mapping[str, Kind] = field(repr=False)


def _kinds(model: type[Model], names: tuple[str, ...], **others: Kind) -> dict[str, Kind]:
    return {name: others[name] if name in others else kind_of_field(model, name) for name in names}


PROFILES: Final = Section(
    "tenant_profiles", "profile", ("name",), (), _kinds(TenantProfile, ("id", *PROFILE_FIELDS), id=ID)
)
TENANTS: Final = Section(
    "tenants",
    "tenant",
    ("name",),
    (),
    _kinds(Tenant, ("id", *TENANT_FIELDS, "state", "reason"), id=ID, profile=TEXT),
)
# What stored messages depend on. The id is not told: nothing outside the database is named after it.
FIXED_OF_QUEUES: Final = ("name", "topic", "service_type", "partitions")
QUEUES: Final = Section(
    "queues",
    "queue",
    ("tenant", "name"),
    ("topic", "handler"),
    _kinds(Queue, ("tenant", *FIXED_OF_QUEUES, *CHANGEABLE), tenant=TEXT),
)
MESSAGE_TYPES: Final = Section(
    "message_types",
    "message type",
    ("name",),
    ("message",),
    _kinds(
        MessageType,
        ("name", "message", "topics", "files", "descriptor_set"),
        topics=LIST_OF_TEXTS,
        files=FILES,
        descriptor_set=TEXT,
    ),
)
ALERT_CHANNELS: Final = Section(
    "alert_channels",
    "alert channel",
    ("name",),
    ("kind", "options"),
    _kinds(AlertChannel, alert_channels.CHANNEL_FIELDS),
)
# What alerts that are open are about. A queue's tenant says whose queue it is.
FIXED_OF_RULES: Final = ("is_default", "metric", "tenant", "queue", "request_topic")
ALERT_RULES: Final = Section(
    "alert_rules",
    "alert rule",
    ("name",),
    ("metric", "threshold"),
    _kinds(
        AlertRule,
        ("name", "is_default", *alert_rules.RULE_FIELDS, *alert_rules.CHANNEL_FIELDS),
        is_default=YES_OR_NO,
        tenant=TEXT_OR_NULL,
        queue=TEXT_OR_NULL,
        channels=LIST_OF_TEXTS,
        escalation_channels=LIST_OF_TEXTS,
    ),
)
# Each depends on those before it.
SECTIONS: Final = (PROFILES, TENANTS, QUEUES, MESSAGE_TYPES, ALERT_CHANNELS, ALERT_RULES)
