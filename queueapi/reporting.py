"""What this process's consumers and producers do: reported to the pipeline, and shown to Prometheus."""

import atexit
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from queueapi import runtime
from queueapi.config import config
from queueapi.identity import service_id
from queueapi.prometheus import shown
from queuecore.metrics.prometheus import RuntimeCollector
from queuecore.metrics.recorder import Recorder
from queuecore.metrics.reporting import EventReporter, reporting
from queuecore.providers.base import QueueProducer

logger = logging.getLogger(__name__)


class Reporting:
    """One instance's: from `start` to `stop` what its recorder hears is reported as often as the settings say, and
    shown where they say. `stop` tells the last of it."""

    def __init__(self, name: str) -> None:
        self.recorder = Recorder(name)
        self._stopping = ExitStack()

    def start(self) -> None:
        self._stopping.enter_context(_recording(self.recorder))
        self._stopping.enter_context(shown(_RECORDED))
        if interval_s := config().metrics_interval_s:
            _reporters.append(self._stopping.enter_context(reporting(runtime.provider(), self.recorder, interval_s)))

    def stop(self) -> None:
        self._stopping.close()


def counted_producer() -> QueueProducer:
    """One of this process's, which reports what it sends from the first time that this is asked for."""
    producer = runtime.provider().producer()
    if not config().metrics_interval_s and not config().metrics_listen:
        return producer
    return _process().recorder.counted(producer)


def show_web_server() -> None:
    """Have Prometheus find this process from its start, where it is to be found at all."""
    if not config().metrics_listen:
        return
    if config().web_workers == 1:
        _process()
    else:
        logger.warning(
            "SWITCHYARD_METRICS_LISTEN: one alone of %d web server processes could listen there, and would show its "
            "own numbers, so none does; set SWITCHYARD_WEB_WORKERS to 1, and start several with addresses of their own",
            config().web_workers,
        )


def close_reporting() -> None:
    """Tell the last of it, at the end of a process or of a test."""
    global _open
    with _lock:
        opened, _open = _open, None
    if opened is not None:
        opened.stop()


def _process() -> Reporting:
    """That of what the process does for itself, and not as an instance of the cluster."""
    global _open
    if (opened := _open) is None:
        with _lock:
            if (opened := _open) is None:
                opened = Reporting(service_id())
                opened.start()
                _open = opened
    return opened


@contextmanager
def _recording(recorder: Recorder) -> Iterator[None]:
    _recorders.append(recorder)
    try:
        yield
    finally:
        _recorders.remove(recorder)


def _forget_parent() -> None:
    """A process that was forked has nothing: its parent's threads are not its own."""
    global _open, _lock
    _open, _lock = None, threading.Lock()
    _recorders.clear()
    _reporters.clear()


_lock = threading.Lock()
_open: Reporting | None = None
_recorders: list[Recorder] = []
# All there ever were: what was dropped stays so.
_reporters: list[EventReporter] = []
_RECORDED: Final = RuntimeCollector(_recorders, lambda: sum(one.dropped for one in _reporters))
os.register_at_fork(after_in_child=_forget_parent)
atexit.register(close_reporting)
runtime.before_close(close_reporting)
