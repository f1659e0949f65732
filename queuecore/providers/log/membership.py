"""Being a member of a group: joining, giving signs of life, noticing who died, taking and releasing partitions."""

import logging
import os
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from queuecore.clock import Clock
from queuecore.errors import NotOwner, QueueError
from queuecore.groups import GroupState, Wants
from queuecore.groups.members import displaced
from queuecore.providers.base import Epochs
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.files import FileLock
from queuecore.providers.log.groups import Groups
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

NONE: frozenset[ProviderPartition] = frozenset()
# What a death between two writes left behind is noticed after this long.
_LOOK_ANYWAY_S = 5.0


class Membership:
    """One member. For one thread.

    Each member holds a lock on a file of its own and touches it as a sign of life: a killed member's lock is free at
    once, a silent one's file is old. Whoever notices takes the dead member out of the group.
    """

    def __init__(
        self,
        root: Path,
        catalog: Catalog,
        groups: Groups,
        group: str,
        timeout_ms: int,
        clock: Clock,
        member_id: str | None = None,
    ) -> None:
        self._folder = _folder(root, group)
        self._catalog = catalog
        self._groups = groups
        self._group = group
        self._member_id = member_id
        self._is_displaced = False
        self._timeout_s = timeout_ms / 1000
        self._clock = clock
        self._wants = Wants()
        self._lock: FileLock | None = None
        self._touched_at = self._looked_at = 0.0
        self.name = uuid4().hex
        self.version = -1
        self.owned = NONE
        self._others: Set[str] = frozenset()

    @property
    def group(self) -> str:
        return self._group

    @property
    def member_id(self) -> str | None:
        return self._member_id

    @property
    def is_displaced(self) -> bool:
        """Whether the last look showed another member with our id."""
        return self._is_displaced

    def join(self, wants: Wants) -> None:
        """Come in, or want something else: the next look tells what that changes."""
        is_new = self._lock is None
        if is_new:
            self._announce()
        with self._groups.turn(self._group) as state:
            self._take_out_the_dead(state)
            if not is_new and not state.is_member(self.name):
                self._announce()  # we were taken for dead, and our file with us
            state.join(self.name, wants, self._counts(wants), self._member_id)
        self._wants = wants
        self._is_displaced = False

    def want_no_longer(self, partitions: frozenset[ProviderPartition]) -> None:
        """Leave these to others."""
        wants = replace(self._wants, partitions=self._wants.partitions - partitions)
        with self._groups.turn(self._group) as state:
            state.release(self.name, partitions)
            if state.is_member(self.name):
                state.join(self.name, wants, self._counts(wants), self._member_id)
        self._wants = wants
        self.owned -= partitions

    def leave(self) -> None:
        if self._lock is None:
            return
        try:
            with self._groups.turn(self._group) as state:
                state.leave(self.name)
        except QueueError as error:
            logger.warning("left group %s without a word; its other members notice: %s", self._group, error)
        (self._folder / self.name).unlink(missing_ok=True)
        self._lock.close()
        self._lock = None
        self.owned, self.version = NONE, -1

    def has_news(self) -> bool:
        """Whether anything in the group is not as this member last saw it, or was not looked at for long."""
        return (
            self._groups.version(self._group) != self.version
            or not self._others <= set(self._living())
            or self._clock.monotonic() - self._looked_at > _LOOK_ANYWAY_S
        )

    def look(self) -> "tuple[frozenset[ProviderPartition], frozenset[ProviderPartition]]":
        """What was lost since the last look, and what is to be released: tell of it, then `settle`."""
        self._looked_at = self._clock.monotonic()
        with self._groups.turn(self._group) as state:
            self._take_out_the_dead(state)
            self._is_displaced = state.is_displaced(self.name, self._member_id)
            if not self._is_displaced and not state.is_member(self.name):
                self._announce()
                state.join(self.name, self._wants, self._counts(self._wants), self._member_id)
            state.topics_changed(self._counts(self._wants))
        # Saved by now: what was only planned to be saved must not be believed.
        sync = state.sync(self.name)
        lost = self.owned - sync.owned
        self._saw(state)
        return lost, sync.revoked

    def settle(self, released: frozenset[ProviderPartition]) -> None:
        """Release these and take what is free for us."""
        with self._groups.turn(self._group) as state:
            is_as_seen = state.version == self.version
            state.release(self.name, released)
            taken = state.take(self.name)
        if is_as_seen:
            self._saw(state)
        else:
            # Others came between. The next look tells what was lost, as long as we do not forget what we had.
            self.owned = self.owned - released | taken

    def check_may_commit(self, offsets: Mapping[ProviderPartition, int], epochs: Epochs) -> None:
        """NotOwner or StaleEpoch as far as it is known before the commit. The latter says more."""
        self._groups.check_epochs(self._group, epochs)
        self.check_owned(offsets)

    def commit(self, offsets: Mapping[ProviderPartition, int], epochs: Epochs) -> None:
        try:
            self.check_owned(offsets)
        except NotOwner:
            self._groups.check_epochs(self._group, epochs)
            raise
        self._groups.commit(self._group, self.name, self.version, offsets, epochs, self._member_id)

    def check_owned(self, partitions: Mapping[ProviderPartition, int] | frozenset[ProviderPartition]) -> None:
        self.require_not_displaced()
        for place in partitions:
            if place not in self.owned:
                raise NotOwner(
                    f"group {self._group} does not hold {place} here; another consumer will get its records",
                    group=self._group,
                )

    def require_not_displaced(self) -> None:
        """Displaced where the last look showed another member with our id."""
        if self._is_displaced:
            raise displaced(self._group, self._member_id)

    def sign_of_life(self) -> None:
        if self._clock.monotonic() - self._touched_at > self._timeout_s / 4:
            # Gone when another member took us for dead: the next look tells.
            with suppress(FileNotFoundError):
                self._touch()

    def _announce(self) -> None:
        """Have a file of our own, locked. One that is not locked yet is removed by whoever sees it: then once more."""
        path = self._folder / self.name
        while True:
            if self._lock is not None:
                self._lock.close()
                self._lock = None
            self._folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                self._lock = FileLock(path)
                self._lock.lock()
                self._touch()
                return

    def _touch(self) -> None:
        self._touched_at = self._clock.monotonic()
        # The time until which the silence of this member, by its own timeout, means nothing.
        stamp = int(self._clock.now_ms() + self._timeout_s * 1000) * 1_000_000
        os.utime(self._folder / self.name, ns=(stamp, stamp))

    def _saw(self, state: GroupState) -> None:
        self.owned, self.version = state.sync(self.name).owned, state.version
        self._others = state.members.keys() - {self.name}

    def _take_out_the_dead(self, state: GroupState) -> None:
        state.expire((state.members.keys() | state.displaced) - {self.name} - set(self._living()))

    def _living(self) -> Iterator[str]:
        now = self._clock.now_ms() / 1000
        for path in _files_in(self._folder):
            if path.name == self.name:
                continue
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < now:
                    path.unlink()
                elif not _removed_if_free(path):
                    yield path.name

    def _counts(self, wants: Wants) -> dict[str, int]:
        known = self._catalog.topics()
        return {topic: known[topic].partitions if topic in known else 0 for topic in wants.names()}


def expire_killed(root: Path, groups: Groups, group: str) -> None:
    """Take those out of the group whose process is gone. One that is only silent is left to the other members."""
    with groups.turn(group) as state:
        if members := state.members.keys() | state.displaced:
            living = {path.name for path in _files_in(_folder(root, group)) if not _removed_if_free(path)}
            state.expire(members - living)


def _folder(root: Path, group: str) -> Path:
    return root / "members" / quote(group, safe="")


def sweep_members(root: Path) -> None:
    """Remove the files of members that died, and the folders of groups that nobody is left of."""
    for folder in _files_in(root / "members"):
        for path in _files_in(folder):
            with suppress(FileNotFoundError):
                _removed_if_free(path)
        with suppress(OSError):  # not empty, or gone already
            folder.rmdir()


def _files_in(folder: Path) -> list[Path]:
    """Empty where it was swept away with its last file."""
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def _removed_if_free(path: Path) -> bool:
    """Remove the file if nobody holds its lock: its member died. Removed while we hold it, so that one who is about
    to lock it finds it gone afterwards."""
    lock = FileLock(path)
    try:
        if not lock.try_lock():
            return False
        path.unlink()
        return True
    finally:
        lock.close()
