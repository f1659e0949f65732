"""The admin as a whole."""

from collections.abc import Iterable, Mapping

from queuecore.providers.base import PartitionDescription, TopicDescription, TopicSpec
from queuecore.providers.kafka.groups import GroupAdmin
from queuecore.topics import ProviderPartition


class KafkaAdmin(GroupAdmin):
    """Topics, offsets and groups of one cluster, in bulk."""

    def describe_topics(self, names: Iterable[str]) -> Mapping[str, TopicDescription]:
        specs = self._specs(self._partition_counts(names))
        places = [ProviderPartition(spec.name, number) for spec in specs.values() for number in range(spec.partitions)]
        beginnings, ends = self.beginning_offsets(places), self.end_offsets(places)

        def described(spec: TopicSpec) -> TopicDescription:
            own = (ProviderPartition(spec.name, number) for number in range(spec.partitions))
            return TopicDescription(
                spec, tuple(PartitionDescription(place, beginnings[place], ends[place]) for place in own)
            )

        return {name: described(spec) for name, spec in specs.items()}
