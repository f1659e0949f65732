"""How far groups are: what they have committed, beside where their partitions begin and end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from queuecore.providers.base import QueueAdmin
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
    """Of these groups in these partitions, with three questions to the provider however many there are."""
    wanted = {group: list(dict.fromkeys(places)) for group, places in groups.items()}
    everywhere = list(dict.fromkeys(place for places in wanted.values() for place in places))
    # Committed before end: a lag is then never too small to be true.
    committed = admin.committed_offsets(wanted)
    beginnings, ends = admin.beginning_offsets(everywhere), admin.end_offsets(everywhere)
    return {
        group: {place: Standing(beginnings[place], ends[place], committed[group].get(place)) for place in places}
        for group, places in wanted.items()
    }
