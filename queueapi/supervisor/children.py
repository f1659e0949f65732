"""Which processes make an installation."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from queueapi.celery_config import CONSUMERS_QUEUE, SPARK_QUEUE, TASKS_QUEUE
from queueapi.config import config
from queueapi.identity import service_id

_CELERY = (sys.executable, "-m", "celery", "--quiet", "-A", "workers.app")
_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO")


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """`patience_s`: how long it may take to stop, after which it is killed. `metrics_port`: at the how many-eth port
    after that of the settings it shows Prometheus its metrics; None: it has none."""

    name: str
    command: tuple[str, ...]
    patience_s: float = 30.0
    metrics_port: int | None = None


def children(*, demo: bool = False) -> Iterator[ChildSpec]:
    yield ChildSpec("web", (sys.executable, "manage.py", "web"), metrics_port=1)
    # In a demo partitions are seen to be shared.
    for number in range(max(config().consumer_hosts, 2 if demo else 1)):
        yield replace(_consumer_host(f"-{number + 1}" if number else ""), metrics_port=2 + number)
    yield _worker("tasks", TASKS_QUEUE, "threads", 2)
    # A run that is cut short loses nothing: the next one takes up the same events.
    yield replace(_worker("spark", SPARK_QUEUE, "solo", 1), patience_s=3.0)
    yield ChildSpec("beat", (*_CELERY, "beat", "--loglevel", "WARNING"))
    if demo:
        yield ChildSpec("core-api", (sys.executable, "-m", "workers.demo.core_api"))
        yield ChildSpec("traffic", (sys.executable, "-m", "workers.demo"), metrics_port=0)


def _consumer_host(suffix: str) -> ChildSpec:
    """Started again by the same parent, it is the same service instance."""
    identity = f"{config().service.id or service_id()}{suffix}"
    options = ("--host-consumers", "--service-id", identity)
    return _worker(f"consumer{suffix}", CONSUMERS_QUEUE, "threads", 1, *options)


def _worker(name: str, queue: str, pool: str, concurrency: int, *extra: str) -> ChildSpec:
    what = ("worker", "--hostname", f"{name}@%h", "--queues", queue, "--pool", pool, "--concurrency", str(concurrency))
    return ChildSpec(name, (*_CELERY, *what, *_QUIET, *extra))
