"""Partitions that should make progress and do not."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from queuecore.consuming.draining import Backlog
from queuecore.consuming.holds import Holds
from queuecore.consuming.observing import Observer
from queuecore.consuming.partition import PartitionWork
from queuecore.consuming.states import RESTORING
from queuecore.errors import QueueError
from queuecore.providers.base import Provider
from queuecore.topics import ProviderPartition, TopicPartitionInfo

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0


@dataclass(slots=True)
class _Look:
    """What was seen of a partition when it last made progress, or had none to make.

    is_idle    whether nothing was at hand when it was looked at last
    unread_at  since when messages are known to wait that it does not read; None: none are known
    """

    info: TopicPartitionInfo
    progress: int
    at: float
    is_idle: bool = True
    unread_at: float | None = None
    is_stalled: bool = False


class StallDetector:
    """Tells the observer once when a partition that has messages has finished none of them for `patience_s`, and once
    when it goes on. One that an operator paused is not expected to. For the thread that reads."""

    def __init__(self, provider: Provider, observer: Observer, patience_s: float) -> None:
        self._provider = provider
        self._observer = observer
        self._patience_s = patience_s
        self._looks: dict[ProviderPartition, _Look] = {}
        self._looked_at = float("-inf")

    def look(self, parts: Iterable[PartitionWork], holds: Holds, now: float) -> None:
        """At most once a second."""
        if now - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = now
        silent = []
        for part in parts:
            look = self._looks.setdefault(part.info.place, _Look(part.info, part.progress, now))
            if look.progress != part.progress or _is_held(part, holds):
                self._goes_on(part, look, now)
            elif look.is_idle and not part.is_idle and look.unread_at is None:
                # There was nothing to finish before.
                look.at = now
            elif now - look.at >= self._patience_s and not look.is_stalled:
                silent.append(part)
            look.is_idle = part.is_idle
        if silent:
            self._judge(silent, now)

    def forget(self, place: ProviderPartition) -> None:
        """Another has it, and tells how it goes on."""
        look = self._looks.pop(place, None)
        if look is not None and look.is_stalled:
            self._observer.recovered(look.info)

    def _judge(self, parts: Sequence[PartitionWork], now: float) -> None:
        idle = [part for part in parts if part.is_idle]
        unread = self._unread(idle) if idle else frozenset()
        for part in parts:
            look = self._looks[part.info.place]
            if not part.is_idle:
                self._stalls(part, look, now, "messages that were read wait")
            elif part.info.place in unread:
                # Perhaps it came just now.
                look.unread_at = now if look.unread_at is None else look.unread_at
                if now - look.unread_at >= self._patience_s:
                    self._stalls(part, look, now, "messages wait to be read")
            else:
                self._goes_on(part, look, now)

    def _stalls(self, part: PartitionWork, look: _Look, now: float, what: str) -> None:
        look.is_stalled = True
        reason = f"{part.info} has finished nothing for {now - look.at:.0f} s, and {what}"
        logger.error("%s; look at its handler, and at what that waits for", reason)
        self._observer.stalled(part.info, reason)

    def _goes_on(self, part: PartitionWork, look: _Look, now: float) -> None:
        if look.is_stalled:
            logger.info("%s makes progress again", part.info)
            self._observer.recovered(part.info)
        look.progress, look.at, look.unread_at, look.is_stalled = part.progress, now, None, False

    def _unread(self, parts: Sequence[PartitionWork]) -> frozenset[ProviderPartition]:
        """Those that have a message which their group has not committed, and nobody has read."""
        places = [part.info.place for part in parts]
        try:
            return Backlog(self._provider, parts[0].plan.group, places).behind()
        except QueueError as error:
            logger.debug("what waits in partitions could not be read: %s", error)
            return frozenset()


def _is_held(part: PartitionWork, holds: Holds) -> bool:
    """Whether it is not expected to go on: an operator has paused it, or the tenant whose message is next; or it stands
    still by itself, and has said so."""
    return holds.has(part.info.partition) or part.paused not in ("", RESTORING) or part.is_held(holds.tenants)
