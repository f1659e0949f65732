"""Request and reply over NATS: a server that only passes messages on, and a client for asyncio."""

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import nats
import uvloop
from nats.aio.client import Client
from nats.aio.msg import Msg

from queuecore.testing.services import Service, ServiceError
from queuecore.testing.services.ports import LOOPBACK, exchange
from tests.benchmarks.measuring import NotAvailable
from tests.benchmarks.requests_load import OUTSTANDING, Schedule, percentile
from tests.benchmarks.requests_ours import measure_pair
from tests.benchmarks.workload import payload

_SUBJECT: Final = "echo"
# Somebody is there, and does not answer.
_SILENT: Final = "silence"
_WARM_UP: Final = 5_000
_TIMEOUT_S: Final = 60.0
_GREETING: Final = b"INFO "
# Debian puts it there, which not everybody has in PATH.
_SYSTEM_PROGRAMS: Final = "/usr/sbin"

# What is measured over a connection.
Measured = Callable[[Client], Coroutine[Any, Any, float]]


class NatsService(Service):
    """A `nats-server` of its own; it keeps nothing."""

    name = "nats"

    def missing(self) -> str | None:
        if _program():
            return None
        return (
            "nats-server is not installed (requests are measured beside it): run scripts/require nats-server, "
            "or install the package nats-server (apt, brew)"
        )

    @property
    def url(self) -> str:
        return f"nats://{self.address}"

    def environment(self) -> dict[str, str]:
        """Nothing of ours uses it."""
        return {}

    def _prepare(self) -> None:
        """It has no files."""

    def _command(self) -> tuple[str, ...]:
        return (_program() or "nats-server", "--addr", LOOPBACK, "--port", str(self.port))

    def _answers(self) -> bool:
        return exchange(self.port, b"", reply_bytes=len(_GREETING)) == _GREETING


class Nats:
    """The measurements on one server, or the reason why there is none. Requester and responder are two processes."""

    def __init__(self, url: str, unavailable: str = "") -> None:
        self._url = url
        self._unavailable = unavailable

    def rate(self, count: int) -> float:
        """Round trips a second."""
        return self._measure(partial(_rate, count))

    def p99_ms(self, count: int, per_s: float) -> float:
        """Of requests on schedule."""
        return self._measure(partial(_p99_ms, count, per_s))

    def rate_beside_pending(self, count: int, pending: int) -> float:
        """Round trips a second while so many others wait for nothing, as a share of those without them."""
        return self._measure(partial(_share, count, pending))

    def _measure(self, measured: Measured) -> float:
        if self._unavailable:
            raise NotAvailable(self._unavailable)
        return measure_pair(partial(_answering, self._url), partial(_asking, self._url, measured))


@contextmanager
def nats_server(folder: Path) -> Iterator[Nats]:
    service = NatsService(folder)
    try:
        service.start()
    except ServiceError as error:
        yield Nats("", unavailable=str(error))
        return
    try:
        yield Nats(service.url)
    finally:
        service.erase()


@contextmanager
def _asking(url: str, measured: Measured) -> Iterator[Callable[[], float]]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        client = runner.run(_connect(url))
        runner.run(_rate(_WARM_UP, client))
        yield lambda: runner.run(measured(client))
        runner.run(client.close())


@contextmanager
def _answering(url: str) -> Iterator[Callable[[], None]]:
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    client = asyncio.run_coroutine_threadsafe(_serve(url), loop).result()
    yield lambda: None
    asyncio.run_coroutine_threadsafe(client.drain(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def _serve(url: str) -> Client:
    client = await _connect(url)
    await client.subscribe(_SUBJECT, cb=_echo)
    await client.subscribe(_SILENT, cb=_ignore)
    await client.flush()
    return client


async def _echo(message: Msg) -> None:
    await message.respond(message.data)


async def _ignore(_message: Msg) -> None:
    pass


async def _connect(url: str) -> Client:
    return await nats.connect(url)


async def _ask(client: Client, data: bytes) -> None:
    answer = await client.request(_SUBJECT, data, timeout=_TIMEOUT_S)
    if answer.data != data:
        raise AssertionError(f"{data!r} got the answer of another: {answer.data!r}")


async def _rate(count: int, client: Client) -> float:
    """As many tasks as requests outstanding; each asks again when it has its answer."""
    numbers = iter(range(count))

    async def ask_on() -> None:
        for number in numbers:
            await _ask(client, payload(number))

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(OUTSTANDING, count)):
            tasks.create_task(ask_on())
    return count / (time.perf_counter() - started)


async def _p99_ms(count: int, per_s: float, client: Client) -> float:
    schedule = Schedule(per_s, count)
    latencies_ms: list[float] = []
    started = time.perf_counter()

    async def ask(number: int) -> None:
        await _ask(client, payload(number))
        latencies_ms.append((time.perf_counter() - started - schedule.due_s(number)) * 1000)

    async with asyncio.TaskGroup() as tasks:
        sent = 0
        while sent < count:
            due = schedule.due_at(time.perf_counter() - started)
            for number in range(sent, due):
                tasks.create_task(ask(number))
            sent = due
            await asyncio.sleep(schedule.pause_s(sent, time.perf_counter() - started))
    return percentile(latencies_ms, 99)


async def _share(count: int, pending: int, client: Client) -> float:
    before = await _rate(count, client)
    silent = [
        asyncio.create_task(client.request(_SILENT, payload(number), timeout=_TIMEOUT_S)) for number in range(pending)
    ]
    await client.flush()
    beside = await _rate(count, client)
    if any(one.done() for one in silent):
        raise AssertionError("requests that nobody answers did not stay pending")
    for one in silent:
        one.cancel()
    await asyncio.gather(*silent, return_exceptions=True)
    after = await _rate(count, client)
    return 2 * beside / (before + after)


def _program() -> str | None:
    return shutil.which("nats-server") or shutil.which("nats-server", path=_SYSTEM_PROGRAMS)
