"""This process's connection to the queue provider."""

import os
import threading
from collections.abc import Callable

from queueapi.config import Config, config
from queuecore.config.queue_options import consumer_options, kafka_options, producer_options
from queuecore.providers.base import Provider
from queuecore.providers.log import LogProvider

_lock = threading.Lock()
_open: tuple[int, Provider] | None = None
_before_close: list[Callable[[], None]] = []


def provider() -> Provider:
    """The provider the settings name, opened once per process and never inherited across a fork."""
    global _open
    with _lock:
        if _open is None or _open[0] != os.getpid():
            _open = (os.getpid(), open_provider(config()))
        return _open[1]


def before_close(close: Callable[[], None]) -> None:
    """Whenever the provider is closed, this is called first."""
    _before_close.append(close)


def close_provider() -> None:
    """Flush and release, at the end of a process or of a test."""
    global _open
    for close in _before_close:
        close()
    with _lock:
        if _open is not None and _open[0] == os.getpid():
            _open[1].close()
        _open = None


def open_provider(settings: Config) -> Provider:
    queue = settings.queue
    producing, consuming = producer_options(queue), consumer_options(queue)
    if queue.type == "kafka":
        # Imported where it is wanted: the embedded stack runs without librdkafka's threads.
        from queuecore.providers.kafka import KafkaProvider

        return KafkaProvider(
            queue.kafka.bootstrap_servers,
            kafka=kafka_options(queue),
            producing=producing,
            consuming=consuming,
        )
    return LogProvider(settings.data / "log", producing, consuming)
