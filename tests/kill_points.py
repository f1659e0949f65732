"""Dying of kill -9 at a chosen moment: a call of the log's kills its process before, half-way or after."""

import os
import random
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from queuecore.providers.log import active, outcomes, segment
from queuecore.providers.log.index import IndexWriter
from queuecore.providers.log.membership import Membership
from queuecore.providers.log.page import PartitionPage
from queuecore.providers.log.writers import Writers

When = Literal["before", "half-way", "after"]

# What is called, by the owner of the name that is looked up.
PLACES: Mapping[str, tuple[Any, str]] = {
    "write": (os, "writev"),
    "sync": (os, "fdatasync"),
    "fsync": (os, "fsync"),
    "truncate": (os, "ftruncate"),
    "rename": (Path, "rename"),
    "unlink": (Path, "unlink"),
    "sync the folder": (segment, "sync_directory"),
    "index": (IndexWriter, "add"),
    "check the tail": (active.ActiveSegment, "check_tail"),
    "note": (PartitionPage, "note"),
    "set synced": (PartitionPage, "set_synced"),
    "publish": (PartitionPage, "publish"),
    "begin a transaction": (outcomes, "begin"),
    "finish a transaction": (outcomes, "finish"),
    "ring": (Writers, "ring"),
    "settle in the group": (Membership, "settle"),
}


class KillPoint(NamedTuple):
    """The n-th time that this is called from now on. Half-way is for `write` alone."""

    place: str
    when: When = "before"
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.when} {self.place} {self.nth}"

    def arm(self) -> None:
        """For a process that is to die of it."""
        die_at(*PLACES[self.place], self.when, self.nth)


def die_at(owner: Any, name: str, when: When = "before", nth: int = 1) -> None:
    """For a process that is to die the n-th time that the owner's function of this name is called."""
    dying = _Dying(getattr(owner, name), when, nth)
    # A function, so that it is bound to the instance where it is a method.
    setattr(owner, name, lambda *args, **kwargs: dying(*args, **kwargs))


def random_point(chance: random.Random, places: Mapping[str, int]) -> KillPoint:
    """One of these places; the number says within how many calls."""
    place = chance.choice(list(places))
    whens: list[When] = ["before", "after"]
    if place == "write":
        whens.append("half-way")
    return KillPoint(place, chance.choice(whens), chance.randint(1, places[place]))


class _Dying:
    def __init__(self, call: Callable[..., Any], when: When, nth: int) -> None:
        self._call = call
        self._when = when
        self._left = nth

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._left -= 1
        if self._left:
            return self._call(*args, **kwargs)
        if self._when == "half-way":
            descriptor, parts = args
            raw = b"".join(parts)
            os.write(descriptor, raw[: len(raw) // 2])
        elif self._when == "after":
            self._call(*args, **kwargs)
        return os.kill(os.getpid(), signal.SIGKILL)
