"""What the topics and groups of notifications are called, and what the topics are like.

An instance has a topic for each service type that it is of, and reads all of them as the only member of one group.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from queuecore.catalogue import CatalogueEntry, Retention, Scope, catalogue
from queuecore.cluster.services import ServiceInfo
from queuecore.config.queue_tree import QueueSettings
from queuecore.providers.base import TopicSpec
from queuecore.topics import ServiceType, TopicPartitionInfo, notification_group, notification_topic

DEFAULT_SETTINGS: Final = QueueSettings()
# Where the catalogue has no topic for a service type's notifications: who was away for longer begins anew anyway.
HOUR: Final = Retention(60 * 60 * 1000, 100 * 1024 * 1024)


def notification_bases(settings: QueueSettings = DEFAULT_SETTINGS) -> Mapping[ServiceType, str]:
    """What the notification topics of each service type begin with, behind the prefix."""
    return {
        ServiceType.TB_CORE: settings.core.topic,
        ServiceType.TB_RULE_ENGINE: settings.rule_engine.topic,
        ServiceType.TB_TRANSPORT: "tb_transport",
        ServiceType.JS_EXECUTOR: "js_eval",
        ServiceType.TB_VC_EXECUTOR: settings.vc.topic,
        ServiceType.EDQS: "edqs",
        ServiceType.TASK_PROCESSOR: "tasks",
    }


def notification_address(
    service_id: str, service_type: ServiceType, settings: QueueSettings = DEFAULT_SETTINGS
) -> TopicPartitionInfo:
    """Where to send what an instance is to be told as one of this type."""
    base = notification_bases(settings)[service_type]
    return TopicPartitionInfo(notification_topic(base, service_id, settings.prefix))


def inbox_addresses(service: ServiceInfo, settings: QueueSettings = DEFAULT_SETTINGS) -> tuple[TopicPartitionInfo, ...]:
    """Where an instance is told anything, its main type's first."""
    # Of two types whose topics are configured to be the same, it is told in one.
    return tuple(
        dict.fromkeys(notification_address(service.service_id, one, settings) for one in service.service_types)
    )


def inbox_group(service: ServiceInfo, settings: QueueSettings = DEFAULT_SETTINGS) -> str:
    """The group as which an instance reads its notifications."""
    base = notification_bases(settings)[service.service_types[0]]
    return notification_group(base, service.service_id, settings.prefix, settings.group_id_style)


def inbox_specs(service: ServiceInfo, settings: QueueSettings = DEFAULT_SETTINGS) -> tuple[TopicSpec, ...]:
    """The topics of its notifications, as they are to be created."""
    families = _families(settings)
    specs = (families[one].member_spec(settings, service.service_id) for one in service.service_types)
    return tuple({spec.name: spec for spec in specs}.values())


def personal_families(settings: QueueSettings = DEFAULT_SETTINGS) -> frozenset[str]:
    """What the names of all topics begin with that are one instance's alone, its id being the rest: notifications, and
    responses to what it asked. Those of edges are none of these."""
    own = [*_families(settings).values(), *(one for one in catalogue(settings) if one.scope is Scope.PER_SERVICE)]
    prefix = f"{settings.prefix}." if settings.prefix else ""
    return frozenset(f"{prefix}{entry.topic}." for entry in own)


def _families(settings: QueueSettings) -> Mapping[ServiceType, CatalogueEntry]:
    return dict(_make_families(settings))


def _make_families(settings: QueueSettings) -> Iterator[tuple[ServiceType, CatalogueEntry]]:
    known = {entry.topic: entry for entry in catalogue(settings)}
    for service_type, base in notification_bases(settings).items():
        topic = f"{base}.notifications"
        other = CatalogueEntry(
            topic, f"Notifications of {service_type}", (service_type,), retention=HOUR, scope=Scope.PER_SERVICE
        )
        yield service_type, known.get(topic, other)
