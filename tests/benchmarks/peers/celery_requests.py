"""Celery's `delay().get()` over Redis: what a Django installation reaches for first when a call has to wait.

Imported by its worker as well, with the address of Redis in the environment.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from celery import Celery

from queueapi.supervisor.child import die_with_parent
from queuecore.testing.services import RedisService, ServiceError
from tests.benchmarks.measuring import NotAvailable
from tests.benchmarks.workload import PAYLOAD_BYTES, rate

URL_VARIABLE: Final = "BENCH_CELERY_REDIS_URL"
_ROOT: Final = Path(__file__).parents[3]
# So many are sent one after the other, and then their answers gathered: faster than a `group` of them, and than threads
# with one each.
_AT_ONCE: Final = 200
_PROCESSES: Final = 2
_PREFETCH: Final = 100
_WARM_UP: Final = 200
_PATIENCE_S: Final = 120


def make_app(url: str) -> Celery:
    app = Celery("echo", broker=url, backend=url)
    app.conf.update(worker_prefetch_multiplier=_PREFETCH, broker_connection_retry_on_startup=True)
    return app


app = make_app(os.environ.get(URL_VARIABLE, ""))


@app.task
def echo(text: str) -> str:
    return text


class CeleryTasks:
    """The measurement on one Redis, or the reason why there is none."""

    def __init__(self, url: str, unavailable: str = "") -> None:
        self._url = url
        self._unavailable = unavailable

    def rate(self, count: int, folder: Path) -> float:
        """Round trips a second, with a worker as long as it takes."""
        if self._unavailable:
            raise NotAvailable(self._unavailable)
        app.conf.update(broker_url=self._url, result_backend=self._url)
        with _worker(self._url, folder):
            _round_trips(_WARM_UP)
            return rate(count, lambda: _round_trips(count))


@contextmanager
def celery_tasks(folder: Path) -> Iterator[CeleryTasks]:
    service = RedisService(folder, ephemeral=True)
    try:
        service.start()
    except ServiceError as error:
        yield CeleryTasks("", unavailable=str(error))
        return
    try:
        yield CeleryTasks(service.url)
    finally:
        service.erase()


@contextmanager
def _worker(url: str, folder: Path) -> Iterator[None]:
    command = (
        *(sys.executable, "-m", "celery", "-A", __name__, "worker", "--loglevel", "ERROR"),
        *("--concurrency", str(_PROCESSES), "--without-gossip", "--without-mingle", "--without-heartbeat"),
    )
    with (folder / "celery.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env={**os.environ, URL_VARIABLE: url},
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent(),
        )
    with process:
        try:
            yield
        finally:
            process.terminate()


def _round_trips(count: int) -> None:
    for first in range(0, count, _AT_ONCE):
        texts = [f"{number:08}".ljust(PAYLOAD_BYTES, ".") for number in range(first, min(first + _AT_ONCE, count))]
        sent = [echo.delay(text) for text in texts]
        if [one.get(timeout=_PATIENCE_S) for one in sent] != texts:
            raise AssertionError("an answer is missing, or another's")
