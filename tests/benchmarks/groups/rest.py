"""The REST interface on the embedded stack: publishing through the real web server, and its lists with many rows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers.bare_rest import PATHS
from tests.benchmarks.rest_lists import list_benchmarks
from tests.benchmarks.rest_server import Installed, install, publishing_rate, web_server
from tests.benchmarks.workload import RATE_UNIT

_OURS = {1: "/api/v1/queues/bench/messages", 500: "/api/v1/queues/bench/messages/batch"}
# In a round, of each sender; and how many of them: as many as keep two cores busy, and no more.
_REQUESTS = {1: 300, 500: 25}
_SENDERS = {1: 8, 500: 4}
_PEER = ("-m", "tests.benchmarks.peers.bare_rest")


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    measure = partial(_measure, install(folder / "installed"))
    publishing = [
        _publishing(measure, "published one by one", 1, 1_000),
        _publishing(measure, "published by 500", 500, 50_000),
    ]
    yield [*publishing, *list_benchmarks(folder.parent.parent)]


def _publishing(measure: Callable[..., float], name: str, batch: int, goal: float) -> Benchmark:
    return Benchmark(
        subject=Measurement(name, partial(measure, batch, (), _OURS[batch])),
        peers=(
            Peer("bare Django REST framework, same log", partial(measure, batch, (*_PEER, "drf"), PATHS[batch]), 1.0),
            Peer("bare ASGI, nothing stored", partial(measure, batch, (*_PEER, "asgi"), PATHS[batch])),
        ),
        unit=RATE_UNIT,
        goal=goal,
    )


def _measure(installed: Installed, batch: int, command: tuple[str, ...], path: str, folder: Path) -> float:
    with web_server(installed, folder, *command) as server:
        return publishing_rate(server, path, batch, _REQUESTS[batch], _SENDERS[batch])
