"""Queues on each embedded provider, opened as often as wanted: as several programs would."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from queuecore import ConsumerOptions, ProducerOptions, Provider, Queues
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from tests.unit.queuecore.consuming_kit import Bench

OpenQueues = Callable[..., Queues]


@pytest.fixture(params=["in-memory", "log"])
def open_embedded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenQueues]:
    """Opens the same storage anew each time; everything is closed at the end."""
    storage = MemoryStorage()

    def provider(producing: ProducerOptions, consuming: ConsumerOptions) -> Provider:
        if request.param == "in-memory":
            return MemoryProvider(storage, producing=producing, consuming=consuming)
        return LogProvider(tmp_path / "log", producing, consuming)

    with ExitStack() as stack:

        def open_queues(
            producing: ProducerOptions = ProducerOptions(),  # noqa: B008
            consuming: ConsumerOptions = ConsumerOptions(),  # noqa: B008
            **options: Any,
        ) -> Queues:
            hand_over_s = consuming.session_timeout_ms / 2_000
            return stack.enter_context(Queues(provider(producing, consuming), hand_over_s=hand_over_s, **options))

        yield open_queues


@pytest.fixture
def queues(open_embedded: OpenQueues) -> Queues:
    return open_embedded()


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A queue of one partition in memory, and what consumes it."""
    with closing(MemoryProvider()) as provider, closing(Bench(provider)) as bench:
        yield bench


@pytest.fixture
def wide_bench() -> Iterator[Bench]:
    """The same, of two partitions."""
    with closing(MemoryProvider()) as provider, closing(Bench(provider, partitions=2)) as bench:
        yield bench
