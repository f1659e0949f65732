"""A provider that is away for a while: what becomes of requests meanwhile, and afterwards.

`ask_on_a_full_disk` is for a process whose folder is a small disk of its own.
"""

import json
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from queuecore.providers.base import Provider
from queuecore.providers.log import LogProvider
from queuecore.providers.options import ProducerOptions
from queuecore.requests import RequestOptions, RequestTemplate, RequestTopics, ResponseTemplate
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.reliability.requests_callers import outcome_of

TIMEOUT_MS: Final = 1_000
REQUESTS: Final = 40
# On a disk of 4 MiB that has room for the log's own files.
_PAYLOAD: Final = bytes(4_000)
_BALLAST: Final = bytes(4_096)


@dataclass(frozen=True, slots=True)
class Outage:
    """
    outcomes  how requests ended that were sent meanwhile
    took_s    the longest that one took
    counts    what the template had counted when all was over
    """

    outcomes: list[str]
    took_s: float
    counts: dict[str, int]


class Asking:
    """One who asks and one who answers on a provider, with the means to see what becomes of requests. For a `with`."""

    def __init__(self, provider: Provider) -> None:
        topics = RequestTopics.named("asking", partitions=2)
        self._responder = ResponseTemplate(provider, topics, lambda request: request.data[:8])
        self._template = RequestTemplate(provider, topics, "ask-1", RequestOptions(max_request_timeout_ms=TIMEOUT_MS))
        self._stack = ExitStack()

    def __enter__(self) -> "Asking":
        self._stack.enter_context(self._responder)
        self._stack.enter_context(self._template)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def works(self) -> bool:
        """Whether a request is answered."""
        return self._template.send(b"works?").exception(DEADLINE_S) is None

    def ask_meanwhile(self) -> tuple[list[str], float]:
        """How requests end, and the longest that one takes."""
        sent_at, ended_at = time.monotonic(), []
        futures = [self._template.send(_PAYLOAD) for _ in range(REQUESTS)]
        for future in futures:
            future.add_done_callback(lambda _: ended_at.append(time.monotonic()))
        outcomes = [outcome_of(future.exception(DEADLINE_S)) for future in futures]
        wait_until(lambda: len(ended_at) == REQUESTS)
        return outcomes, max(ended_at) - sent_at

    def go_on(self) -> None:
        """Until it works again."""
        wait_until(self.works, 3 * DEADLINE_S)

    def told(self, outcomes: list[str], took_s: float) -> Outage:
        counts = self._template.counts
        return Outage(outcomes, took_s, {name: n for name, n in asdict(counts).items() if isinstance(n, int)})


def ask_on_a_full_disk(root: str) -> None:
    ballast = Path(root) / "ballast"
    # What cannot be written is told at once, rather than kept until it can.
    producing = ProducerOptions(retries=0)
    with closing(LogProvider(Path(root) / "log", producing=producing)) as provider, Asking(provider) as asking:
        asking.go_on()
        _fill(ballast)
        outcomes, took_s = asking.ask_meanwhile()
        ballast.unlink()
        asking.go_on()
        print(json.dumps(asdict(asking.told(outcomes, took_s))))


def _fill(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(_BALLAST):
            pass
