"""The console's pages with ten thousand queues, a hundred thousand partitions and a million dead letters: how long each
takes the server, how often it asks the database, and how many bytes go to the browser. Beside the same pages of an
installation with a thousandth of the rows. `console_visits` says what is looked at."""

import gzip
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.benchmarks.console_rows import ROLES, freshen, installation
from tests.benchmarks.console_visits import ADMINISTRATOR, Visit, visits
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.processes import run_together
from tests.benchmarks.requests_load import percentile
from tests.benchmarks.rest_rows import SCALE, SMALL, open_django

# Of each page; of one that takes long fewer, as there are some hundred.
_TIMES: Final = 20
_LEAST_TIMES: Final = 5
_LONGEST_MS: Final = 500
_ROUNDS: Final = 2
_GOAL_MS: Final = 200
_MOST_QUERIES: Final = 15
_MOST_KB: Final = 50
_FIRST_KB: Final = 500
_FEW: Final = "with a thousandth of the rows"
_FIRST: Final = "first load"
_NOTHING_SHOWN: Final = (302, 403, 405)


class Looked(NamedTuple):
    """Of one page: 95 percent took no longer; so many queries; so many bytes, compressed."""

    p95_ms: float
    queries: int
    kilobytes: float

    def worst(self, other: "Looked") -> "Looked":
        return Looked(*map(max, zip(self, other, strict=True)))


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
        most_rounds=_ROUNDS,
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

        freshen()
        clients = {role: _client(role) for role in ROLES}
        # As the web server does.
        collect_seldom()
        found: dict[str, Looked] = {}
        for visit in visits():
            if looked := _look(clients[visit.role], visit):
                found[visit.name] = looked.worst(found.get(visit.name, looked))
        found[_FIRST] = Looked(0.0, 0, _first_load(clients[ADMINISTRATOR]))
        close_provider()
        return found

    yield work


def _client(role: str) -> Any:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client(SERVER_NAME="localhost", headers={"Accept-Encoding": "gzip"})
    client.force_login(User.objects.get(username=role))
    return client


def _look(client: Any, visit: Visit) -> Looked | None:
    """None for what only takes what is sent, leads elsewhere, or is not for whoever looks."""
    from tests.console_pages import queries_of

    answer = _get(client, visit)
    if answer.status_code in _NOTHING_SHOWN and visit.sent is None:
        return None
    if answer.status_code != 200:
        raise RuntimeError(f"{visit} answered {answer.status_code}: {answer.content[:500]!r}")
    sent = b"".join(answer.streaming_content) if answer.streaming else answer.content
    # Who counts queries also writes them down: that is not what is timed.
    queries = queries_of(partial(_get, client, visit))
    took: list[float] = []
    while len(took) < _LEAST_TIMES or (len(took) < _TIMES and sum(took) < _LONGEST_MS):
        took.append(_took_ms(client, visit))
    return Looked(percentile(took, 95), queries, len(sent) / 1024)


def _get(client: Any, visit: Visit) -> Any:
    return client.get(visit.address) if visit.sent is None else client.post(visit.address, visit.sent)


def _took_ms(client: Any, visit: Visit) -> float:
    started = time.perf_counter()
    _get(client, visit)
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
