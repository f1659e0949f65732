"""How long the pages of every list take, and how often they ask the database, with many rows and with few."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.processes import run_together
from tests.benchmarks.requests_load import percentile
from tests.benchmarks.rest_rows import SCALE, SMALL, installation, open_django

_TIMES: Final = 5
_GOAL_MS: Final = 100
_MOST_QUERIES: Final = 10


class Looked(NamedTuple):
    """Of one list: 95 percent of its pages took no longer, and none asked more often."""

    p95_ms: float
    queries: int


class Rounds:
    """All lists of an installation are looked at in one process, once for each round."""

    def __init__(self, folder: Path, scale: float) -> None:
        self._folder = folder
        self._scale = scale
        self._looked: defaultdict[str, deque[Looked]] = defaultdict(deque)

    def p95_ms(self, name: str, _: Path) -> float:
        while not self._looked[name]:
            self._look()
        return self._looked[name].popleft().p95_ms

    def most_queries(self, _: Path) -> float:
        return max(one.queries for one in self._outcome().values())

    def _look(self) -> None:
        for name, looked in self._outcome().items():
            self._looked[name].append(looked)

    def _outcome(self) -> dict[str, Looked]:
        data = installation(self._folder, self._scale)
        [outcome] = run_together([partial(_looking, data)])
        found: dict[str, Looked] = outcome.result
        return found


def list_benchmarks(folder: Path) -> list[Benchmark]:
    """Beside the same lists of an installation with a thousandth of the rows."""
    large, small = Rounds(folder, SCALE), Rounds(folder, SCALE * SMALL)
    [outcome] = run_together([partial(_naming, installation(folder, SCALE * SMALL))])
    times = [
        Benchmark(
            subject=Measurement(f"{name}, p95", partial(large.p95_ms, name)),
            peers=(Peer("with a thousandth of the rows", partial(small.p95_ms, name)),),
            unit="ms",
            goal=_GOAL_MS,
            better="lower",
        )
        for name in outcome.result
    ]
    queries = Benchmark(
        subject=Measurement("most queries of any list", large.most_queries),
        peers=(Peer("with a thousandth of the rows", small.most_queries),),
        unit="queries",
        goal=_MOST_QUERIES,
        better="lower",
    )
    return [*times, queries]


@contextmanager
def _naming(data: Path) -> Iterator[Callable[[], list[str]]]:
    open_django(data)
    from tests.rest_kit import lists

    yield lists


@contextmanager
def _looking(data: Path) -> Iterator[Callable[[], dict[str, Looked]]]:
    """The work is to look at the pages of every list."""
    open_django(data)
    from django.core.management import call_command

    from tests.rest_kit import lists

    # One that was made before has what came since then.
    call_command("migrate", verbosity=0)

    def work() -> dict[str, Looked]:
        from queueapi.runtime import close_provider

        client = _client()
        found = {name: _look(client, name) for name in lists()}
        close_provider()
        return found

    yield work


def _client() -> Any:
    from django.contrib.auth.models import User
    from rest_framework.test import APIClient

    client = APIClient(SERVER_NAME="localhost")
    client.force_authenticate(User.objects.select_related("account").get(username="admin"))
    return client


def _look(client: Any, name: str) -> Looked:
    """At the first page, the next one, and the first in each order that the list has."""
    from tests.rest_kit import API, operations

    path = API + _path(name)
    parameters = {one["name"]: one for one in operations()[name]["parameters"]}
    orders: Sequence[str] = parameters.get("ordering", {}).get("schema", {}).get("enum", ())
    first = client.get(path)
    following = first.json().get("next") if isinstance(first.json(), dict) else None
    pages = [path, *([following] if following else []), *(f"{path}?ordering={order}" for order in orders)]
    took = [_took(client, page) for page in pages for _ in range(_TIMES)]
    return Looked(percentile([one.p95_ms for one in took], 95), max(one.queries for one in took))


def _path(name: str) -> str:
    """On things that have many rows: a queue, and a replay."""
    from uuid import UUID

    return name.removeprefix("GET ").replace("{queue}", str(UUID(int=1))).replace("{id}", str(UUID(int=1)))


def _took(client: Any, page: str) -> Looked:
    import time

    from django.db import connections
    from django.test.utils import CaptureQueriesContext

    with ExitStack() as stack:
        contexts = [stack.enter_context(CaptureQueriesContext(one)) for one in connections.all()]
        started = time.perf_counter()
        answer = client.get(page)
        took_ms = (time.perf_counter() - started) * 1000
    if answer.status_code != 200:
        raise RuntimeError(f"{page} answered {answer.status_code}: {answer.content[:500]!r}")
    return Looked(took_ms, sum(len(context) for context in contexts))
