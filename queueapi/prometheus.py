"""What this process shows Prometheus, whatever of it comes and goes: all at one address."""

import logging
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import Metric
from prometheus_client.registry import Collector

from queueapi.config import config
from queueapi.metrics_server import MetricsServer
from queuecore.errors import ConfigurationError

logger = logging.getLogger(__name__)


@contextmanager
def shown(collector: Collector, listen: str = "") -> Iterator[None]:
    """Meanwhile this is among what the process shows, at this address or that of the settings; the first that is named
    is kept until nothing is shown any more. Where it cannot be listened on, that is warned of, and nothing is shown."""
    _SHOWN.add(collector, listen or config().metrics_listen)
    try:
        yield
    finally:
        _SHOWN.remove(collector)


class _Shown(Collector):
    """Safe from any thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """A process that was forked has nothing: its parent's thread is not its own."""
        self._lock = threading.Lock()
        self._collectors: Counter[Collector] = Counter()
        self._server: MetricsServer | None = None

    def add(self, collector: Collector, listen: str) -> None:
        with self._lock:
            self._collectors[collector] += 1
            if listen and self._server is None:
                self._server = self._serve(listen)

    def remove(self, collector: Collector) -> None:
        with self._lock:
            self._collectors[collector] -= 1
            # Without those that nobody shows any more.
            self._collectors = +self._collectors
            server = None if self._collectors else self._server
            self._server = self._server if self._collectors else None
        if server is not None:
            server.stop()

    def collect(self) -> Iterator[Metric]:
        for collector in list(self._collectors):
            yield from collector.collect()

    def _serve(self, listen: str) -> MetricsServer | None:
        try:
            server = MetricsServer(listen, [self])
        except ConfigurationError as error:
            # Perhaps of another process of this machine: no reason not to have this one.
            logger.warning("there are no metrics for Prometheus: %s", error)
            return None
        logger.info("metrics for Prometheus are at %s", server.url)
        return server


_SHOWN: Final = _Shown()
os.register_at_fork(after_in_child=_SHOWN.forget)
