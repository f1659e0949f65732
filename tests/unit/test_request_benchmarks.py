"""The benchmarks of requests: how many are outstanding, when they are due, and that every answer is its own."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from queuecore.testing.waiting import wait_until
from tests.benchmarks import requests_load
from tests.benchmarks.measuring import NotAvailable
from tests.benchmarks.processes import beside
from tests.benchmarks.requests_load import Load, Schedule, Window, one_by_one, percentile
from tests.benchmarks.workload import payload


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([3.0, 1.0, 2.0], 50, 2.0),
        (range(1, 101), 99, 99),
        (range(1, 1001), 99, 990),
        (range(1, 11), 99, 10),
        ([7.0], 99, 7.0),
        ([1.0, 2.0], 0, 1.0),
        ([1.0, 2.0], 100, 2.0),
    ],
)
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(
    values: list[float], percent: float, expected: float
) -> None:
    assert percentile(values, percent) == expected


def test_requests_are_due_at_even_distances_from_the_first_on() -> None:
    schedule = Schedule(per_s=10, count=5)

    assert [schedule.due_s(number) for number in range(5)] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])
    assert [schedule.due_at(elapsed_s) for elapsed_s in (0, 0.05, 0.15, 0.399, 0.45, 9)] == [1, 1, 2, 4, 5, 5]


def test_between_two_requests_it_is_slept_until_the_next_is_due_but_never_less_than_a_tick() -> None:
    slow, fast = Schedule(per_s=10, count=5), Schedule(per_s=1_000_000, count=5)

    assert slow.pause_s(1, elapsed_s=0.02) == pytest.approx(0.08)
    assert slow.pause_s(1, elapsed_s=0.5) == fast.pause_s(1, elapsed_s=0) == 0.001


def test_who_comes_late_sends_all_that_are_due_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 100.0, 100.25, 100.25, 109.0])
    slept: list[float] = []
    monkeypatch.setattr(requests_load.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(requests_load.time, "sleep", slept.append)

    batches = list(Schedule(per_s=10, count=6).batches(started=100.0))

    assert batches == [range(1), range(1, 3), range(3, 6)]
    assert slept == pytest.approx([0.1, 0.05])


def test_a_window_lets_in_as_many_as_have_room() -> None:
    window = Window(4)

    assert window.begin(3) == 3
    assert window.begin(3) == 1
    window.end()
    window.end()
    assert window.begin(9) == 2


def test_a_full_window_waits_until_a_quarter_has_ended() -> None:
    window = Window(8)
    window.begin(8)
    with ThreadPoolExecutor(1) as threads:
        begun = threads.submit(window.begin, 8)
        wait_until(lambda: window._wanted == 2)
        window.end()
        assert not begun.done()
        window.end()
        assert begun.result(10) == 2


def test_requests_may_end_on_several_threads() -> None:
    window = Window(40_000)
    window.begin(40_000)
    ending = [threading.Thread(target=lambda: [window.end() for _ in range(10_000)]) for _ in range(4)]
    for thread in ending:
        thread.start()

    window.wait_for_all()

    assert window.ended == 40_000


def test_requests_that_never_end_are_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_load, "_PATIENCE_S", 0.01)
    window = Window(2)
    window.begin(2)
    window.end()
    with pytest.raises(TimeoutError, match="1 of 2 requests have ended"):
        window.wait_for_all()


class Echo:
    """Answers on a thread of its own, and notes the most that were outstanding."""

    def __init__(self) -> None:
        self.most = 0
        self.asked: list[bytes] = []
        self._outstanding = 0
        self._changing = threading.Lock()
        self._threads = ThreadPoolExecutor(1)

    def ask(self, data: bytes, told: Callable[[bytes], None]) -> None:
        self.asked.append(data)
        with self._changing:
            self._outstanding += 1
            self.most = max(self.most, self._outstanding)
        self._threads.submit(self._answer, data, told)

    def _answer(self, data: bytes, told: Callable[[bytes], None]) -> None:
        with self._changing:
            self._outstanding -= 1
        told(data)


def test_a_load_sends_every_request_once_and_never_more_at_a_time_than_it_may() -> None:
    echo = Echo()

    assert Load(one_by_one(echo.ask), bytes).run(500, outstanding=8) > 0

    assert echo.asked == [payload(number) for number in range(500)]
    assert echo.most <= 8


def test_a_load_may_be_told_before_it_has_asked_for_the_next() -> None:
    assert Load(one_by_one(lambda data, told: told(data)), bytes).run(100, outstanding=1) > 0


def test_a_load_notices_the_answer_of_another() -> None:
    with pytest.raises(AssertionError, match="request 1 got the answer of another"):
        Load(one_by_one(lambda data, told: told(payload(0))), bytes).run(2, outstanding=1)


def test_a_load_raises_what_a_request_failed_with() -> None:
    def refused(_answer: bytes) -> bytes:
        raise ConnectionError("no answer")

    with pytest.raises(ConnectionError, match="no answer"):
        Load(one_by_one(lambda data, told: told(data)), refused).run(1)


def test_latency_counts_from_when_a_request_was_due() -> None:
    """The first is held up while it is sent: those due meanwhile are late, though each is answered at once."""

    def ask(data: bytes, told: Callable[[bytes], None]) -> None:
        if data == payload(0):
            time.sleep(0.05)
        told(data)

    latencies_ms = Load(one_by_one(ask), bytes).latencies_ms(20, per_s=1_000)

    assert len(latencies_ms) == 20
    assert latencies_ms[0] >= 50
    assert latencies_ms[10] >= 40


@contextmanager
def leaving_marks(folder: Path) -> Iterator[Callable[[], None]]:
    (folder / "prepared").touch()
    yield (folder / "worked").touch
    (folder / "left").touch()


def test_what_runs_beside_is_prepared_before_the_block_and_ends_after_it(tmp_path: Path) -> None:
    with beside(partial(leaving_marks, tmp_path)):
        assert [path.name for path in tmp_path.iterdir()] == ["prepared"]

    assert {path.name for path in tmp_path.iterdir()} == {"prepared", "worked", "left"}


def test_the_number_of_timeouts_is_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.benchmarks import requests_memory

    monkeypatch.delenv(requests_memory.TIMEOUTS_VARIABLE, raising=False)
    assert requests_memory.timeouts() == 1_000_000
    monkeypatch.setenv(requests_memory.TIMEOUTS_VARIABLE, "20")
    assert requests_memory.timeouts() == 20
    monkeypatch.setenv(requests_memory.TIMEOUTS_VARIABLE, "15")
    with pytest.raises(ValueError, match="multiple of 10"):
        requests_memory.timeouts()


def test_how_long_a_party_takes_is_measured_at_half_of_what_it_does(tmp_path: Path) -> None:
    pytest.importorskip("nats", reason="`make bench` installs the peers")
    from tests.benchmarks.requests_rates import Party

    rates, asked = iter([100.0, 500.0, 300.0]), []
    party = Party("ours", lambda _folder: next(rates), lambda per_s, _folder: asked.append(per_s) or 1.0)
    for _ in range(3):
        party.rate(tmp_path)

    assert party.p99_ms(tmp_path) == 1.0
    assert asked == [150.0]


def test_what_has_no_rate_has_no_latency_either(tmp_path: Path) -> None:
    pytest.importorskip("nats", reason="`make bench` installs the peers")
    from tests.benchmarks.peers.nats_requests import Nats
    from tests.benchmarks.requests_rates import _nats

    party = _nats(Nats("", unavailable="no nats-server here"))
    for measure in (party.rate, party.p99_ms):
        with pytest.raises(NotAvailable, match="no nats-server here"):
            measure(tmp_path)
