"""Epochs: for which assignment of a partition a consumer acts.

Once a group has committed a partition under one, none of a lower epoch takes effect. Whoever keeps the commits compares
in the turn that stores them; a `Fence` is the consumer's side of it.
"""

from collections import deque
from collections.abc import Collection, Iterable, Set

from queuecore.errors import ConfigurationError, StaleEpoch
from queuecore.providers.base import Epochs
from queuecore.topics import ProviderPartition


def check_epochs(
    partitions: Collection[ProviderPartition] | None, epochs: Epochs | None
) -> dict[ProviderPartition, int]:
    """These, or ConfigurationError for what can be none: below 0, or of a partition that is not asked for by name."""
    for place, epoch in (epochs or {}).items():
        if not isinstance(epoch, int) or epoch < 0:
            raise ConfigurationError(f"{place} has the epoch {epoch!r}; epochs are whole numbers from 0 on")
        if partitions is None or place not in partitions:
            raise ConfigurationError(f"{place} has an epoch and is not asked for; name it among the partitions")
    return dict(epochs or {})


def check_newest(group: str, epochs: Epochs, newest: Epochs) -> None:
    """StaleEpoch where the group has committed one of these under a higher epoch."""
    for place, epoch in epochs.items():
        if epoch < newest.get(place, epoch):
            raise stale_epoch(group, place, epoch, newest[place])


def stale_epoch(group: str, place: ProviderPartition, epoch: int, newest: int) -> StaleEpoch:
    return StaleEpoch(
        f"group {group} has committed {place} in epoch {newest}, and this consumer is in epoch {epoch}: another was "
        "given it since, and goes on; nothing was committed. Ask for a new assignment",
        group=group,
        place=place,
        epoch=epoch,
        newest=newest,
    )


class Fence:
    """Under which epochs one consumer wants its partitions, and under which it holds them. Not safe by itself."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._wanted: dict[ProviderPartition, int] = {}
        # What is held, each under the epoch it was given under, whatever is wanted since; without one it is absent.
        self._held: dict[ProviderPartition, int] = {}
        # Found on being given a partition, and not told yet.
        self._untold: deque[StaleEpoch] = deque()

    def want(self, epochs: Epochs) -> None:
        self._wanted = dict(epochs)
        self._untold.clear()

    def wants(self, partitions: Iterable[ProviderPartition]) -> bool:
        """Whether one of these is to be held under an epoch."""
        return any(place in self._wanted for place in partitions)

    def outdated(self, held: Set[ProviderPartition]) -> frozenset[ProviderPartition]:
        """What is held under another epoch than is wanted now: to be released, and taken anew."""
        return frozenset(place for place in held if self._held.get(place) != self._wanted.get(place))

    def refuse_stale(self, partitions: Iterable[ProviderPartition], newest: Epochs) -> frozenset[ProviderPartition]:
        """Those of these that the group has committed under a higher epoch. `raise_stale` will tell."""
        wanted = self._wanted
        stale = frozenset(one for one in partitions if one in wanted and wanted[one] < newest.get(one, 0))
        for place in sorted(stale):
            self._untold.append(stale_epoch(self._group, place, wanted.pop(place), newest[place]))
        return stale

    def hold(self, partitions: Iterable[ProviderPartition]) -> None:
        """These are held, under the epochs that are wanted now."""
        self._held.update((place, self._wanted[place]) for place in partitions if place in self._wanted)

    def release(self, partitions: Iterable[ProviderPartition]) -> None:
        for place in partitions:
            self._held.pop(place, None)

    def of(self, partitions: Iterable[ProviderPartition]) -> dict[ProviderPartition, int]:
        """The epochs that a commit of these carries."""
        return {place: self._held[place] for place in partitions if place in self._held}

    def raise_stale(self) -> None:
        """StaleEpoch, for one partition at a time."""
        if self._untold:
            raise self._untold.popleft()
