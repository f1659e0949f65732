"""What comes most often, of any number of things, in bounded room."""

from collections.abc import Hashable
from typing import Generic, TypeVar

Thing = TypeVar("Thing", bound=Hashable)


class HeavyHitters(Generic[Thing]):
    """Counts by Misra and Gries, in batches: when there are twice as many things as may be kept, all counts are lowered
    by the first that has to go. So none is ever too high, and none too low by more than its share, one in `kept`, of
    all that was counted: what comes more often than that is found. For one thread at a time."""

    __slots__ = ("_counts", "_kept")

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._counts: dict[Thing, int] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, thing: Thing) -> bool:
        return thing in self._counts

    def add(self, thing: Thing, number: int = 1) -> None:
        counts = self._counts
        counts[thing] = counts.get(thing, 0) + number
        if len(counts) > 2 * self._kept:
            self._lower()

    def top(self, number: int) -> list[tuple[Thing, int]]:
        """The most frequent first."""
        return sorted(self._counts.items(), key=lambda one: one[1], reverse=True)[:number]

    def _lower(self) -> None:
        by = sorted(self._counts.values(), reverse=True)[self._kept]
        self._counts = {thing: count - by for thing, count in self._counts.items() if count > by}
