"""A producer's thread: it stores what has been handed in, and runs the callbacks."""

import logging
import queue
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from queuecore.providers.memory.storing import Answer, Send, Storing
from queuecore.providers.options import ProducerOptions

logger = logging.getLogger(__name__)

_LOOK_AGAIN: Final[Sequence[None]] = (None,)

# What came together. None has the thread look again at what waits.
HandedIn = queue.SimpleQueue[list[Send] | None]


class Sender:
    """Keeps no producer alive: `settled` is told what was answered and says whether to go on, and when the producer it
    belongs to is gone, so is the thread as soon as everything handed in has been answered."""

    def __init__(
        self,
        handed_in: HandedIn,
        storing: Storing,
        options: ProducerOptions,
        settled: "weakref.WeakMethod[Callable[[list[Answer]], bool]]",
    ) -> None:
        self._handed_in = handed_in
        self._storing = storing
        self._options = options
        self._settled = settled

    def run(self) -> None:
        goes_on = True
        while goes_on or self._handed_in.qsize() or self._storing.waits:
            goes_on = self._answer(self._storing.store(self._gather()))

    def _answer(self, answers: list[Answer]) -> bool:
        for (_, _, _, callback, _), metadata, error in answers:
            try:
                callback(metadata, error)
            except Exception:
                logger.exception("a send callback raised; its message was %s", "stored" if metadata else "refused")
        settled = self._settled()
        return settled is not None and settled(answers)

    def _gather(self) -> list[Send | None]:
        """What was handed in, waiting for some; empty when something has waited for long enough."""
        taken = self._take(self._storing.patience_s())
        if self._options.linger_ms and taken and None not in taken:
            taken += self._linger(taken)
        return taken

    def _take(self, timeout: float | None) -> list[Send | None]:
        """What is there, waiting for the first."""
        try:
            first = self._handed_in.get(timeout=timeout)
        except queue.Empty:
            return []
        came = [first, *(self._handed_in.get() for _ in range(self._handed_in.qsize()))]
        return [send for together in came for send in (_LOOK_AGAIN if together is None else together)]

    def _linger(self, taken: Iterable[Send | None]) -> list[Send | None]:
        """What comes within `linger_ms`, or until it is a batch or somebody cannot wait."""
        deadline = time.monotonic() + self._options.linger_ms / 1000
        size = sum(send[2] for send in taken if send is not None)
        more: list[Send | None] = []
        while size < self._options.batch_size and (remaining := deadline - time.monotonic()) > 0:
            came = self._take(remaining)
            more += came
            size += sum(send[2] for send in came if send is not None)
            if None in came:
                break
        return more
