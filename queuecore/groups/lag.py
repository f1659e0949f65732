"""How far groups are: what they have committed, beside where their partitions begin and end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from queuecore.errors import UnknownTopic
from queuecore.providers.base import QueueAdmin, TopicDescription
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
    found = describe_existing(admin, topics)
    described = {one.place: one for topic in found.values() for one in topic.partitions}
    return {
        group: {
            place: Standing(one.beginning, one.end, committed[group].get(place))
            for place in places
            if (one := described.get(place)) is not None and one.beginning is not None and one.end is not None
        }
        for group, places in wanted.items()
    }


def describe_existing(admin: QueueAdmin, topics: Iterable[str]) -> Mapping[str, TopicDescription]:
    """Those of these that exist, with one question to the provider: a topic that does not costs one more."""
    there = set(topics)
    while there:
        try:
            return admin.describe_topics(there)
        except UnknownTopic as error:
            if (topic := error.fields.get("topic")) not in there:
                raise
            there.discard(topic)
    return {}
