"""How long the pages of every list take, and how often they ask the database, with many rows and with few."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.processes import run_together
from tests.benchmarks.requests_load import percentile
from tests.benchmarks.rest_rows import SCALE, SMALL, installation, open_django

# Of each page. With the first, the next and those of other orders, a list's p95 is of some hundred in a round.
_TIMES: Final = 20
_ROUNDS: Final = 3
# A list without rows says nothing of how long it takes: also a small installation has so many of all.
_LEAST_ROWS: Final = 3
_GOAL_MS: Final = 100
_MOST_QUERIES: Final = 10
_FEW: Final = "with a thousandth of the rows"

# The lists there are, each with the orders that it can be asked for in.
Orders = Mapping[str, Sequence[str]]


class Looked(NamedTuple):
    """Of one list: 95 percent of its pages took no longer, and none asked more often."""

    p95_ms: float
    queries: int


class Rounds:
    """All lists of an installation are looked at in one process, once for each round, for all that is told of them."""

    def __init__(self, folder: Path, scale: float, lists: Orders) -> None:
        self._folder = folder
        self._scale = scale
        self._lists = lists
        self._outcomes: list[dict[str, Looked]] = []
        self._told: Counter[str] = Counter()

    def p95_ms(self, name: str, _: Path) -> float:
        return self._next(f"{name} p95")[name].p95_ms

    def queries(self, name: str, _: Path) -> float:
        return self._next(f"{name} queries")[name].queries

    def _next(self, what: str) -> dict[str, Looked]:
        number = self._told[what]
        self._told[what] += 1
        if number == len(self._outcomes):
            data = installation(self._folder, self._scale)
            [outcome] = run_together([partial(looking, data, self._lists)])
            self._outcomes.append(outcome.result)
        return self._outcomes[number]


def list_benchmarks(folder: Path) -> list[Benchmark]:
    """Beside the same lists of an installation with a thousandth of the rows."""
    [outcome] = run_together([partial(naming, installation(folder, SCALE * SMALL))])
    lists: Orders = outcome.result
    large, small = Rounds(folder, SCALE, lists), Rounds(folder, SCALE * SMALL, lists)
    times = [_benchmark(f"{name}, p95", "ms", _GOAL_MS, large.p95_ms, small.p95_ms, name) for name in lists]
    queries = [
        _benchmark(f"{name}, queries", "queries", _MOST_QUERIES, large.queries, small.queries, name) for name in lists
    ]
    return [*times, *queries]


def _benchmark(
    told: str,
    unit: str,
    goal: float,
    many: Callable[[str, Path], float],
    few: Callable[[str, Path], float],
    name: str,
) -> Benchmark:
    return Benchmark(
        subject=Measurement(told, partial(many, name)),
        peers=(Peer(_FEW, partial(few, name)),),
        unit=unit,
        goal=goal,
        better="lower",
        most_rounds=_ROUNDS,
    )


@contextmanager
def naming(data: Path) -> Iterator[Callable[[], Orders]]:
    """The work is to read the schema, which takes a second each time: once for all rounds."""
    open_django(data)
    from tests.rest_kit import lists, operations

    def work() -> Orders:
        told = operations()
        return {name: _orders(told[name].get("parameters", ())) for name in lists()}

    yield work


def _orders(parameters: Sequence[Mapping[str, Any]]) -> list[str]:
    [*found] = (one["schema"].get("enum", ()) for one in parameters if one["name"] == "ordering")
    return [order for orders in found for order in orders]


@contextmanager
def looking(data: Path, lists: Orders, times: int = _TIMES) -> Iterator[Callable[[], dict[str, Looked]]]:
    """The work is to look at the pages of every list."""
    open_django(data)
    from django.core.management import call_command

    # One that was made before has what came since then.
    call_command("migrate", verbosity=0)

    def work() -> dict[str, Looked]:
        from queueapi.runtime import close_provider

        client = _client()
        found = {name: _look(client, name, orders, times) for name, orders in lists.items()}
        close_provider()
        return found

    yield work


def _client() -> Any:
    from django.contrib.auth.models import User
    from rest_framework.test import APIClient

    client = APIClient(SERVER_NAME="localhost")
    client.force_authenticate(User.objects.select_related("account").get(username="admin"))
    return client


def _look(client: Any, name: str, orders: Sequence[str], times: int) -> Looked:
    """At the first page, the next one, and the first in each order that the list has."""
    from tests.rest_kit import API

    path = API + _path(name)
    first = _get(client, path)
    rows, following = (first["results"], first.get("next")) if isinstance(first, dict) else (first, None)
    if len(rows) < _LEAST_ROWS:
        raise RuntimeError(f"{name} has {len(rows)} rows, and {_LEAST_ROWS} at least are wanted; see rest_rows")
    pages = [path, *([following] if following else []), *(f"{path}?ordering={order}" for order in orders)]
    # Who counts queries also writes them down: that is not what is timed.
    queries = max(_queries(client, page) for page in pages)
    return Looked(percentile([_took_ms(client, page) for page in pages for _ in range(times)], 95), queries)


def _path(name: str) -> str:
    """On things that have many rows: a queue, and a replay."""
    from uuid import UUID

    return name.removeprefix("GET ").replace("{queue}", str(UUID(int=1))).replace("{id}", str(UUID(int=1)))


def _queries(client: Any, page: str) -> int:
    from django.db import connections
    from django.test.utils import CaptureQueriesContext

    with ExitStack() as stack:
        contexts = [stack.enter_context(CaptureQueriesContext(one)) for one in connections.all()]
        _get(client, page)
    return sum(len(context) for context in contexts)


def _took_ms(client: Any, page: str) -> float:
    started = time.perf_counter()
    _get(client, page)
    return (time.perf_counter() - started) * 1000


def _get(client: Any, page: str) -> Any:
    answer = client.get(page)
    if answer.status_code != 200:
        raise RuntimeError(f"{page} answered {answer.status_code}: {answer.content[:500]!r}")
    return answer.json()
