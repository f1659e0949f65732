"""One loop on its thread, for as long as it is wanted."""

import logging
import threading
from typing import Protocol

from django.db import connections

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import QueueError
from workers.backoff import BackOff

logger = logging.getLogger(__name__)


class Loop(Protocol):
    def run(self) -> None: ...

    def stop(self) -> None: ...


class Hosted:
    """Whatever a loop raises, it alone stands still for a while and is run again: one topic's damage must not stop the
    others'."""

    def __init__(self, name: str, loop: Loop, clock: Clock = SYSTEM_CLOCK) -> None:
        self.name = name
        self._loop = loop
        self._stopping = threading.Event()
        self._backoff = BackOff(clock)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_dead(self) -> bool:
        """The thread ended though nobody stopped it."""
        return not self._thread.is_alive() and not self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()
        self._loop.stop()

    def wait_for_end(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._backoff.begin()
            try:
                self._loop.run()
            except Exception as error:
                logger.debug("%s failed", self.name, exc_info=error)
                self._stand_still(error)
            finally:
                # A connection that failed is not used again.
                connections.close_all()

    def _stand_still(self, error: Exception) -> None:
        pause_s = self._backoff.failed()
        logger.error("%s stands still and tries again in %g s: %s", self.name, pause_s, told(error))
        self._stopping.wait(pause_s)


def told(error: BaseException) -> str:
    """What went wrong, in one line."""
    return error.message if isinstance(error, QueueError) else f"{type(error).__name__}: {' '.join(str(error).split())}"
