"""Partitions that should make progress and do not."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from queuecore.consuming.observing import Observer
from queuecore.consuming.partition import PartitionWork
from queuecore.errors import QueueError
from queuecore.providers.base import QueueAdmin
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0


@dataclass(slots=True)
class _Look:
    """What was seen of a partition when it last made progress, or had none to make."""

    progress: int
    at: float
    is_stalled: bool = False


class StallDetector:
    """Tells the observer once when a partition that has messages has finished none of them for `patience_s`, and once
    when it goes on. One that an operator paused is not expected to. For the thread that reads."""

    def __init__(self, admin: QueueAdmin, observer: Observer, patience_s: float) -> None:
        self._admin = admin
        self._observer = observer
        self._patience_s = patience_s
        self._looks: dict[ProviderPartition, _Look] = {}
        self._looked_at = float("-inf")

    def look(self, parts: Iterable[PartitionWork], held: frozenset[ProviderPartition], now: float) -> None:
        """At most once a second."""
        if now - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = now
        ends: Mapping[ProviderPartition, int] | None = None
        for part in parts:
            look = self._looks.setdefault(part.info.place, _Look(part.progress, now))
            if look.progress != part.progress or part.info.place in held or part.paused:
                self._goes_on(part, look, now)
            elif now - look.at >= self._patience_s and not look.is_stalled:
                ends = self._ends(self._looks) if ends is None else ends
                self._judge(part, look, ends, now)

    def forget(self, place: ProviderPartition) -> None:
        self._looks.pop(place, None)

    def _judge(self, part: PartitionWork, look: _Look, ends: Mapping[ProviderPartition, int], now: float) -> None:
        waiting = ends.get(part.info.place, 0) - part.position if part.is_idle and part.position >= 0 else 0
        if part.is_idle and waiting <= 0:
            self._goes_on(part, look, now)
            return
        look.is_stalled = True
        what = f"{waiting} messages wait to be read" if part.is_idle else "messages that were read wait"
        reason = f"{part.info} has finished nothing for {now - look.at:.0f} s, and {what}"
        logger.error("%s; look at its handler, and at what that waits for", reason)
        self._observer.stalled(part.info, reason)

    def _goes_on(self, part: PartitionWork, look: _Look, now: float) -> None:
        if look.is_stalled:
            logger.info("%s makes progress again", part.info)
            self._observer.recovered(part.info)
        look.progress, look.at, look.is_stalled = part.progress, now, False

    def _ends(self, places: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        try:
            return self._admin.end_offsets(list(places))
        except QueueError as error:
            logger.debug("the ends of partitions could not be read: %s", error)
            return {}
