"""The console's pages with ten thousand queues, a hundred thousand partitions and a million dead letters: how long each
takes the server, how often it asks the database, and how many bytes go to the browser. Beside the same pages of an
installation with a thousandth of the rows."""

import gzip
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.benchmarks.console_rows import freshen, installation, things
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.processes import run_together
from tests.benchmarks.requests_load import percentile
from tests.benchmarks.rest_rows import SCALE, SMALL, open_django

# Of each page; of one that takes long fewer, as what is beyond its goal needs no more to be seen to be so.
_TIMES: Final = 20
_LEAST_TIMES: Final = 5
_LONGEST_MS: Final = 4_000
_GOAL_MS: Final = 200
_MOST_QUERIES: Final = 15
_MOST_KB: Final = 50
_FIRST_KB: Final = 500
_FEW: Final = "with a thousandth of the rows"
_FIRST: Final = "first load"


class Looked(NamedTuple):
    """Of one page: 95 percent took no longer; so many queries; so many bytes, compressed."""

    p95_ms: float
    queries: int
    kilobytes: float


class Rounds:
    """All pages of an installation are looked at in one process, once for each round, for all that is told of them."""

    def __init__(self, folder: Path, scale: float) -> None:
        self._folder = folder
        self._scale = scale
        self._outcomes: list[dict[str, Looked]] = []
        self._told: Counter[str] = Counter()

    def value(self, page: str, field: str, _: Path) -> float:
        number = self._told[f"{page} {field}"]
        self._told[f"{page} {field}"] += 1
        if number == len(self._outcomes):
            self._outcomes.append(self._look())
        return float(getattr(self._outcomes[number][page], field))

    def names(self) -> list[str]:
        """The first round tells which pages there are."""
        if not self._outcomes:
            self._outcomes.append(self._look())
        return sorted(self._outcomes[0])

    def _look(self) -> dict[str, Looked]:
        [outcome] = run_together([partial(_looking, installation(self._folder, self._scale))])
        found: dict[str, Looked] = outcome.result
        return found


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    kept = folder.parent.parent
    large, small = Rounds(kept, SCALE), Rounds(kept, SCALE * SMALL)
    names = small.names()
    pages = [name for name in names if name != _FIRST]
    yield [
        *(_benchmark(large, small, name, "p95_ms", "ms", _GOAL_MS) for name in pages),
        *(_benchmark(large, small, name, "queries", "queries", _MOST_QUERIES) for name in pages),
        *(_benchmark(large, small, name, "kilobytes", "KB", _MOST_KB) for name in pages),
        _benchmark(large, small, _FIRST, "kilobytes", "KB", _FIRST_KB),
    ]


def _benchmark(large: Rounds, small: Rounds, name: str, field: str, unit: str, goal: float) -> Benchmark:
    return Benchmark(
        subject=Measurement(f"{name}, {field.removesuffix('_ms')}", partial(large.value, name, field)),
        peers=(Peer(_FEW, partial(small.value, name, field)),),
        unit=unit,
        goal=goal,
        better="lower",
        most_rounds=3,
    )


@contextmanager
def _looking(data: Path) -> Iterator[Callable[[], dict[str, Looked]]]:
    """The work is to look at every page."""
    open_django(data)
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("migrate", "--database=cluster", verbosity=0)

    def work() -> dict[str, Looked]:
        from queueapi.runtime import close_provider
        from queuecore.collector import collect_seldom
        from tests.console_pages import addresses

        freshen()
        client = _client()
        # As the web server does.
        collect_seldom()
        found = {
            name: looked for name, address in _shown(client, addresses(things())) if (looked := _look(client, address))
        }
        found[_FIRST] = Looked(0.0, 0, _first_load(client))
        close_provider()
        return found

    yield work


def _client() -> Any:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client(SERVER_NAME="localhost", headers={"Accept-Encoding": "gzip"})
    client.force_login(User.objects.get(username="admin"))
    return client


def _shown(client: Any, pages: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Those that can be looked at; those that only take what is sent say so."""
    from tests.console_pages import MEASURED_ELSEWHERE

    for name, address in pages.items():
        if name in MEASURED_ELSEWHERE:
            continue
        answer = client.get(address)
        if answer.status_code == 200:
            yield name, address
        elif answer.status_code not in (405, 302):
            raise RuntimeError(f"{address} answered {answer.status_code}: {answer.content[:500]!r}")


def _look(client: Any, address: str) -> Looked:
    from tests.console_pages import queries_of

    # Who counts queries also writes them down: that is not what is timed.
    queries = queries_of(lambda: client.get(address))
    answer = client.get(address)
    sent = b"".join(answer.streaming_content) if answer.streaming else answer.content
    took: list[float] = []
    while len(took) < _LEAST_TIMES or (len(took) < _TIMES and sum(took) < _LONGEST_MS):
        took.append(_took_ms(client, address))
    return Looked(percentile(took, 95), queries, len(sent) / 1024)


def _took_ms(client: Any, address: str) -> float:
    started = time.perf_counter()
    client.get(address)
    return (time.perf_counter() - started) * 1000


def _first_load(client: Any) -> float:
    """The overview with the styles and scripts that it names, compressed."""
    import re

    from django.contrib.staticfiles import finders

    page = client.get("/").content
    names = re.findall(r'(?:href|src)="/static/([^"?]+)"', gzip.decompress(page).decode())
    files = [found for name in set(names) if (found := finders.find(_unhashed(name)))]
    return (len(page) + sum(len(gzip.compress(Path(one).read_bytes())) for one in files)) / 1024


def _unhashed(name: str) -> str:
    """As it is called before it is served: `a.0123456789ab.css` is a.css."""
    import re

    return re.sub(r"\.[0-9a-f]{12}(\.\w+)$", r"\1", name)
