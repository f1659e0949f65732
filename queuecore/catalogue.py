"""Every topic of the platform: what for, who reads it, how many partitions, how long it keeps what it holds.

To find a topic, look below `catalogue`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final
from uuid import UUID

from queuecore.config.queue_tree import QueueSettings
from queuecore.errors import InvalidName
from queuecore.providers.base import DAY_MS, FOR_EVER, Cleanup, TopicSpec
from queuecore.routing import QueueKey, RoutedQueue
from queuecore.topics import (
    CALCULATED_FIELD_STATES,
    CALCULATED_FIELDS,
    EDGE_QUEUE,
    MAIN_QUEUE,
    ServiceType,
    TopicPartitionInfo,
    check_base_topic,
    check_no_clash,
    member_topic,
    task_topic,
    with_prefix,
)

_CORE: Final = ServiceType.TB_CORE
_RULE_ENGINE: Final = ServiceType.TB_RULE_ENGINE
_TRANSPORT: Final = ServiceType.TB_TRANSPORT
_MB: Final = 1024 * 1024


class Scope(Enum):
    """How many topics an entry stands for: one, or a family with a member for each of these."""

    ALONE = "one"
    PER_SERVICE = "one per service instance"
    PER_EDGE = "one per edge"
    PER_JOB_TYPE = "one per job type"


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a topic keeps what it holds; `FOR_EVER` is no limit."""

    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = 1_000 * _MB
    cleanup: Cleanup = "delete"
    segment_bytes: int = 50 * _MB


WEEK: Final = Retention()
MONTH: Final = Retention(30 * DAY_MS)
QUARTER: Final = Retention(90 * DAY_MS)
SCRIPTS: Final = Retention(DAY_MS, 100 * _MB)
JOBS: Final = Retention(7 * DAY_MS, 100 * _MB)
ENTITY_EVENTS: Final = Retention(DAY_MS, FOR_EVER)
QUERIES: Final = Retention(3 * 60 * 1000)
FIELD_STATE: Final = Retention(FOR_EVER, 100_000 * _MB, "compact")
ENTITY_STATE: Final = Retention(FOR_EVER, FOR_EVER, "compact")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A topic, or a family of topics.

    topic       without the prefix; of a family, what comes before the member
    read_by     the service types that read it
    partitions  of each topic
    queue       the name by which its messages are routed; a family's members are addressed themselves
    is_divided  whether its partitions are topics of their own, unless `use_internal_partition` is set; the others' are
                always inside the one topic, which their readers share as a group
    replicas    of each topic; None: as the provider is set
    """

    topic: str
    purpose: str
    read_by: tuple[ServiceType, ...]
    partitions: int = 1
    retention: Retention = WEEK
    queue: str | None = None
    scope: Scope = Scope.ALONE
    is_divided: bool = False
    replicas: int | None = None

    def specs(self, settings: QueueSettings, *, tenant: UUID | None = None) -> Iterator[TopicSpec]:
        """What to create at the provider, for all tenants or for an isolated one."""
        name = with_prefix(settings.prefix, self.topic)
        if self.is_divided and not settings.partitions.use_internal_partition:
            for number in range(self.partitions):
                yield self._spec(TopicPartitionInfo(name, number, tenant), 1)
        else:
            yield self._spec(TopicPartitionInfo(name, tenant_id=tenant), self.partitions)

    def member_spec(self, settings: QueueSettings, member: str) -> TopicSpec:
        """What to create for one member of the family. InvalidName where its id cannot be part of a topic."""
        return self._spec(TopicPartitionInfo(member_topic(self.topic, member, settings.prefix)), self.partitions)

    def routed(self, settings: QueueSettings) -> RoutedQueue:
        is_inside = settings.partitions.use_internal_partition or not self.is_divided
        return RoutedQueue(with_prefix(settings.prefix, self.topic), self.partitions, use_internal_partition=is_inside)

    def _spec(self, info: TopicPartitionInfo, partitions: int) -> TopicSpec:
        kept = self.retention
        return TopicSpec(
            info.full_topic_name,
            partitions,
            retention_ms=kept.retention_ms,
            retention_bytes=kept.retention_bytes,
            segment_bytes=kept.segment_bytes,
            cleanup=kept.cleanup,
            replication_factor=self.replicas,
        )


def catalogue(settings: QueueSettings, job_types: Iterable[str] = ()) -> tuple[CatalogueEntry, ...]:
    """All of them. Every job type named here or in the settings has an entry of its own. InvalidName where a topic's
    name cannot be, or is another's."""
    entries = (
        *_primary(settings),
        *_javascript(),
        *_entity_queries(settings),
        *_jobs(settings, job_types),
    )
    _check_names(settings.prefix, entries)
    return entries


def _primary(settings: QueueSettings) -> Iterator[CatalogueEntry]:
    core, engine, edge, vc = settings.core, settings.rule_engine, settings.edge, settings.vc
    yield _queue(core.topic, "Core platform messages", _CORE, core.partitions)
    yield _notifications(core.topic, "Direct core service notifications", _CORE)
    main = _queue(engine.topic, "Rule engine processing", _RULE_ENGINE, engine.partitions)
    # Never fewer than all others have: nobody would look for that here.
    yield replace(main, replicas=engine.replication_factor) if _has_more_replicas(settings) else main
    yield _notifications(engine.topic, "Direct rule engine notifications", _RULE_ENGINE)
    yield _notifications("tb_transport", "Transport service notifications", _TRANSPORT)
    yield _shared("tb_transport.api.requests", "Transport API requests", _CORE, "TransportApiRequests", 10)
    yield _responses("tb_transport.api", "Transport API responses", WEEK, _TRANSPORT)
    yield _queue(edge.topic, "Edge device synchronization", _CORE, edge.partitions, EDGE_QUEUE)
    yield _notifications(edge.topic, "Edge service notifications", _CORE)
    yield _family(f"{core.topic}.edge.notifications", "Events for one edge", Scope.PER_EDGE, MONTH, _CORE)
    yield _shared(core.usage_stats_topic, "Usage statistics collection", _CORE, "UsageStats", 1)
    yield _shared(core.ota_topic, "OTA update distribution", _CORE, "OtaPackages", 10)
    yield _shared(core.housekeeper_topic, "Cleanup and maintenance tasks", _CORE, "Housekeeper", 10)
    reprocessing = f"{core.housekeeper_topic}.reprocessing"
    yield _shared(reprocessing, "Failed task reprocessing", _CORE, "HousekeeperReprocessing", 1, QUARTER)
    yield _queue(vc.topic, "Version control operations", ServiceType.TB_VC_EXECUTOR, vc.partitions)
    yield _queue("tb_cf_event", "Calculated field events", _RULE_ENGINE, engine.partitions, CALCULATED_FIELDS)
    yield _queue(
        "tb_cf_state",
        "Calculated field state",
        _RULE_ENGINE,
        engine.partitions,
        CALCULATED_FIELD_STATES,
        FIELD_STATE,
    )


def _has_more_replicas(settings: QueueSettings) -> bool:
    more = settings.rule_engine.replication_factor > settings.kafka.replication_factor
    return settings.type == "kafka" and more


def _javascript() -> Iterator[CatalogueEntry]:
    executor = ServiceType.JS_EXECUTOR
    yield _shared("js_eval.requests", "JavaScript evaluation requests", executor, MAIN_QUEUE, 30, SCRIPTS)
    yield _responses("js_eval", "JavaScript evaluation responses", SCRIPTS, _RULE_ENGINE, _CORE)


def _entity_queries(settings: QueueSettings) -> Iterator[CatalogueEntry]:
    service, count = ServiceType.EDQS, settings.edqs.partitions
    yield _queue("edqs.events", "Entity change events", service, count, "Events", ENTITY_EVENTS)
    yield _queue("edqs.state", "State snapshots", service, count, "State", ENTITY_STATE)
    yield _queue("edqs.requests", "Query requests", service, count, "Requests", QUERIES)
    yield _responses("edqs", "Query responses", QUERIES, _CORE)


def _jobs(settings: QueueSettings, job_types: Iterable[str]) -> Iterator[CatalogueEntry]:
    processor, tasks = ServiceType.TASK_PROCESSOR, settings.tasks
    yield _shared("jobs.stats", "Task execution statistics", _CORE, "JobStats", 1, JOBS)
    yield CatalogueEntry(
        "tasks", "Task queue of a job type", (processor,), tasks.partitions, JOBS, scope=Scope.PER_JOB_TYPE
    )
    counts = {job_type.upper(): tasks.partitions for job_type in job_types} | dict(tasks.partitions_per_type)
    for job_type, count in counts.items():
        yield _queue(task_topic(job_type), f"Tasks of type {job_type}", processor, count, job_type, JOBS)


def _queue(
    topic: str,
    purpose: str,
    reader: ServiceType,
    partitions: int,
    queue: str = MAIN_QUEUE,
    retention: Retention = WEEK,
) -> CatalogueEntry:
    """Its partitions are assigned to the instances of the service."""
    return CatalogueEntry(topic, purpose, (reader,), partitions, retention, queue, is_divided=True)


def _shared(
    topic: str, purpose: str, reader: ServiceType, queue: str, partitions: int, retention: Retention = WEEK
) -> CatalogueEntry:
    """All instances of the service read it as one group."""
    return CatalogueEntry(topic, purpose, (reader,), partitions, retention, queue)


def _notifications(base: str, purpose: str, reader: ServiceType) -> CatalogueEntry:
    return _family(f"{base}.notifications", purpose, Scope.PER_SERVICE, WEEK, reader)


def _responses(base: str, purpose: str, retention: Retention, *readers: ServiceType) -> CatalogueEntry:
    return _family(f"{base}.responses", purpose, Scope.PER_SERVICE, retention, *readers)


def _family(topic: str, purpose: str, scope: Scope, retention: Retention, *readers: ServiceType) -> CatalogueEntry:
    return CatalogueEntry(topic, purpose, readers, retention=retention, scope=scope)


def _check_names(prefix: str, entries: Iterable[CatalogueEntry]) -> None:
    purposes: dict[str, str] = {}
    for entry in entries:
        name = with_prefix(prefix, entry.topic)
        if entry.scope is Scope.ALONE:
            check_base_topic(name)
        if name in purposes:
            raise InvalidName(f"topic {name!r} is for {purposes[name]!r} and for {entry.purpose!r}; rename one")
        purposes[name] = entry.purpose
    check_no_clash(purposes)


def specs(settings: QueueSettings, job_types: Iterable[str] = ()) -> tuple[TopicSpec, ...]:
    """The topics a new installation needs before any service of it starts."""
    alone = (entry for entry in catalogue(settings, job_types) if entry.scope is Scope.ALONE)
    return tuple(spec for entry in alone for spec in entry.specs(settings))


def service_specs(settings: QueueSettings, service_type: ServiceType, service_id: str) -> tuple[TopicSpec, ...]:
    """The topics that one instance of a service reads alone: its notifications, and answers to its requests."""
    return tuple(
        entry.member_spec(settings, service_id)
        for entry in catalogue(settings)
        if entry.scope is Scope.PER_SERVICE and service_type in entry.read_by
    )


def edge_specs(settings: QueueSettings, edge_id: UUID | str) -> tuple[TopicSpec, ...]:
    """The topics that are for one edge alone."""
    return tuple(
        entry.member_spec(settings, str(edge_id)) for entry in catalogue(settings) if entry.scope is Scope.PER_EDGE
    )


def routed_queues(settings: QueueSettings, job_types: Iterable[str] = ()) -> dict[QueueKey, RoutedQueue]:
    """The system's queues, as a routing table wants them."""
    return {
        QueueKey(entry.read_by[0], entry.queue): entry.routed(settings)
        for entry in catalogue(settings, job_types)
        if entry.queue is not None
    }


def with_calculated_fields(
    settings: QueueSettings, queues: Mapping[QueueKey, RoutedQueue]
) -> dict[QueueKey, RoutedQueue]:
    """These queues, and for each rule engine's `Main` its calculated fields' events and states: on as many partitions,
    so that what belongs to an entity stays together."""
    shadows = [entry for entry in catalogue(settings) if entry.queue in {CALCULATED_FIELDS, CALCULATED_FIELD_STATES}]
    made = dict(queues)
    for key, queue in queues.items():
        if key.service_type == _RULE_ENGINE and key.queue == MAIN_QUEUE:
            for entry in shadows:
                routed = replace(entry, partitions=queue.partitions).routed(settings)
                made[key._replace(queue=str(entry.queue))] = routed
    return made
