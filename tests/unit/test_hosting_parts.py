"""The small parts of a host, by a clock of the test's."""

from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from queueapi.choices import ConsumerState
from queueapi.models import Pause
from queuecore.consuming.counting import ConsumptionCounts, TimeBudget
from queuecore.consuming.holds import Holds
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.errors import QueueError
from queuecore.testing.clock import ManualClock
from queuecore.topics import SYSTEM_TENANT, TopicPartitionInfo
from workers.backoff import FIRST_S, LONGEST_S, STEADY_AFTER_S, BackOff
from workers.hosted import told
from workers.observing import HostObserver
from workers.standings import Gauge, StateSince, told_tenants
from workers.wanting import held_because, holds_of

INFOS = [TopicPartitionInfo("main", number) for number in (0, 1)]


def test_what_keeps_failing_stands_still_longer_and_longer() -> None:
    backoff = BackOff(ManualClock())
    assert [backoff.failed() for _ in range(7)] == [FIRST_S, 2, 4, 8, 16, LONGEST_S, LONGEST_S]


def test_it_may_be_tried_when_the_pause_is_over_or_the_cause_has_changed() -> None:
    clock = ManualClock()
    backoff = BackOff(clock)
    assert backoff.is_over
    backoff.failed()
    assert not backoff.is_over
    clock.advance(FIRST_S)
    assert backoff.is_over
    backoff.failed()
    backoff.forgive()
    assert backoff.is_over
    assert backoff.failed() == FIRST_S


def test_what_failed_late_begins_with_a_short_pause_again() -> None:
    clock = ManualClock()
    backoff = BackOff(clock)
    for _ in range(5):
        backoff.failed()
    backoff.begin()
    clock.advance(STEADY_AFTER_S)
    assert backoff.failed() == FIRST_S
    backoff.begin()
    assert backoff.failed() == 2 * FIRST_S


def test_a_gauge_reads_what_was_done_since_the_last_look() -> None:
    clock = ManualClock()
    gauge = Gauge(clock)
    assert gauge.read(ConsumptionCounts(handled=10), TimeBudget(poll=1.0)) == (
        None,
        {"poll": 1.0, "process": 0.0, "back_pressure": 0.0, "commit": 0.0},
    )
    clock.advance(2)
    handled_per_s, budget = gauge.read(ConsumptionCounts(handled=110), TimeBudget(poll=1.5, process=2.0))
    assert handled_per_s == 50
    assert (budget["poll"], budget["process"], sum(budget.values())) == (0.2, 0.8, 1.0)
    gauge.reset()
    assert gauge.read(ConsumptionCounts(handled=3), TimeBudget())[0] is None


def test_counts_that_fell_are_no_rate() -> None:
    clock = ManualClock()
    gauge = Gauge(clock)
    gauge.read(ConsumptionCounts(handled=1000), TimeBudget(poll=5.0))
    clock.advance(3)
    assert gauge.read(ConsumptionCounts(), TimeBudget()) == (None, dict.fromkeys(asdict(TimeBudget()), 0.0))
    clock.advance(3)
    assert gauge.read(ConsumptionCounts(handled=30), TimeBudget(poll=1.0))[0] == 10


def test_counts_are_told_for_each_tenant_that_there_could_be() -> None:
    tenant, one = str(SYSTEM_TENANT), ConsumptionCounts(total=1, succeeded=1)
    counts = {tenant: one, tenant.upper(): one, "": one, "a\0b": one, "x" * 5_000: one, "other": one}
    told = told_tenants(counts)
    assert {name: counted["total"] for name, counted in told.items()} == {tenant: 2, "": 1, "other": 3}
    assert told[""] == {"total": 1, "succeeded": 1}


def test_a_state_has_lasted_since_it_began_whatever_the_reasons_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(datetime(2030, 1, day, tzinfo=UTC) for day in (1, 2, 3))
    monkeypatch.setattr("workers.standings.timezone.now", lambda: next(times))
    state = StateSince()
    state.become(ConsumerState.STANDING_STILL, "the disk is full")
    state.become(ConsumerState.STANDING_STILL, "the disk is gone")
    assert (state.since.day, state.reason) == (2, "the disk is gone")
    state.become(ConsumerState.RUNNING)
    assert (state.since.day, state.reason) == (3, "")


def test_an_observer_keeps_what_the_host_is_to_write() -> None:
    observer = HostObserver()
    observer.partition_paused(INFOS[1], "too many letters")
    assert observer.take_pauses() == {1: "too many letters"}
    assert observer.take_pauses() == {}
    for info in INFOS:
        observer.stalled(info, f"{info} does nothing")
    first = observer.longest_stall()
    assert first is not None
    assert first.reason == "main.0 does nothing"
    observer.recovered(INFOS[0])
    second = observer.longest_stall()
    assert second is not None
    assert second.reason == "main.1 does nothing"
    observer.forget_stalls()
    assert observer.longest_stall() is None


def test_pauses_become_holds() -> None:
    assert holds_of([]) == Holds()
    rows = [Pause(partition=2), Pause(tenant_id=SYSTEM_TENANT), Pause(partition=0)]
    assert holds_of(rows) == Holds(False, frozenset({str(SYSTEM_TENANT)}), frozenset({0, 2}))
    assert holds_of([*rows, Pause()]).queue


def test_a_consumer_is_told_the_reason_of_what_holds_it() -> None:
    first, other, both = (
        ConsumptionPlan("main", "group", tuple(infos), "log") for infos in (INFOS[:1], INFOS[1:], INFOS)
    )
    rows = [Pause(tenant_id=SYSTEM_TENANT, reason="too noisy"), Pause(partition=1, reason="poison")]
    assert [held_because(rows, plan) for plan in (first, other, both)] == ["", "poison", "poison"]
    rows.append(Pause(reason="billing is away"))
    assert {held_because(rows, plan) for plan in (first, other, both)} == {"billing is away"}
    assert held_because([], first) == ""


def test_an_error_is_told_in_one_line() -> None:
    assert told(QueueError("the disk is full; free some space")) == "the disk is full; free some space"
    assert told(ValueError("two\n  lines")) == "ValueError: two lines"
