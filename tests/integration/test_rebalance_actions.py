"""Rebalances that are asked for: planned, started, followed by an operation, cancelled."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.operations import cancel_operation, pause_operation
from queueapi.actions.rebalances import (
    cancel_rebalance,
    plan_draining,
    plan_rebalance,
    set_service_draining,
    start_rebalance,
)
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.choices import OperationState
from queueapi.cluster.models import ClusterState, Rebalance, ServiceInstance
from queueapi.errors import AlreadyFinal, InvalidInput
from queueapi.models import AuditEntry, Operation, Queue
from queueapi.selectors.rebalances import operation_of
from queuecore.cluster.services import ServiceInfo
from queuecore.errors import StoreUnavailable, UnknownRebalance, UnknownService
from queuecore.testing.clock import ManualClock
from tests.cluster_kit import FakeCluster, partitions_named
from workers.operations import runner
from workers.operations.rebalance import RebalanceKind


@pytest.fixture(autouse=True)
def _hasty(monkeypatch) -> None:
    """Whoever waits for the cluster here waits in vain: nobody does anything meanwhile."""
    monkeypatch.setitem(runner.KINDS, "rebalance", RebalanceKind(ManualClock()))


@pytest.fixture
def cluster(database) -> FakeCluster:
    cluster = FakeCluster(partitions_named("Orders", "orders", 6))
    cluster.join("a", "b")
    cluster.settle()
    return cluster


@pytest.fixture
def queue(cluster) -> Queue:
    return Queue.objects.create(
        tenant=ensure_system_tenant(), name="Orders", topic="orders", handler="log", partitions=6
    )


def ran(operation: Operation) -> Operation:
    Operation.objects.update(due_at=None)
    runner.run_operation(operation.id)
    operation.refresh_from_db()
    return operation


def rebalance_of(operation: Operation) -> Rebalance:
    return Rebalance.objects.get(id=UUID(operation.params["rebalance"]))


def log_of(operation: Operation) -> list[str]:
    return [entry.text for entry in operation.log.all()]


def test_a_plan_changes_nothing(cluster, queue) -> None:
    version = cluster.store.version()
    seen = plan_rebalance(leaving=["b"], joining=[ServiceInfo("c")], partitions={queue: 8})
    assert (len(seen.plan.moves), seen.placements) == (0, 8)
    assert seen.is_assumed
    assert cluster.store.version() == version
    assert not Operation.objects.exists()


def test_the_pause_of_a_plan_is_what_rebalances_have_shown(cluster) -> None:
    cluster.join("c")
    cluster.settle()
    seen = plan_rebalance()
    assert not seen.is_assumed
    assert 250 <= seen.pause_ms < 60_000


def test_what_draining_would_move_and_back(cluster) -> None:
    assert {move.source for move in plan_draining("b", draining=True).plan.moves} == {"b"}
    set_service_draining(SYSTEM, "b", draining=True)
    cluster.settle()
    assert len(plan_draining("b", draining=False).plan.moves) == 3
    with pytest.raises(UnknownService):
        plan_draining("nobody", draining=True)


def test_one_that_is_asked_for_is_followed_to_its_end(cluster) -> None:
    user = User.objects.create_user("ada")
    operation = start_rebalance(Actor("ada", user), reason=" b gets a new disk ", leaving=["b", "b"])
    assert (operation.kind, operation.summary, operation.created_by) == ("rebalance", "Rebalance without b", user)
    assert ServiceInstance.objects.get(service_id="b").is_draining
    rebalance = rebalance_of(operation)
    assert (rebalance.state, rebalance.reason, rebalance.requested_by) == ("planned", "b gets a new disk", "ada")
    assert operation_of(rebalance.id) == operation

    cluster.step()
    assert ran(operation).state_choice is OperationState.RUNNING
    assert (operation.total, operation.done) == (3, 0)
    cluster.move()
    cluster.step()
    assert ran(operation).state_choice is OperationState.SUCCEEDED
    assert (operation.total, operation.done) == (3, 3)
    assert cluster.counts() == {"a": 6, "b": 0}
    planned, waits, done = log_of(operation)
    assert planned == "planned: 3 partitions change hands, 0 are placed"
    assert waits == "waits until all partitions have been released and taken"
    assert done.startswith("3 of 3 partitions are where they should be; those that moved were consumed by nobody for")
    told = set(AuditEntry.objects.filter(actor_name="ada").values_list("action", "object_id"))
    assert {("drain", "b"), ("start_rebalance", str(rebalance.id))} <= told


def test_one_with_nothing_to_do_is_done(cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="to be sure")
    cluster.step()
    assert ran(operation).state_choice is OperationState.SUCCEEDED
    assert log_of(operation)[-1] == "everything was where it should be; nothing moved"


def test_without_anybody_to_do_it_waits_and_says_so(cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="to be sure")
    long_ago = timezone.now() - timedelta(seconds=1)
    ServiceInstance.objects.update(lease_expires_at=long_ago)
    ClusterState.objects.update(coordinator_until=long_ago)
    for _ in range(2):
        assert ran(operation).state_choice is OperationState.RUNNING
    assert log_of(operation) == ["no service instance is alive to do it; it begins when one has started"]
    assert operation.lease_owner == ""
    cluster.join("a", "b")
    cluster.settle()
    assert ran(operation).state_choice is OperationState.SUCCEEDED


def test_a_dead_runners_rebalance_is_followed_by_the_next(cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="b goes", leaving=["b"])
    cluster.step()
    ran(operation)
    Operation.objects.update(lease_owner="dead", lease_expires_at=timezone.now() - timedelta(seconds=1))
    cluster.move()
    cluster.step()
    assert ran(operation).state_choice is OperationState.SUCCEEDED
    assert len([text for text in log_of(operation) if text.startswith("planned:")]) == 1


def test_one_that_fails_says_why(cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="b goes", leaving=["b"])
    for _ in range(4):
        cluster.step()
        cluster.clock.advance(61)
        ran(operation)
    cluster.step()
    assert ran(operation).state_choice is OperationState.FAILED
    assert "b did not release in time" in operation.error
    assert any(text.startswith("planned once more, try 2") for text in log_of(operation))


def test_cancelling_the_operation_cancels_the_rebalance(cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="b goes", leaving=["b"])
    cluster.step()
    ran(operation)
    cancel_operation(SYSTEM, operation.id)
    assert ran(operation).state_choice is OperationState.CANCELLING, "it is over when the rebalance is"
    assert rebalance_of(operation).is_unwanted
    cluster.step()
    assert ran(operation).state_choice is OperationState.CANCELLED
    assert rebalance_of(operation).state == "cancelled"
    assert cluster.counts() == {"a": 3, "b": 3}


def test_cancelling_the_rebalance_cancels_the_operation(cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="b goes", leaving=["b"])
    cluster.step()
    cancelled = cancel_rebalance(SYSTEM, rebalance_of(operation).id)
    assert cancelled.is_unwanted
    operation.refresh_from_db()
    assert operation.state_choice is OperationState.CANCELLING
    cancel_rebalance(SYSTEM, cancelled.id)
    assert AuditEntry.objects.filter(action="cancel_rebalance").count() == 1, "asking twice is fine, and told once"
    cluster.step()
    assert ran(operation).state_choice is OperationState.CANCELLED
    with pytest.raises(AlreadyFinal, match="already cancelled; there is nothing to cancel"):
        cancel_rebalance(SYSTEM, cancelled.id)


def test_a_cancellation_that_comes_too_late_is_told(cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="b goes", leaving=["b"])
    cluster.settle()
    cancel_operation(SYSTEM, operation.id)
    assert ran(operation).state_choice is OperationState.CANCELLED
    assert log_of(operation)[0].startswith("too late to cancel: 3 of 3 partitions are where they should be")


def test_one_that_nobody_asked_for_is_cancelled_as_well(cluster) -> None:
    cluster.join("c")
    cluster.step()
    [rebalance] = Rebalance.objects.filter(state="running")
    assert operation_of(rebalance.id) is None
    cancel_rebalance(SYSTEM, rebalance.id)
    cluster.step()
    rebalance.refresh_from_db()
    assert rebalance.state == "cancelled"


def test_it_cannot_be_paused(cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="b goes")
    with pytest.raises(InvalidInput, match="cancel it instead"):
        pause_operation(SYSTEM, operation.id)


def test_while_the_cluster_cannot_be_asked_it_is_waited_for(cluster, monkeypatch) -> None:
    def away(*args: object) -> None:
        raise StoreUnavailable("the cluster's database is away")

    operation = start_rebalance(SYSTEM, reason="b goes")
    with monkeypatch.context() as broken:
        broken.setattr("queueapi.cluster.store.DatabaseStore.find_rebalance", away)
        assert ran(operation).state_choice is OperationState.RUNNING
    assert log_of(operation) == ["waits and will try again: the cluster's database is away"]


def test_an_operation_whose_rebalance_is_forgotten_fails(cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="b goes")
    Rebalance.objects.filter(id=rebalance_of(operation).id).delete()
    assert ran(operation).state_choice is OperationState.FAILED
    assert "there is no rebalance" in operation.error


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501, "a\0b"])
def test_a_reason_is_needed(cluster, reason) -> None:
    with pytest.raises(InvalidInput, match="say in 1 to 500 characters why"):
        start_rebalance(SYSTEM, reason=reason, leaving=["b"])
    assert not ServiceInstance.objects.filter(is_draining=True).exists()


def test_what_can_only_be_planned_is_refused_with_what_to_do(cluster, queue) -> None:
    with pytest.raises(InvalidInput, match="a service joins by being started"):
        start_rebalance(SYSTEM, reason="more", joining=[ServiceInfo("c")])
    with pytest.raises(InvalidInput, match="by being resized: resize it"):
        start_rebalance(SYSTEM, reason="more", partitions={queue: 12})
    assert not Operation.objects.exists()


def test_of_services_that_leave_all_are_known_or_nothing_is_changed(cluster) -> None:
    before = Rebalance.objects.count()
    with pytest.raises(UnknownService, match="'nobody'"):
        start_rebalance(SYSTEM, reason="b goes", leaving=["b", "nobody"])
    assert not ServiceInstance.objects.filter(is_draining=True).exists()
    assert (Operation.objects.count(), Rebalance.objects.count()) == (0, before)
    assert not AuditEntry.objects.exists()


def test_draining_is_told_once_and_undone(cluster) -> None:
    assert set_service_draining(SYSTEM, "b", draining=True)
    assert not set_service_draining(SYSTEM, "b", draining=True)
    cluster.settle()
    assert cluster.counts() == {"a": 6, "b": 0}
    assert set_service_draining(SYSTEM, "b", draining=False)
    cluster.settle()
    assert cluster.counts() == {"a": 3, "b": 3}
    assert list(AuditEntry.objects.order_by("id").values_list("action", "object_id")) == [
        ("drain", "b"),
        ("undrain", "b"),
    ]


def test_what_is_not_there_is_neither_drained_nor_cancelled(cluster) -> None:
    cluster.store.leave(cluster.members["b"])
    with pytest.raises(UnknownService):
        set_service_draining(SYSTEM, "b", draining=True)
    with pytest.raises(UnknownRebalance):
        cancel_rebalance(SYSTEM, UUID(int=1))


def test_a_queue_that_the_cluster_does_not_know_cannot_be_planned_for(cluster) -> None:
    other = Queue.objects.create(tenant=ensure_system_tenant(), name="Other", topic="other", handler="log")
    with pytest.raises(InvalidInput, match="no partition of queue Other is known to the cluster yet"):
        plan_rebalance(partitions={other: 4})


def test_what_makes_no_sense_is_invalid_input(cluster, queue) -> None:
    with pytest.raises(InvalidInput, match="use 1 to 1000"):
        plan_rebalance(partitions={queue: 0})
    with pytest.raises(InvalidInput, match="'a' is there already"):
        plan_rebalance(joining=[ServiceInfo("a")])
