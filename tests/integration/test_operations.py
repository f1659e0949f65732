"""An operation's row is the truth: claims, leases, cancelling, waking."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from queueapi.actions import operations as actions
from queueapi.actions.actor import SYSTEM
from queueapi.choices import OperationState
from queueapi.errors import AlreadyFinal
from queueapi.models import AuditEntry, Operation
from queueapi.version import VERSION
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import wait_until
from workers.operations import runner
from workers.operations.run import LeaseLost, NotYet, OperationRun

pytestmark = pytest.mark.usefixtures("installation")


class Counting:
    """An operation that counts to its total, doing `between` before each step."""

    def __init__(self, between=lambda run: None) -> None:
        self.between = between
        self.given_back_at: int | None = None

    def settle(self, run: OperationRun) -> None: ...

    def run(self, run: OperationRun) -> str:
        for number in range(run.operation.done, run.operation.total):
            self.between(run)
            run.step(number + 1)
        return "counted"

    def give_back(self, run: OperationRun) -> None:
        self.given_back_at = run.operation.done


@pytest.fixture
def counting(monkeypatch) -> Counting:
    kind = Counting()
    monkeypatch.setitem(runner.KINDS, "count", kind)
    return kind


def start(total: int = 3) -> Operation:
    return actions.start_operation(SYSTEM, "count", "Count", {}, total)


def finished(operation: Operation) -> Operation:
    runner.run_operation(operation.id)
    operation.refresh_from_db()
    return operation


def test_it_runs_to_its_end_and_tells_about_it(counting) -> None:
    operation = finished(start())
    assert (operation.state_choice, operation.done, operation.percent) == (OperationState.SUCCEEDED, 3, 100)
    assert [entry.text for entry in operation.log.all()] == ["counted"]
    assert operation.result == {"message": "counted"}
    assert AuditEntry.objects.filter(action="start_operation", object_id=str(operation.id)).exists()


def test_only_one_runner_holds_it(counting) -> None:
    operation = start()
    assert actions.claim_operation(operation.id, "first") is not None
    assert actions.claim_operation(operation.id, "second") is None


def test_a_dead_runners_operation_goes_on_where_it_was(counting) -> None:
    operation = start()
    claimed = actions.claim_operation(operation.id, "dead")
    assert claimed is not None
    assert actions.record_progress(claimed, 2)
    Operation.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    operation = finished(operation)
    assert operation.state_choice is OperationState.SUCCEEDED
    assert operation.log.first().text == "its runner is gone; taken up again after 2 of 3"
    assert not actions.record_progress(claimed, 3), "the dead one came back and must find the lease gone"


def test_cancelling_stops_it_at_the_next_step_and_gives_back_the_rest(counting) -> None:
    counting.between = lambda run: run.operation.done == 1 and actions.cancel_operation(SYSTEM, run.operation.id)
    operation = finished(start())
    assert (operation.state_choice, operation.done) == (OperationState.CANCELLED, 2)
    assert counting.given_back_at == 2


def test_what_never_ran_is_cancelled_without_running(counting) -> None:
    operation = start()
    actions.cancel_operation(SYSTEM, operation.id)
    assert finished(operation).state_choice is OperationState.CANCELLED
    assert operation.done == 0


def test_what_is_over_cannot_be_cancelled(counting) -> None:
    operation = finished(start())
    with pytest.raises(AlreadyFinal, match="already succeeded"):
        actions.cancel_operation(SYSTEM, operation.id)


def test_a_failure_is_told_and_gives_back(counting) -> None:
    counting.between = lambda run: 1 / 0
    operation = finished(start())
    assert operation.state_choice is OperationState.FAILED
    assert operation.error == "ZeroDivisionError: division by zero"
    assert counting.given_back_at == 0


def test_what_cannot_be_given_back_is_not_over(counting, monkeypatch) -> None:
    """As if the process died while giving back: another runner ends it properly."""
    counting.between = lambda run: 1 / 0
    operation = start()
    with monkeypatch.context() as dying:
        dying.setattr(counting, "give_back", killed)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(operation.id)
    operation.refresh_from_db()
    assert operation.state_choice is OperationState.RUNNING
    Operation.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert finished(operation).state_choice is OperationState.FAILED
    assert counting.given_back_at == 0


def killed(_: Operation) -> None:
    raise KeyboardInterrupt


def test_a_kind_that_a_worker_does_not_know_is_left_to_another(caplog, monkeypatch) -> None:
    operation = start()
    for _ in range(2):
        Operation.objects.update(due_at=None)
        assert finished(operation).state_choice is OperationState.RUNNING
    assert (operation.lease_owner, operation.error) == ("", "")
    [told] = operation.log.all()
    assert told.text == f"waits for a worker that knows operations of kind 'count'; {VERSION} does not"
    assert "this worker does not know: 'count'" in caplog.text
    monkeypatch.setitem(runner.KINDS, "count", Counting())
    Operation.objects.update(due_at=None)
    assert finished(operation).state_choice is OperationState.SUCCEEDED


def test_a_runner_that_fails_after_another_took_over_ends_nothing(counting) -> None:
    def stand_still(run: OperationRun) -> None:
        Operation.objects.filter(pk=run.operation.pk).update(lease_owner="another")
        raise RuntimeError("it was long ago")

    counting.between = stand_still
    operation = finished(start())
    assert (operation.state_choice, operation.lease_owner) == (OperationState.RUNNING, "another")
    assert counting.given_back_at is None


def test_pausing_stops_it_at_the_next_step_until_it_is_resumed(counting) -> None:
    counting.between = lambda run: run.operation.done == 1 and actions.pause_operation(SYSTEM, run.operation.id)
    operation = finished(start())
    assert (operation.state_choice, operation.is_paused, operation.done) == (OperationState.RUNNING, True, 2)
    assert operation.lease_owner == ""
    assert finished(operation).done == 2, "nobody takes it up"
    Operation.objects.update(woken_at=None)
    assert actions.wake_stale_operations() == 0
    counting.between = lambda run: None
    actions.resume_operation(SYSTEM, operation.id)
    assert finished(operation).state_choice is OperationState.SUCCEEDED
    assert [entry.text for entry in operation.log.all()] == ["paused by system", "resumed by system", "counted"]


def test_pausing_and_resuming_twice_is_fine_and_told_once(counting) -> None:
    operation = start()
    for action in (actions.pause_operation, actions.resume_operation):
        action(SYSTEM, operation.id)
        action(SYSTEM, operation.id)
    assert operation.log.count() == 2


def test_what_is_paused_can_be_cancelled(counting) -> None:
    operation = start()
    actions.pause_operation(SYSTEM, operation.id)
    actions.cancel_operation(SYSTEM, operation.id)
    assert finished(operation).state_choice is OperationState.CANCELLED
    assert not operation.is_paused


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_is_over_cannot_be_held_up(counting, verb) -> None:
    operation = finished(start())
    with pytest.raises(AlreadyFinal, match=f"already succeeded; there is nothing to {verb}"):
        getattr(actions, f"{verb}_operation")(SYSTEM, operation.id)


def test_what_is_being_cancelled_cannot_be_paused(counting) -> None:
    operation = start()
    actions.cancel_operation(SYSTEM, operation.id)
    with pytest.raises(AlreadyFinal, match="is being cancelled"):
        actions.pause_operation(SYSTEM, operation.id)


def test_one_that_waits_is_taken_up_when_it_is_due(counting) -> None:
    def wait(run):
        raise NotYet(timedelta(minutes=5), "the provider is away")

    counting.between = wait
    operation = finished(start())
    assert (operation.state_choice, operation.lease_owner) == (OperationState.RUNNING, "")
    assert finished(operation).attempts == 1, "it is not due yet"
    assert actions.wake_stale_operations() == 0
    Operation.objects.update(due_at=timezone.now())
    assert actions.wake_stale_operations() == 1
    finished(operation)
    assert [entry.text for entry in operation.log.all()] == ["the provider is away"], "told once"


def test_one_that_waits_is_cancelled_at_once(counting) -> None:
    def wait(run):
        raise NotYet(timedelta(minutes=5), "the provider is away")

    counting.between = wait
    operation = finished(start())
    actions.cancel_operation(SYSTEM, operation.id)
    assert finished(operation).state_choice is OperationState.CANCELLED


def test_a_step_that_takes_long_does_not_lose_the_lease(counting, monkeypatch) -> None:
    monkeypatch.setattr("workers.operations.run._BEAT_S", 0.001)
    seen = []

    def outlast(run):
        Operation.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
        seen.append(wait_until(lambda: Operation.objects.filter(lease_expires_at__gt=timezone.now()).exists()))

    counting.between = outlast
    assert finished(start(1)).state_choice is OperationState.SUCCEEDED
    assert seen == [True]


def test_a_heart_that_finds_another_owner_stops_the_runner(counting, monkeypatch) -> None:
    monkeypatch.setattr("workers.operations.run._BEAT_S", 0.001)

    def robbed(run):
        Operation.objects.update(lease_owner="somebody else")
        wait_until(lambda: is_lost(run))
        run.check_lease()

    counting.between = robbed
    operation = finished(start())
    assert (operation.lease_owner, operation.done) == ("somebody else", 0)


def test_one_whose_heart_has_not_beaten_for_a_lease_has_lost_it(counting) -> None:
    clock = ManualClock()
    run = OperationRun(start(), clock)
    clock.advance(actions.LEASE.total_seconds() - 1)
    assert not is_lost(run)
    clock.advance(1)
    assert is_lost(run)


def is_lost(run: OperationRun) -> bool:
    try:
        run.check_lease()
    except LeaseLost:
        return True
    return False


def test_the_sweeper_wakes_lost_ones_only(counting) -> None:
    lost, fresh, held = start(), start(), start()
    long_ago = timezone.now() - timedelta(minutes=1)
    Operation.objects.filter(id__in=[lost.id, held.id]).update(woken_at=long_ago)
    actions.claim_operation(held.id, "alive")
    assert actions.wake_stale_operations() == 1
    assert actions.wake_stale_operations() == 0
    lost.refresh_from_db()
    assert lost.woken_at > long_ago
    fresh.refresh_from_db()
    assert fresh.state_choice is OperationState.PENDING


def test_a_wake_up_that_cannot_be_sent_is_no_failure(counting, settings, caplog) -> None:
    from queueapi import wakeups

    settings.CELERY = {**settings.CELERY, "broker_url": "redis://127.0.0.1:1/0", "broker_transport_options": {}}
    wakeups._sender.cache_clear()
    operation = start()
    assert "the sweeper will send it again" in caplog.text
    assert Operation.objects.filter(id=operation.id, state=OperationState.PENDING).exists()


def test_a_database_that_was_away_fails_nothing(counting) -> None:
    def away(run):
        raise OperationalError("the connection was lost")

    counting.between = away
    operation = finished(start())
    assert (operation.state_choice, operation.lease_owner) == (OperationState.RUNNING, "")
    assert operation.log.get().text == "waits and will try again: the connection was lost"
