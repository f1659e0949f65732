"""Topics as the brokers show them: one request for many."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import TopicAuthorizationFailedError, UnknownTopicOrPartitionError, for_code

from queuecore.errors import UnknownTopic
from queuecore.providers.base import TopicSpec
from queuecore.providers.kafka.asking import Asking
from queuecore.providers.kafka.topic_settings import SETTINGS, TOPIC_PROPERTIES, from_settings
from queuecore.topics import ProviderPartition

_INTERNAL = "__"

# As Kafka keeps them, in text.
Settings = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Partition:
    """Brokers by their ids; `leader` is None while nobody leads."""

    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    partitions: tuple[Partition, ...]
    shows_settings: bool

    @property
    def replication_factor(self) -> int:
        """Where partitions differ, the least counts."""
        return min(len(partition.replicas) for partition in self.partitions)

    @property
    def has_leaders(self) -> bool:
        return all(partition.leader is not None for partition in self.partitions)


class TopicLooking(Asking):
    def topics(self) -> Mapping[str, TopicSpec]:
        """All but Kafka's own."""

        def look(client: KafkaAdminClient) -> dict[str, TopicSpec]:
            found = find_topics(client)
            return read_specs(client, {name: one for name, one in found.items() if not name.startswith(_INTERNAL)})

        return self._ask(look, "list topics")

    def topic_names(self, behind: str = "", limit: int | None = None) -> list[str]:
        """All but Kafka's own. Brokers tell all names at once, or none."""
        found = self._ask(find_topics, "list topics")
        return sorted(name for name in found if name > behind and not name.startswith(_INTERNAL))[:limit]

    def check(self, partitions: Iterable[ProviderPartition]) -> None:
        """UnknownTopic unless all of them exist."""
        if wanted := set(partitions):
            self._ask(lambda client: check_existence(client, wanted), "look for topics")


def find_topics(client: KafkaAdminClient, names: Collection[str] | None = None) -> dict[str, Topic]:
    """All topics there are, or those of these."""
    return parse_topics(client.describe_topics(None if names is None else sorted(names)))


def parse_topics(told: Iterable[Mapping[str, Any]]) -> dict[str, Topic]:
    """Those that there are, of a broker's answer."""
    found = {}
    for topic in told:
        code = topic["error_code"]
        # One that is just coming or going has no partitions.
        if code == 0 and topic["partitions"]:
            found[topic["name"]] = _topic(topic)
        elif code not in (0, UnknownTopicOrPartitionError.errno):
            raise for_code(code)
    return found


def existing_topics(client: KafkaAdminClient, names: Collection[str]) -> dict[str, Topic]:
    """UnknownTopic where one of them does not exist."""
    found = find_topics(client, names)
    if missing := sorted(set(names) - found.keys()):
        raise UnknownTopic(f"there is no topic {missing[0]!r}; create the topic first", topic=missing[0])
    return found


def check_existence(client: KafkaAdminClient, places: Collection[ProviderPartition]) -> None:
    """UnknownTopic unless all of them exist."""
    topics = existing_topics(client, {place.topic for place in places})
    for place in places:
        count = len(topics[place.topic].partitions)
        if not 0 <= place.partition < count:
            raise UnknownTopic(
                f"topic {place.topic!r} has partitions 0 to {count - 1}; there is no {place.partition}",
                topic=place.topic,
            )


def read_specs(client: KafkaAdminClient, topics: Mapping[str, Topic]) -> dict[str, TopicSpec]:
    """As they are set now; a topic that was removed meanwhile is left out."""
    return {name: to_spec(name, topics[name], settings) for name, settings in read_settings(client, topics).items()}


def to_spec(name: str, topic: Topic, settings: Settings) -> TopicSpec:
    return from_settings(name, len(topic.partitions), topic.replication_factor, settings)


def read_settings(client: KafkaAdminClient, topics: Mapping[str, Topic]) -> dict[str, Settings]:
    """What their specs are made of; a topic that was removed meanwhile is left out."""
    if not topics:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, [*SETTINGS, *TOPIC_PROPERTIES]) for name in topics]
    found = client.describe_configs(resources, config_filter="all")["topic"]
    kept: dict[str, Settings] = {}
    for name, topic in topics.items():
        if settings := {key: entry["value"] for key, entry in found[name].items()}:
            kept[name] = settings
        elif not topic.shows_settings:
            raise TopicAuthorizationFailedError
    return kept


def _topic(told: Mapping[str, Any]) -> Topic:
    operations = told["authorized_operations"]
    return Topic(
        tuple(_partition(one) for one in sorted(told["partitions"], key=lambda one: one["partition_index"])),
        shows_settings=operations is None or "DESCRIBE_CONFIGS" in operations,
    )


def _partition(told: Mapping[str, Any]) -> Partition:
    leader = told["leader_id"]
    return Partition(leader if leader >= 0 else None, tuple(told["replica_nodes"]), tuple(told["isr_nodes"]))
