"""How far groups are: what they have committed, beside where their partitions begin and end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from queuecore.errors import UnknownTopic
from queuecore.providers.base import PartitionDescription, QueueAdmin
from queuecore.topics import ProviderPartition


@dataclass(frozen=True, slots=True)
class Standing:
    """Of one group in one partition. `committed` is None where the group has never committed."""

    beginning: int
    end: int
    committed: int | None

    @property
    def lag(self) -> int | None:
        """How many offsets the group is behind the end; unknown before it has committed."""
        return None if self.committed is None else max(0, self.end - self.committed)


def read_standings(
    admin: QueueAdmin, groups: Mapping[str, Iterable[ProviderPartition]]
) -> dict[str, dict[ProviderPartition, Standing]]:
    """Of these groups in these partitions, with two questions to the provider however many there are. A partition that
    does not exist, or that nobody leads at the moment, is left out: the others are known all the same."""
    wanted = {group: list(dict.fromkeys(places)) for group, places in groups.items()}
    topics = {place.topic for places in wanted.values() for place in places}
    # Committed before end: a lag is then never too small to be true.
    committed = admin.committed_offsets(wanted)
    described = _describe(admin, topics)
    return {
        group: {
            place: Standing(one.beginning, one.end, committed[group].get(place))
            for place in places
            if (one := described.get(place)) is not None and one.beginning is not None and one.end is not None
        }
        for group, places in wanted.items()
    }


def _describe(admin: QueueAdmin, topics: set[str]) -> dict[ProviderPartition, PartitionDescription]:
    """The partitions of those that exist: a topic that does not costs one more question."""
    missing: set[str] = set()
    while there := topics - missing:
        try:
            found = admin.describe_topics(there)
        except UnknownTopic as error:
            if (topic := error.fields.get("topic")) not in there:
                raise
            missing.add(topic)
        else:
            return {one.place: one for topic in found.values() for one in topic.partitions}
    return {}
