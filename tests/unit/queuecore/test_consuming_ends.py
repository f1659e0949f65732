"""A consumption that cannot go on: whatever it still has to put away, nothing more is handed to handlers."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.marks import NoMark
from queuecore.consuming.observing import Unobserved
from queuecore.consuming.work import Work
from queuecore.providers.memory import MemoryProvider
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition
from tests.unit.queuecore.consuming_kit import SEQUENTIAL, Bench, Gate


@pytest.fixture
def bench() -> Iterator[Bench]:
    with closing(MemoryProvider()) as provider, closing(Bench(provider, partitions=3)) as bench:
        yield bench


class Failing(Unobserved):
    """What is settled cannot be, so that the consumption ends."""

    has_failed = False

    def settling(self, works: Sequence[Work]) -> None:
        self.has_failed = True
        raise RuntimeError("as asked")


class SlowMarks:
    """The first partition that is put away takes until the handlers under way have ended, and have nothing to do."""

    def __init__(self, gate: Gate, observer: Failing) -> None:
        self.consumption: Any = None
        self.seen: list[str] = []
        self._gate, self._observer = gate, observer

    def open(self, group: str, place: ProviderPartition) -> "SlowMark":
        return SlowMark(self)

    def clear(self) -> None:
        if self._observer.has_failed and not self.seen:
            self._gate.open()
            pool = self.consumption._pool
            wait_until(lambda: len(self._gate.returned) >= 3 and pool._idle == pool._alive)
            self.seen = sorted(self._gate.seen)


class SlowMark(NoMark):
    def __init__(self, marks: SlowMarks) -> None:
        self._marks = marks

    def clear(self) -> None:
        self._marks.clear()


def test_nothing_more_of_one_partition_is_handled_while_another_is_put_away(bench: Bench) -> None:
    gate, observer = Gate("a1", "b1"), Failing()
    marks = SlowMarks(gate, observer)
    consumption: Consumption = bench.consumption(gate, observer=observer, marks=marks, submit=SEQUENTIAL, concurrency=3)
    marks.consumption = consumption
    bench.send("a1", "a2", partition=0)
    bench.send("b1", "b2", partition=1)
    consumption.start()
    wait_until(lambda: sorted(gate.seen) == ["a1", "b1"])
    bench.send("c1", partition=2)
    wait_until(consumption.ended.is_set)
    assert str(consumption.see_error()) == "as asked"
    assert marks.seen == ["a1", "b1", "c1"]
