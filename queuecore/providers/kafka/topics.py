"""Topics: one request for many, wherever the protocol has one."""

from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ConfigurationError, UnknownTopic
from queuecore.providers.base import TopicSpec
from queuecore.providers.kafka.asking import Asking, failed_with
from queuecore.providers.kafka.codes import NO_SUCH_TOPIC, TOPIC_EXISTS
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.topic_settings import from_settings, room_for, to_settings
from queuecore.topics import ProviderPartition

_INTERNAL = "__"


class TopicAdmin(Asking):
    """Each change returns when the brokers show it."""

    def __init__(self, connection: Connection, max_request_size: int, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(connection, clock)
        self._max_request_size = max_request_size

    def create_topics(self, specs: Iterable[TopicSpec]) -> None:
        wanted = _by_name(specs)
        if not wanted:
            return
        new = [self._new_topic(spec) for spec in wanted.values()]
        for name, future in self._client.create_topics(new, request_timeout=self._timeout_s).items():
            if not failed_with(TOPIC_EXISTS, future):
                self._answer(future, f"create topic {name}")
        self._wait_for_leaders(dict.fromkeys(wanted, 1))

    def alter_topics(self, specs: Iterable[TopicSpec]) -> None:
        """Checked first, so that what is refused changes nothing."""
        wanted = _by_name(specs)
        if not wanted:
            return
        counts = self._partition_counts(wanted)
        for name, spec in wanted.items():
            if spec.partitions < counts[name]:
                raise ConfigurationError(
                    f"topic {name!r} has {counts[name]} partitions and cannot have {spec.partitions}; "
                    "make a new topic, or keep them"
                )
        self._alter_settings(wanted.values())
        self._add_partitions([spec for name, spec in wanted.items() if spec.partitions > counts[name]])

    def delete_topics(self, names: Iterable[str]) -> None:
        if not (wanted := sorted(set(names))):
            return
        for name, future in self._client.delete_topics(wanted, request_timeout=self._timeout_s).items():
            if not failed_with(NO_SUCH_TOPIC, future):
                self._answer(future, f"delete topic {name}")
        self._wait_until(lambda: not self._described(wanted), f"topics {', '.join(wanted)} are still there")

    def topics(self) -> Mapping[str, TopicSpec]:
        """All but Kafka's own."""
        try:
            told = self._client.list_topics(timeout=self._timeout_s).topics
        except KafkaException as error:
            raise self._connection.explain(error, "list topics") from error
        # One that is just coming or going has no partitions.
        return self._specs(
            {name: n for name, topic in told.items() if (n := len(topic.partitions)) and not name.startswith(_INTERNAL)}
        )

    def check(self, partitions: Iterable[ProviderPartition]) -> None:
        """UnknownTopic unless all of them exist."""
        wanted = set(partitions)
        counts = self._partition_counts({place.topic for place in wanted})
        for place in wanted:
            count = counts[place.topic]
            if not 0 <= place.partition < count:
                raise UnknownTopic(
                    f"topic {place.topic!r} has partitions 0 to {count - 1}; there is no {place.partition}",
                    topic=place.topic,
                )

    def _specs(self, partition_counts: Mapping[str, int]) -> dict[str, TopicSpec]:
        """As they are set now; a topic that was removed meanwhile is left out."""
        if not partition_counts:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(partition_counts)]
        futures = self._client.describe_configs(resources, request_timeout=self._timeout_s)
        found = {
            resource.name: self._answer(future, f"describe topic {resource.name}")
            for resource, future in futures.items()
            if not failed_with(NO_SUCH_TOPIC, future)
        }
        return {name: from_settings(name, partition_counts[name], entries) for name, entries in found.items()}

    def _partition_counts(self, names: Iterable[str]) -> dict[str, int]:
        """UnknownTopic where one of them does not exist."""
        wanted = set(names)
        found = self._described(wanted)
        if missing := sorted(wanted - found.keys()):
            raise UnknownTopic(f"there is no topic {missing[0]!r}; create the topic first", topic=missing[0])
        return {name: len(topic.partitions) for name, topic in found.items()}

    def _described(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Those of them that exist."""
        if not (wanted := sorted(set(names))):
            return {}
        futures = self._client.describe_topics(TopicCollection(wanted), request_timeout=self._timeout_s)
        return {
            name: self._answer(future, f"describe topic {name}")
            for name, future in futures.items()
            if not failed_with(NO_SUCH_TOPIC, future)
        }

    def _new_topic(self, spec: TopicSpec) -> NewTopic:
        settings = to_settings(spec) | room_for(self._max_request_size)
        return NewTopic(spec.name, spec.partitions, self._connection.options.replication_factor, config=settings)

    def _alter_settings(self, specs: Iterable[TopicSpec]) -> None:
        resources = [
            ConfigResource(ResourceType.TOPIC, spec.name, incremental_configs=_changes(to_settings(spec)))
            for spec in specs
        ]
        futures = self._client.incremental_alter_configs(resources, request_timeout=self._timeout_s)
        for resource, future in futures.items():
            self._answer(future, f"alter topic {resource.name}")

    def _add_partitions(self, specs: list[TopicSpec]) -> None:
        if not specs:
            return
        more = [NewPartitions(spec.name, spec.partitions) for spec in specs]
        for name, future in self._client.create_partitions(more, request_timeout=self._timeout_s).items():
            self._answer(future, f"add partitions to topic {name}")
        self._wait_for_leaders({spec.name: spec.partitions for spec in specs})

    def _wait_for_leaders(self, least_partitions: Mapping[str, int]) -> None:
        self._wait_until(
            lambda: self._have_leaders(least_partitions),
            f"topics {', '.join(sorted(least_partitions))} are known but lack a leader",
        )

    def _have_leaders(self, least_partitions: Mapping[str, int]) -> bool:
        found = self._described(least_partitions)
        return all(
            name in found
            and len(found[name].partitions) >= least
            and all(partition.leader is not None and partition.leader.id >= 0 for partition in found[name].partitions)
            for name, least in least_partitions.items()
        )


def _by_name(specs: Iterable[TopicSpec]) -> dict[str, TopicSpec]:
    return {spec.name: spec for spec in specs}


def _changes(settings: Mapping[str, str]) -> list[ConfigEntry]:
    return [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in settings.items()]
