"""One loop on its thread, for as long as it is wanted."""

import logging
import threading
from typing import Protocol

from django.db import connections

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import QueueError

logger = logging.getLogger(__name__)

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 30.0
STEADY_AFTER_S = 60.0


class Loop(Protocol):
    def run(self) -> None: ...

    def stop(self) -> None: ...


class Hosted:
    """Whatever a loop raises, it alone stands still for a while and is run again: one partition's damage must not
    stop the others'."""

    def __init__(self, name: str, loop: Loop, clock: Clock = SYSTEM_CLOCK) -> None:
        self.name = name
        self._loop = loop
        self._clock = clock
        self._stopping = threading.Event()
        self._backoff_s = FIRST_BACKOFF_S
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_dead(self) -> bool:
        """The thread ended though nobody stopped it."""
        return not self._thread.is_alive() and not self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()
        self._loop.stop()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            started_at = self._clock.monotonic()
            try:
                self._loop.run()
            except QueueError as error:
                self._stand_still(started_at, str(error))
            except Exception as error:
                logger.debug("%s failed", self.name, exc_info=error)
                self._stand_still(started_at, f"{type(error).__name__}: {' '.join(str(error).split())}")
            finally:
                # A connection that failed is not used again.
                connections.close_all()

    def _stand_still(self, started_at: float, reason: str) -> None:
        if self._clock.monotonic() - started_at >= STEADY_AFTER_S:
            self._backoff_s = FIRST_BACKOFF_S
        logger.error("%s stands still and tries again in %g s: %s", self.name, self._backoff_s, reason)
        self._stopping.wait(self._backoff_s)
        self._backoff_s = min(LONGEST_BACKOFF_S, self._backoff_s * 2)
