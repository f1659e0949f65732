"""A consumer group in memory: its members, their signs of life, and what it has committed."""

import threading
from collections.abc import Iterable, Mapping

from queuecore.errors import GroupActive, NotOwner
from queuecore.groups import GroupState, Wants
from queuecore.providers.base import Epochs
from queuecore.topics import ProviderPartition

# A member that is polling now lives, however long it waits.
_POLLING = float("inf")


class MemoryGroup:
    """Not safe by itself: everything here happens under the storage's lock. Times are the clock's `monotonic`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = GroupState()
        self.committed: dict[ProviderPartition, int] = {}
        # Of what was committed under one: the newest.
        self.epochs: dict[ProviderPartition, int] = {}
        # When each member will have been silent for too long.
        self._deadlines: dict[str, float] = {}
        # What each member waits on when it has nothing to read.
        self._wakes: dict[str, threading.Condition] = {}

    def join(
        self,
        member: str,
        wants: Wants,
        counts: Mapping[str, int],
        wake: threading.Condition,
        member_id: str | None = None,
    ) -> None:
        self.state.join(member, wants, counts, member_id)
        # One that was displaced polls once more to hear of it, and is not waited for.
        self._deadlines = {one: deadline for one, deadline in self._deadlines.items() if self.state.is_member(one)}
        self._deadlines[member] = _POLLING
        self._wakes[member] = wake
        self.wake_members()

    def leave(self, member: str) -> None:
        self._remove([member])

    def release(self, member: str, partitions: Iterable[ProviderPartition]) -> None:
        self.state.release(member, partitions)
        self.wake_members()

    def topics_changed(self, counts: Mapping[str, int]) -> None:
        """Follow topics that grew or, with 0 partitions, are gone with everything committed there."""
        self.forget([place for place in self.committed if counts.get(place.topic) == 0])
        self.state.topics_changed(counts)
        self.wake_members()

    def commit(self, offsets: Mapping[ProviderPartition, int], epochs: Epochs) -> None:
        """Who commits has checked that it may."""
        self.committed.update(offsets)
        self.epochs.update(epochs)

    def forget(self, partitions: Iterable[ProviderPartition]) -> None:
        """What was committed there, and under which epochs."""
        for place in partitions:
            self.committed.pop(place, None)
            self.epochs.pop(place, None)

    def polls(self, member: str) -> None:
        """The member lives until `alive_until` says something else."""
        self.alive_until(member, _POLLING)

    def alive_until(self, member: str, deadline: float) -> None:
        """A sign of life. It brings no member back that is out already."""
        if member in self._deadlines:
            self._deadlines[member] = deadline

    def expire_silent(self, now: float) -> None:
        silent = [member for member, deadline in self._deadlines.items() if deadline <= now]
        if silent:
            self._remove(silent)

    def next_deadline(self) -> float:
        return min(self._deadlines.values(), default=_POLLING)

    def check_owner(self, member: str, partitions: Iterable[ProviderPartition]) -> None:
        """NotOwner unless the member reads all of these now."""
        for place in partitions:
            if not self.state.is_owner(member, [place]):
                raise NotOwner(
                    f"group {self.name} does not hold {place} here; another consumer will get its records",
                    group=self.name,
                )

    def check_nobody_owns(self, partitions: Iterable[ProviderPartition]) -> None:
        """GroupActive where a member reads one of these."""
        for place in partitions:
            if (owner := self.state.owners.get(place)) is not None:
                raise GroupActive(
                    f"{owner} of group {self.name} reads {place}; stop it, then change the offset",
                    group=self.name,
                    member=owner,
                )

    def needs_from(self, place: ProviderPartition) -> int | None:
        """The first offset it has not done; None for a partition it neither has committed nor wants."""
        return self.committed.get(place, 0 if place in self.state.targets else None)

    def wake_members(self) -> None:
        """Have those that wait look again."""
        for wake in self._wakes.values():
            wake.notify_all()

    def _remove(self, members: list[str]) -> None:
        for member in members:
            self._deadlines.pop(member, None)
            self._wakes.pop(member, None)
        self.state.expire(members)
        self.wake_members()
