"""An operation's row is the truth: claims, leases, cancelling, waking."""

from datetime import timedelta

import pytest
from django.utils import timezone

from queueapi.actions import operations as actions
from queueapi.actions.actor import SYSTEM
from queueapi.choices import OperationState
from queueapi.errors import AlreadyFinal
from queueapi.models import AuditEntry, Operation
from workers.operations import runner
from workers.operations.run import OperationRun

pytestmark = pytest.mark.usefixtures("installation")


class Counting:
    """An operation that counts to its total, doing `between` before each step."""

    def __init__(self, between=lambda run: None) -> None:
        self.between = between
        self.given_back_at: int | None = None

    def run(self, run: OperationRun) -> str:
        for number in range(run.operation.done, run.operation.total):
            self.between(run)
            run.step(number + 1)
        return "counted"

    def give_back(self, operation: Operation) -> None:
        self.given_back_at = operation.done


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
    assert AuditEntry.objects.filter(action="start_operation", object_id=str(operation.id)).exists()


def test_only_one_runner_holds_it(counting) -> None:
    operation = start()
    assert actions.claim_operation(operation.id, "first") is not None
    assert actions.claim_operation(operation.id, "second") is None


def test_a_dead_runners_operation_goes_on_where_it_was(counting) -> None:
    operation = start()
    claimed = actions.claim_operation(operation.id, "dead")
    assert claimed is not None
    assert actions.extend_lease(claimed, 2)
    Operation.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    operation = finished(operation)
    assert operation.state_choice is OperationState.SUCCEEDED
    assert operation.log.first().text == "taken up again after 2 of 3"
    assert not actions.extend_lease(claimed, 3), "the dead one came back and must find the lease gone"


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


def test_a_kind_nobody_knows_fails_clearly() -> None:
    operation = finished(start())
    assert operation.state_choice is OperationState.FAILED
    assert "'count'" in operation.error


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
