"""Topics and offsets, asked for in bulk: one request for many, wherever the protocol has one."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicMetadata,
)

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProviderUnavailable, UnknownTopic
from queuecore.providers.base import TopicSpec
from queuecore.providers.kafka.codes import NO_LEADERS, NO_SUCH_TOPIC, TOPIC_EXISTS
from queuecore.providers.kafka.connection import Connection
from queuecore.topics import ProviderPartition

_LOOK_AGAIN_S = 0.05
_INTERNAL = "__"

Answer = TypeVar("Answer")


class KafkaAdmin:
    """Safe from any thread. ProviderUnavailable when the brokers do not answer in the connection's time."""

    def __init__(self, connection: Connection, replication_factor: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = connection
        self._replication_factor = replication_factor
        self._clock = clock
        self._client = connection.open(AdminClient, {})

    def create_topics(self, specs: Iterable[TopicSpec]) -> None:
        """Returns when the brokers know the topics and each partition has a leader."""
        wanted = [self._new_topic(spec) for spec in specs]
        if not wanted:
            return
        futures = self._client.create_topics(wanted, request_timeout=self._connection.timeout_s)
        for name, future in futures.items():
            if not _failed_with(TOPIC_EXISTS, future):
                self._answer(future, f"create topic {name}")
        self._wait_for_leaders({topic.topic for topic in wanted})

    def topics(self) -> Mapping[str, TopicSpec]:
        """All but Kafka's own. A retention of -1 is for ever."""
        known = self._known_topics()
        names = sorted(name for name in known if not name.startswith(_INTERNAL))
        retentions = self._retentions(names)
        return {name: TopicSpec(name, len(known[name].partitions), kept_ms) for name, kept_ms in retentions.items()}

    def beginning_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        return self._offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def end_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        return self._offsets(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def committed_offsets(
        self, groups: Mapping[str, Iterable[ProviderPartition]]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        """One request per group, which is what the library has, and all of them at once."""
        futures: dict[str, Future[ConsumerGroupTopicPartitions]] = {}
        for group, partitions in groups.items():
            if wanted := [_kafka(place) for place in dict.fromkeys(partitions)]:
                request = [ConsumerGroupTopicPartitions(group, wanted)]
                futures |= self._client.list_consumer_group_offsets(request, request_timeout=self._connection.timeout_s)
        return {group: self._committed(group, futures.get(group)) for group in groups}

    def check(self, partitions: Iterable[ProviderPartition]) -> None:
        """UnknownTopic unless all of them exist."""
        wanted = set(partitions)
        counts = self._partition_counts({place.topic for place in wanted})
        for place in wanted:
            count = counts[place.topic]
            if place.partition >= count:
                raise UnknownTopic(
                    f"topic {place.topic!r} has partitions 0 to {count - 1}; there is no {place.partition}",
                    topic=place.topic,
                )

    def _new_topic(self, spec: TopicSpec) -> NewTopic:
        settings = {"retention.ms": str(spec.retention_ms)}
        return NewTopic(spec.name, spec.partitions, self._replication_factor, config=settings)

    def _partition_counts(self, names: set[str]) -> dict[str, int]:
        if not names:
            return {}
        timeout_s = self._connection.timeout_s
        futures = self._client.describe_topics(TopicCollection(sorted(names)), request_timeout=timeout_s)
        found = {name: self._answer(future, f"describe topic {name}") for name, future in futures.items()}
        return {name: len(topic.partitions) for name, topic in found.items()}

    def _offsets(self, partitions: Iterable[ProviderPartition], spec: OffsetSpec) -> dict[ProviderPartition, int]:
        wanted = dict.fromkeys(partitions)
        if not wanted:
            return {}
        request = {_kafka(place): spec for place in wanted}
        futures = self._client.list_offsets(request, request_timeout=self._connection.timeout_s)
        if any(_failed_with(NO_LEADERS, future) for future in futures.values()):
            self.check(wanted)
        return {place: self._answer(futures[_kafka(place)], f"ask for offsets of {place}").offset for place in wanted}

    def _committed(
        self, group: str, future: "Future[ConsumerGroupTopicPartitions] | None"
    ) -> dict[ProviderPartition, int]:
        if future is None:
            return {}
        answers = self._answer(future, f"ask for offsets of group {group}").topic_partitions or []
        for answer in answers:
            if answer.error is not None:
                raise self._connection.explain(answer.error, f"ask for offsets of group {group}")
        # A negative offset is Kafka's "none".
        return {ProviderPartition(one.topic, one.partition): one.offset for one in answers if one.offset >= 0}

    def _retentions(self, names: list[str]) -> dict[str, int]:
        """Per topic; one that was removed meanwhile is left out."""
        if not names:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        futures = self._client.describe_configs(resources, request_timeout=self._connection.timeout_s)
        return {
            resource.name: int(self._answer(future, f"describe {resource.name}")["retention.ms"].value)
            for resource, future in futures.items()
            if not _failed_with(NO_SUCH_TOPIC, future)
        }

    def _wait_for_leaders(self, names: set[str]) -> None:
        deadline = self._clock.monotonic() + self._connection.timeout_s
        while not self._have_leaders(names):
            if self._clock.monotonic() > deadline:
                raise ProviderUnavailable(
                    f"topics {', '.join(sorted(names))} were created at Kafka on {self._connection.bootstrap_servers} "
                    f"but have no leader after {self._connection.timeout_s:g} s; look at the brokers' state"
                )
            self._clock.sleep(_LOOK_AGAIN_S)

    def _have_leaders(self, names: set[str]) -> bool:
        known = self._known_topics()
        return all(
            name in known and all(partition.leader >= 0 for partition in known[name].partitions.values())
            for name in names
        )

    def _known_topics(self) -> dict[str, TopicMetadata]:
        """What the brokers tell of all topics; one that is just coming or going has no partitions yet."""
        try:
            told = self._client.list_topics(timeout=self._connection.timeout_s).topics
        except KafkaException as error:
            raise self._connection.explain(error, "list topics") from error
        return {name: topic for name, topic in told.items() if topic.partitions}

    def _answer(self, future: "Future[Answer]", doing: str) -> Answer:
        """The answer, or our error for the library's."""
        try:
            return future.result()
        except KafkaException as error:
            raise self._connection.explain(error, doing) from error


def _failed_with(code: int, future: "Future[Answer]") -> bool:
    """Whether this is how it ended; waits for the end."""
    error = future.exception()
    return isinstance(error, KafkaException) and bool(error.args[0].code() == code)


def _kafka(place: ProviderPartition) -> TopicPartition:
    return TopicPartition(place.topic, place.partition)
