"""The admin as a whole."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kafka import KafkaAdminClient

from queuecore.providers.base import PartitionDescription, TopicDescription
from queuecore.providers.kafka.groups import GroupAdmin
from queuecore.providers.kafka.looking import existing_topics, read_specs
from queuecore.providers.kafka.offsets import beginnings, ends
from queuecore.topics import ProviderPartition


class KafkaAdmin(GroupAdmin):
    """Topics, offsets and groups of one cluster, in bulk."""

    def describe_topics(self, names: Iterable[str]) -> Mapping[str, TopicDescription]:
        """A partition that nobody leads has neither beginning nor end. The size is that of the leader's copy, where
        this client may ask for it."""
        wanted = set(names)
        return self._ask(lambda client: _describe(client, wanted), "describe topics") if wanted else {}


def _describe(client: KafkaAdminClient, names: set[str]) -> dict[str, TopicDescription]:
    topics = existing_topics(client, names)
    specs = read_specs(client, topics)
    partitions = {
        ProviderPartition(name, number): one
        for name in sorted(specs)
        for number, one in enumerate(topics[name].partitions)
    }
    leaders = {place: one.leader for place, one in partitions.items() if one.leader is not None}
    first, last, sizes = beginnings(client, leaders), ends(client, leaders), _sizes(client, leaders)
    described: defaultdict[str, list[PartitionDescription]] = defaultdict(list)
    for place, one in partitions.items():
        described[place.topic].append(
            PartitionDescription(
                place, first.get(place), last.get(place), sizes.get(place), one.leader, one.replicas, one.in_sync
            )
        )
    return {name: TopicDescription(spec, tuple(described[name])) for name, spec in specs.items()}


def _sizes(client: KafkaAdminClient, leaders: Mapping[ProviderPartition, int]) -> dict[ProviderPartition, int]:
    """In bytes, as their leaders tell; where this client may not know, nothing."""
    partitions: defaultdict[str, list[int]] = defaultdict(list)
    for place in leaders:
        partitions[place.topic].append(place.partition)
    copies = (
        (broker["broker"], ProviderPartition(topic["name"], one["partition_index"]), one["partition_size"])
        for broker in client.describe_log_dirs(partitions, sorted(set(leaders.values())))
        for folder in broker["log_dirs"]
        for topic in folder["topics"]
        for one in topic["partitions"]
    )
    return {place: size for broker, place, size in copies if leaders.get(place) == broker}
