"""Requests while ten thousand others wait for an answer that does not come."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from queuecore.providers.base import TopicSpec
from queuecore.providers.memory import MemoryProvider
from queuecore.requests import RequestOptions, RequestTemplate
from queuecore.topics import TopicPartitionInfo
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers.nats_requests import Nats
from tests.benchmarks.processes import run_together
from tests.benchmarks.requests_load import Load
from tests.benchmarks.requests_ours import answering, asking, singly, warmed
from tests.benchmarks.workload import check_count, payload

PENDING: Final = 10_000
LIMIT: Final = 20_000

_REQUESTS: Final = 100_000
_NATS_REQUESTS: Final = 30_000
# Nobody reads it.
_SILENT: Final = TopicPartitionInfo("silence")


def pending_benchmark(nats: Nats) -> Benchmark:
    """In memory, between two runs without the others."""
    return Benchmark(
        subject=Measurement(f"requests beside {PENDING:,} pending ones", _measure),
        peers=(Peer("NATS", lambda _folder: nats.rate_beside_pending(_NATS_REQUESTS, PENDING)),),
        unit="of without",
        goal=0.9,
    )


def _measure(_folder: Path) -> float:
    [outcome] = run_together([partial(_beside_pending, _REQUESTS)])
    return float(outcome.result)


@contextmanager
def _beside_pending(count: int) -> Iterator[Callable[[], float]]:
    options = RequestOptions(max_pending_requests=LIMIT)
    with closing(MemoryProvider()) as provider:
        provider.admin().create_topics([TopicSpec(_SILENT.full_topic_name)])
        with answering(provider), asking(provider, options=options) as template:
            load = warmed(singly(template))
            yield lambda: _share(load, template, count)


def _share(load: Load, template: RequestTemplate, count: int) -> float:
    before = load.run(count)
    silent = [template.send(payload(number), to=_SILENT) for number in range(PENDING)]
    beside = load.run(count)
    check_count("pending", template.counts.pending, PENDING)
    for future in silent:
        future.cancel()
    after = load.run(count)
    return 2 * beside / (before + after)
