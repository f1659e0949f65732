"""kafka-python's log without our own clients: what goes wrong is told by the answer, where the library would log every
attempt, and the password with it. Clients that others have in this process log as they are set."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafka.net.selector import NetworkSelector

_LIBRARY: Final = "kafka"


class _Thread(threading.local):
    is_silent = False


_thread: Final = _Thread()


@contextmanager
def silently() -> Iterator[None]:
    """Nothing is logged of what the library does on this thread meanwhile."""
    before, _thread.is_silent = _thread.is_silent, True
    try:
        yield
    finally:
        _thread.is_silent = before


class SilentNetwork(NetworkSelector):
    """One whose own thread is silent."""

    def run_forever(self) -> None:
        with silently():
            super().run_forever()


def _is_heard(_: logging.LogRecord) -> bool:
    return not _thread.is_silent


def _listen() -> None:
    # A filter counts for its own logger alone, so each needs it.
    for name in list(logging.Logger.manager.loggerDict):
        if name.partition(".")[0] == _LIBRARY:
            logging.getLogger(name).addFilter(_is_heard)


_listen()
