"""The whole configuration, as a document has it: without secrets, and in an order that no database chooses."""

import base64
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from queueapi.actions.alert_rules import CHANNEL_FIELDS, RULE_FIELDS
from queueapi.alerting.channels import shown_options as shown_channel_options
from queueapi.change_plans import shown
from queueapi.choices import QueueState
from queueapi.configuration.sections import (
    ALERT_CHANNELS,
    ALERT_RULES,
    FORMAT,
    FORMAT_KEY,
    MESSAGE_TYPES,
    PROFILES,
    QUEUES,
    TENANTS,
    Section,
)
from queueapi.handler_options import shown_options
from queueapi.models import AlertChannel, AlertRule, MessageType, Queue, Tenant, TenantProfile

Values = dict[str, Any]


def configuration() -> dict[str, Any]:
    """The same rows give the same document. A queue that is being deleted is left out, and so is what is about it."""
    profiles = TenantProfile.objects.all()
    tenants = Tenant.objects.select_related("profile")
    queues = Queue.objects.exclude(state=QueueState.DELETING).select_related("tenant")
    types = MessageType.objects.prefetch_related("topics", "versions")
    rules = AlertRule.objects.exclude(queue__state=QueueState.DELETING).select_related("tenant", "queue__tenant")
    rules = rules.prefetch_related("channels", "escalation_channels")
    return {
        FORMAT_KEY: FORMAT,
        PROFILES.name: _ordered(PROFILES, map(profile_values, profiles)),
        TENANTS.name: _ordered(TENANTS, map(tenant_values, tenants)),
        QUEUES.name: _ordered(QUEUES, map(queue_values, queues)),
        MESSAGE_TYPES.name: _ordered(MESSAGE_TYPES, map(message_type_values, types)),
        ALERT_CHANNELS.name: _ordered(ALERT_CHANNELS, map(channel_values, AlertChannel.objects.all())),
        ALERT_RULES.name: _ordered(ALERT_RULES, map(rule_values, rules)),
    }


def hidden_versions() -> list[tuple[str, int]]:
    """What tells that a secret was changed, which the document does not show."""
    models: tuple[type[Queue] | type[AlertChannel], ...] = (Queue, AlertChannel)
    rows = itertools.chain.from_iterable(model.objects.order_by("id").values_list("id", "version") for model in models)
    return [(str(row_id), version) for row_id, version in rows]


def profile_values(profile: TenantProfile) -> Values:
    return shown(profile, PROFILES.kinds)


def tenant_values(tenant: Tenant) -> Values:
    return {**shown(tenant, TENANTS.kinds), "profile": tenant.profile.name}


def queue_values(queue: Queue) -> Values:
    options = {"handler_options": _sorted(shown_options(queue)), "custom_properties": _sorted(queue.custom_properties)}
    return {**shown(queue, QUEUES.kinds), "tenant": queue.tenant.name, **options}


def message_type_values(message_type: MessageType) -> Values:
    """With its newest version, as it was given: its sources, or what protoc made of them."""
    newest = next(one for one in message_type.versions.all() if one.version == message_type.version)
    if newest.files:
        description: Values = {"files": _sorted(newest.files)}
    else:
        description = {"descriptor_set": base64.b64encode(bytes(newest.descriptors)).decode()}
    topics = sorted(topic.topic for topic in message_type.topics.all())
    return {"name": message_type.name, "message": message_type.message, "topics": topics, **description}


def channel_values(channel: AlertChannel) -> Values:
    options = _sorted(shown_channel_options(channel.kind, channel.options))
    return {**shown(channel, ALERT_CHANNELS.kinds), "options": options}


def rule_values(rule: AlertRule) -> Values:
    """For many, fetch what they name before."""
    channels = {key: sorted(channel.name for channel in getattr(rule, key).all()) for key in CHANNEL_FIELDS}
    owner = rule.queue.tenant if rule.queue is not None else rule.tenant
    scope = {"tenant": owner and owner.name, "queue": rule.queue and rule.queue.name}
    return {"name": rule.name, "is_default": rule.is_default, **shown(rule, RULE_FIELDS), **scope, **channels}


def _ordered(section: Section, entries: Iterable[Values]) -> list[Values]:
    return sorted(entries, key=lambda values: [(values[key].lower(), values[key]) for key in section.identity])


def _sorted(value: Any) -> Any:
    """Objects by their keys: how a database keeps JSON is its own affair."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list | tuple) else value
