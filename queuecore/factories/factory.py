"""The factory itself: one class for all kinds."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from queuecore.catalogue import CatalogueEntry, Scope, catalogue, routed_queues
from queuecore.config.queue_options import request_options, response_options
from queuecore.config.queue_tree import QueueSettings
from queuecore.errors import ConfigurationError, NotSupported
from queuecore.factories.channels import Channel
from queuecore.factories.consumers import Consumers
from queuecore.factories.kinds import FactoryKind
from queuecore.factories.producers import Producers
from queuecore.factories.subscribing import subscribing_to
from queuecore.hashing import Entity
from queuecore.providers.base import Provider, QueueConsumer, QueueProducer, TopicSpec
from queuecore.requests import RequestHandler, RequestTemplate, RequestTopics, ResponseTemplate
from queuecore.routing import Router, RoutingTable
from queuecore.topics import (
    SYSTEM_TENANT,
    ServiceType,
    TopicPartitionInfo,
    group_name,
    member_topic,
    notification_group,
    with_prefix,
)

_NOTIFICATIONS = ".notifications"


def router_of(settings: QueueSettings, job_types: Iterable[str] = ()) -> Router:
    """Knows the queues of the catalogue, and those of these job types."""
    queues = routed_queues(settings, job_types)
    return Router(RoutingTable(0, queues, hash_name=settings.partitions.hash_function_name))


@dataclass(frozen=True, slots=True)
class QueueFactory(Producers, Consumers):
    """Makes producers and consumers for one instance of a service. Safe from any thread.

    kind        what it may make
    provider    where the messages live
    settings    names, partitions and retention of the topics
    service_id  which instance: part of the topics that it reads alone
    router      where an entity's messages go
    job_types   those whose tasks it sends, besides those that the settings name
    is_owner    whether the provider is closed with the factory
    """

    kind: FactoryKind
    provider: Provider
    settings: QueueSettings
    service_id: str
    router: Router
    job_types: tuple[str, ...]
    is_owner: bool

    @property
    def name(self) -> str:
        return self.kind.name

    def producer(self, channel: Channel) -> QueueProducer:
        if not self.kind.may_send(channel):
            raise self._not_its_own("send to", channel, [one for one in Channel if self.kind.may_send(one)])
        return self.provider.producer(with_prefix(self.settings.prefix, channel.entry(self.settings).topic))

    def consumer(self, channel: Channel, *, partition: int | None = None, member: str = "") -> QueueConsumer:
        entry = channel.entry(self.settings)
        if not self._may_read(channel):
            raise self._not_its_own("read", channel, [one for one in Channel if self._may_read(one)])
        if partition is not None and not 0 <= partition < entry.partitions:
            raise ConfigurationError(f"{entry.topic} has no partition {partition}; it has {entry.partitions}")
        if entry.scope is Scope.ALONE:
            topic = with_prefix(self.settings.prefix, entry.topic)
        else:
            topic = member_topic(entry.topic, member or self.service_id, self.settings.prefix)
        # Who comes next for the partition takes the place of one that hangs.
        member_id = None if partition is None else f"partition-{partition}"
        consumer = self.provider.consumer(self._group(channel, topic, partition), topic, member_id=member_id)
        if entry.queue is None or not (entry.is_divided or partition is not None):
            return consumer
        infos = self.partitions(channel)
        return subscribing_to(consumer, infos if partition is None else (infos[partition],))

    def requester(self, channel: Channel) -> RequestTemplate:
        if not self.kind.may_send(channel):
            raise self._not_its_own("send to", channel, [one for one in Channel if self.kind.may_send(one)])
        topics = RequestTopics.of(channel, self.settings)
        return RequestTemplate(self.provider, topics, self.service_id, request_options(self.settings))

    def responder(self, channel: Channel, handler: RequestHandler) -> ResponseTemplate:
        if not self._may_read(channel):
            raise self._not_its_own("read", channel, [one for one in Channel if self._may_read(one)])
        topics = RequestTopics.of(channel, self.settings)
        return ResponseTemplate(self.provider, topics, handler, response_options(self.settings))

    def partitions(self, channel: Channel, member: str = "") -> tuple[TopicPartitionInfo, ...]:
        entry = self._entry(channel, member)
        if entry.queue is None:
            return (self._member_address(channel, entry, member),)
        return self.router.get_partitions(entry.read_by[0], entry.queue, SYSTEM_TENANT)

    def address(self, channel: Channel, member: str = "", *, entity: Entity | None = None) -> TopicPartitionInfo:
        entry = self._entry(channel, member)
        if entry.queue is None:
            return self._member_address(channel, entry, member)
        return self.router.resolve(entry.read_by[0], entry.queue, SYSTEM_TENANT, entity)

    def create_topic(self, channel: Channel, member: str) -> None:
        entry = self._entry(channel, member)
        if entry.queue is not None:
            specs = list(entry.specs(self.settings))
        else:
            self._member_address(channel, entry, member)
            specs = [entry.member_spec(self.settings, member)]
        self.provider.admin().create_topics(specs)

    def create_topics(self) -> None:
        """Create what this service reads and sends to; what exists stays as it is."""
        self.provider.admin().create_topics(self._specs())

    def close(self) -> None:
        if self.is_owner:
            self.provider.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _entry(self, channel: Channel, member: str) -> CatalogueEntry:
        """The catalogue's entry: of tasks, that of the job type, which is routed like a queue."""
        entry = channel.entry(self.settings)
        if entry.scope is Scope.PER_JOB_TYPE and member:
            entry = self._tasks().get(member.upper(), entry)
        if entry.scope is Scope.ALONE and member and entry.queue != member.upper():
            raise ConfigurationError(f"{entry.topic} is one topic, not a family; leave {member!r} out")
        return entry

    def _member_address(self, channel: Channel, entry: CatalogueEntry, member: str) -> TopicPartitionInfo:
        if entry.scope is Scope.PER_JOB_TYPE:
            known = ", ".join(sorted(self._tasks())) or "none"
            raise ConfigurationError(
                f"{channel.name} has no job type {member!r}; name one of job_types, of which there are: {known}"
            )
        if not member:
            raise ConfigurationError(f"{entry.topic} is a family of topics ({entry.scope.value}); name the member")
        return TopicPartitionInfo(member_topic(entry.topic, member, self.settings.prefix))

    def _tasks(self) -> dict[str, CatalogueEntry]:
        processor = ServiceType.TASK_PROCESSOR
        entries = catalogue(self.settings, self.job_types)
        return {entry.queue: entry for entry in entries if entry.queue is not None and processor in entry.read_by}

    def _may_read(self, channel: Channel) -> bool:
        return not set(self.kind.serves).isdisjoint(channel.entry(self.settings).read_by)

    def _group(self, channel: Channel, topic: str, partition: int | None) -> str:
        """A topic that one instance reads alone has a group of its own."""
        prefix, style = self.settings.prefix, self.settings.group_id_style
        entry = channel.entry(self.settings)
        if entry.queue is not None:
            return group_name(entry.read_by[0], entry.queue, None, partition, prefix=prefix, style=style)
        if entry.scope is Scope.PER_SERVICE and entry.topic.endswith(_NOTIFICATIONS):
            return notification_group(entry.topic.removesuffix(_NOTIFICATIONS), self.service_id, prefix, style)
        return topic

    def _specs(self) -> list[TopicSpec]:
        specs: list[TopicSpec] = []
        for channel in Channel:
            entry = channel.entry(self.settings)
            if entry.scope is Scope.ALONE and (self.kind.may_send(channel) or self._may_read(channel)):
                specs += entry.specs(self.settings)
            elif entry.scope is Scope.PER_SERVICE and self._may_read(channel):
                specs.append(entry.member_spec(self.settings, self.service_id))
            elif entry.scope is Scope.PER_JOB_TYPE and self.kind.may_send(channel):
                specs += [spec for tasks in self._tasks().values() for spec in tasks.specs(self.settings)]
        return specs

    def _not_its_own(self, doing: str, channel: Channel, allowed: list[Channel]) -> NotSupported:
        names = ", ".join(one.name.lower() for one in allowed)
        return NotSupported(f"{self.name} cannot {doing} {channel.name.lower()}; it can {doing}: {names}")
