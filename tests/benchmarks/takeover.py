"""What a consumer that joins or is killed costs, by what all of them say they were given and when.

The same play for whoever can stage it: three consumers share the partitions, a fourth joins, one is killed, and then
the one that coordinates, if that can be told.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from tests.reliability.journal import Begun

PARTITIONS: Final = 12
EVERY_S: Final = 0.02

# Two windows of a kill together: a quiet time as long is what they are compared with.
_CALM_S: Final = 5.0
_BEFORE_KILL_S, _AFTER_KILL_S = 0.5, 1.5
_BEFORE_CHANGE_S, _AFTER_CHANGE_S = 2.0, 1.0
_PATIENCE_S: Final = 180.0
_LOOK_EVERY_S: Final = 0.2
_FOUNDERS: Final = ("host-1", "host-2", "host-3")
_JOINER: Final = "host-4"

Figures = Mapping[str, float]


class Fleet(Protocol):
    """Consumers in processes of their own, and a message to each partition every EVERY_S."""

    @property
    def coordinator(self) -> str:
        """Whose death is a matter of its own; empty where nobody's is."""

    def start(self, name: str) -> None: ...

    def kill(self, name: str) -> float:
        """When, by this machine's clock."""

    def begun(self) -> Mapping[str, Sequence[Begun]]:
        """What each was given so far."""


class Handled(NamedTuple):
    at: float
    by: str


class Plot:
    """Who was given messages of which partition, and when, as told so far."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._seen: dict[str, int] = {}
        self._of: dict[str, list[Handled]] = {}

    def follow(self) -> None:
        """Hear what has come since."""
        for name, begun in self._fleet.begun().items():
            for one in begun[self._seen.get(name, 0) :]:
                self._of.setdefault(one.partition, []).append(Handled(one.at, name))
            self._seen[name] = len(begun)
        for handled in self._of.values():
            handled.sort()

    def follow_until(self, is_so: Callable[[], bool]) -> None:
        """Looks seldom: what is measured has the same two cores."""
        deadline = time.monotonic() + _PATIENCE_S
        while not is_so():
            if time.monotonic() > deadline:
                raise RuntimeError(f"the consumers did not come that far within {_PATIENCE_S:g} s")
            time.sleep(_LOOK_EVERY_S)
            self.follow()

    def follow_for(self, seconds: float) -> None:
        time.sleep(seconds)
        self.follow()

    def owners(self, at: float) -> dict[str, str]:
        """Who was given a message of each partition last, at that time."""
        found = {partition: bisect_right(handled, (at, "~")) for partition, handled in self._of.items()}
        return {partition: self._of[partition][place - 1].by for partition, place in found.items() if place}

    def is_shared_by(self, names: Collection[str]) -> bool:
        """Whether each has its part."""
        owners = list(self.owners(time.time()).values())
        return all(owners.count(name) == PARTITIONS // len(names) for name in names)

    def gap_s(self, partitions: Iterable[str], since: float, until: float) -> float:
        """The longest time without a message, of any of these partitions, that was not over before or after."""
        longest = 0.0
        for partition in partitions:
            pairs = pairwise(handled.at for handled in self._of[partition])
            longest = max([longest, *(after - before for before, after in pairs if after > since and before < until)])
        return longest

    def first_s(self, partition: str, since: float, by: Collection[str]) -> float | None:
        """When the first of these was given something of it."""
        return next((one.at for one in self._of[partition] if one.at > since and one.by in by), None)

    def last_s(self, partition: str, until: float) -> float:
        return max(one.at for one in self._of[partition] if one.at < until)


def play(fleet: Fleet) -> Figures:
    """Seconds until consumed again, and milliseconds without a message."""
    plot = Plot(fleet)
    for name in _FOUNDERS:
        fleet.start(name)
    plot.follow_until(lambda: plot.is_shared_by(_FOUNDERS))
    plot.follow_for(_AFTER_CHANGE_S)
    since = time.time()
    plot.follow_for(_CALM_S)
    figures = {"quiet_ms": plot.gap_s(plot.owners(since), since, time.time()) * 1000}
    figures |= _join(fleet, plot)
    everyone = {*_FOUNDERS, _JOINER}
    victim = min(everyone - {fleet.coordinator, _JOINER})
    figures |= _kill(fleet, plot, victim, everyone - {victim}, "kill")
    if leader := fleet.coordinator:
        figures |= _kill(fleet, plot, leader, everyone - {victim, leader}, "coordinator")
    return figures


def _join(fleet: Fleet, plot: Plot) -> dict[str, float]:
    since = time.time()
    before = plot.owners(since)
    fleet.start(_JOINER)
    plot.follow_until(lambda: plot.is_shared_by((*_FOUNDERS, _JOINER)))
    plot.follow_for(_AFTER_CHANGE_S)
    after, pauses, change = plot.owners(time.time()), [], []
    for partition in [one for one in before if before[one] != after[one]]:
        begins = plot.first_s(partition, since, [after[partition]]) or time.time()
        ends = plot.last_s(partition, begins)
        pauses.append(begins - ends)
        change += [ends, begins]
    unmoved = [partition for partition in before if before[partition] == after[partition]]
    window = min(change) - _BEFORE_CHANGE_S, max(change) + _AFTER_CHANGE_S
    return {"join_pause_ms": max(pauses) * 1000, "join_others_ms": plot.gap_s(unmoved, *window) * 1000}


def _kill(fleet: Fleet, plot: Plot, victim: str, survivors: set[str], what: str) -> dict[str, float]:
    owners = plot.owners(time.time())
    orphans = [partition for partition, owner in owners.items() if owner == victim]
    at = fleet.kill(victim)

    def again() -> list[float | None]:
        return [plot.first_s(partition, at, survivors) for partition in orphans]

    plot.follow_until(lambda: None not in again())
    taken = max(one for one in again() if one is not None)
    plot.follow_for(_AFTER_CHANGE_S)
    others = [partition for partition in owners if partition not in orphans]
    around_kill = plot.gap_s(others, at - _BEFORE_KILL_S, at + _AFTER_KILL_S)
    around_change = plot.gap_s(others, taken - _BEFORE_CHANGE_S, taken + _AFTER_CHANGE_S)
    return {f"{what}_s": taken - at, f"{what}_others_ms": max(around_kill, around_change) * 1000}


class Stage:
    """Has the play performed once for each round, however many figures of it are asked for."""

    def __init__(self, perform: Callable[[Path], Figures]) -> None:
        self._perform = perform
        self._performed: list[Figures] = []

    def figure(self, name: str) -> Callable[[Path], float]:
        rounds = iter(range(1_000_000))

        def measure(folder: Path) -> float:
            number = next(rounds)
            if number == len(self._performed):
                self._performed.append(self._perform(folder))
            return self._performed[number][name]

        return measure
