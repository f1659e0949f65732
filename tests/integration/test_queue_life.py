"""The life of a queue: created, drained, taken back, moved, deleted; and who is told what stands in the way."""

import threading
from uuid import uuid4

import pytest
from django.db import IntegrityError, connections, transaction

from queueapi import backlog, runtime
from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.messages import publish_message
from queueapi.actions.operations import cancel_operation
from queueapi.actions.pauses import pause_queue
from queueapi.actions.queue_ends import activate_queue, delete_queue, drain_queue, stop_consuming
from queueapi.actions.queues import change_queue
from queueapi.actions.replays import start_replay
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.backlog import messages_left
from queueapi.choices import LetterState, OperationState, QueueState
from queueapi.cluster.store import DatabaseStore
from queueapi.errors import AlreadyFinal, InvalidInput, NotRemovable, NotReplayable, QueueNotActive
from queueapi.models import AuditEntry, DeadLetter, LedgerEntry, Operation, Queue
from queueapi.selectors.queue_plans import plan_deletion, plan_drain
from queuecore.errors import ProviderUnavailable, QueueOverloaded
from queuecore.messages import QueueMessage
from queuecore.sending import send_and_wait
from tests.integration.queue_kit import (
    ENTITIES,
    consume,
    fill,
    new_queue,
    numbers_of,
    run_to_end,
    run_until_final,
    run_until_told,
    stored,
)
from tests.integration.replay_kit import make_letters
from tests.letters import make_letter
from workers.operations import deletion, waiting
from workers.operations.runner import run_operation

OPERATOR = Actor("ada")


def state_of(queue: Queue) -> str:
    return Queue.objects.values_list("state", flat=True).get(pk=queue.pk)


def topics() -> set[str]:
    return set(runtime.provider().admin().topics())


def fail(*_: object) -> None:
    raise ProviderUnavailable("the provider is away")


def routed() -> set[str]:
    return {key.queue for key in DatabaseStore().routing().queues}


def test_a_queue_that_the_provider_cannot_take_yet_is_created_later(installation, monkeypatch) -> None:
    with monkeypatch.context() as away:
        away.setattr("queueapi.actions.provisioning.provision_queue", fail)
        queue = new_queue(installation.queue.tenant, "Late")
    assert (queue.state, queue.operation.state) == (QueueState.CREATING, OperationState.RUNNING)
    assert "Late" not in routed()
    with pytest.raises(QueueNotActive, match="queue Late is being created; try again when it is active"):
        publish_message(queue, installation.tenant, uuid4(), b"")
    assert run_to_end(queue.operation).state == OperationState.SUCCEEDED
    assert (state_of(queue), "late.2" in topics(), "Late" in routed()) == (QueueState.ACTIVE, True, True)
    queue.refresh_from_db()
    assert publish_message(queue, installation.tenant, uuid4(), b"").offset == 0


def test_one_that_the_provider_refuses_is_mended_or_deleted(installation, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise InvalidInput("no broker has room")

    with monkeypatch.context() as full:
        full.setattr("queueapi.actions.provisioning.provision_queue", refuse)
        queue = new_queue(installation.queue.tenant, "Refused")
    assert (queue.state, queue.operation.state) == (QueueState.CREATING, OperationState.FAILED)
    assert queue.operation.error == "no broker has room"
    assert change_queue(OPERATOR, queue, retries=4).state == QueueState.ACTIVE


def test_the_database_holds_no_other_state(installation) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Queue.objects.filter(pk=installation.queue.pk).update(state="sleeping")
    with pytest.raises(IntegrityError), transaction.atomic():
        Queue.objects.filter(pk=installation.queue.pk).update(successor=installation.queue.pk)


def test_topics_are_created_and_changed_as_the_queue_says(installation) -> None:
    queue = new_queue(installation.queue.tenant, "Kept", retention_ms=3_600_000, segment_bytes=2_000_000)
    spec = runtime.provider().admin().topics()["kept.0"]
    assert (spec.retention_ms, spec.retention_bytes, spec.segment_bytes) == (3_600_000, -1, 2_000_000)
    change_queue(OPERATOR, queue, retention_ms=-1, retention_bytes=10_000_000)
    there = runtime.provider().admin().topics()
    assert [(there[name].retention_ms, there[name].retention_bytes) for name in ("kept.0", "kept.2")] == [
        (-1, 10_000_000)
    ] * 2
    assert there["kept.dlq"].retention_ms == 90 * 24 * 3_600_000


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"retention_ms": -2}, "retention_ms: -2 cannot be; use -1 to 3,153,600,000,000 ms; -1 is for ever"),
        ({"retention_bytes": -5}, "bytes in each partition; -1 is without limit"),
        ({"segment_bytes": 10}, "segment_bytes: 10 cannot be; use 1,048,576 to 2,147,483,647 bytes"),
        ({"replication_factor": 0}, "replication_factor: 0 cannot be; use 1 to 100 copies"),
        ({"replication_factor": 2}, "replication_factor is 2, and this provider keeps one copy; leave it out"),
        ({"custom_properties": {"compression.type": "zstd"}}, "have no 'compression.type'; it has: none"),
        ({"custom_properties": {"a": 1}}, "custom_properties: give an object of texts"),
        ({"custom_properties": []}, "custom_properties: give an object of texts"),
        ({"max_backlog": -1}, "max_backlog: -1 cannot be; use 0 to 1,000,000,000,000 messages; 0 is without limit"),
        ({"poll_interval_ms": 60_001}, "poll_interval_ms: 60001 cannot be; use 1 to 60,000 ms"),
        ({"pack_processing_timeout_ms": 10**9}, "use 1 to 86,400,000 ms"),
        ({"retry_pause_ms": 10**9, "max_retry_pause_ms": 10**9}, "use 0 to 3,600,000 ms"),
        ({"state": "active"}, "state of a queue is not entered; drain, activate or delete the queue"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(installation, wrong, told) -> None:
    with pytest.raises(InvalidInput) as refused:
        change_queue(OPERATOR, installation.queue, **wrong)
    assert told in refused.value.message


def test_no_more_messages_wait_than_may(installation, monkeypatch) -> None:
    monkeypatch.setattr(backlog, "_KNOWN_FOR_S", 0)
    queue = new_queue(installation.queue.tenant, "Small", max_backlog=3)
    fill(queue, installation.tenant, 3)
    with pytest.raises(QueueOverloaded, match="3 messages wait in queue Small, and 3 may"):
        fill(queue, installation.tenant, 1)
    consume(queue)
    fill(queue, installation.tenant, 1)


def test_a_drained_queue_takes_nothing_more_and_is_done_when_it_is_empty(installation, monkeypatch) -> None:
    monkeypatch.setattr("workers.operations.waiting._PATIENCE_S", 0)
    queue = new_queue(installation.queue.tenant, "Full")
    fill(queue, installation.tenant, 20)
    operation = drain_queue(OPERATOR, queue)
    queue.refresh_from_db()
    with pytest.raises(QueueNotActive, match="is being drained and takes no more messages; activate it"):
        fill(queue, installation.tenant, 1)
    assert "Full" not in routed()
    run_until_told(operation, "20 messages are still to be consumed")
    assert (operation.state, operation.total, operation.done) == (OperationState.RUNNING, 20, 0)
    assert len(consume(queue)) == 20
    assert (run_to_end(operation).state, operation.done) == (OperationState.SUCCEEDED, 20)
    assert state_of(queue) == QueueState.DRAINING
    activate_queue(OPERATOR, queue)
    queue.refresh_from_db()
    fill(queue, installation.tenant, 1)
    told = AuditEntry.objects.filter(object_id=str(queue.pk)).order_by("id").values_list("action", "actor_name")
    assert list(told) == [("create", "system"), ("drain", "ada"), ("activate", "ada")]


def test_a_drain_that_waits_behind_a_pause_says_so(installation, monkeypatch) -> None:
    monkeypatch.setattr(waiting, "_PATIENCE_S", 0)
    fill(installation.queue, installation.tenant, 1)
    pause_queue(OPERATOR, installation.queue, reason="looked into", partition=2)
    operation = drain_queue(OPERATOR, installation.queue)
    run_until_told(operation, "1 messages are still to be consumed, and paused is partition 2")


def test_who_cancels_a_drain_has_the_queue_again(installation, monkeypatch) -> None:
    monkeypatch.setattr("workers.operations.waiting._PATIENCE_S", 0)
    fill(installation.queue, installation.tenant, 1)
    operation = drain_queue(OPERATOR, installation.queue)
    run_to_end(operation)
    cancel_operation(OPERATOR, operation.pk)
    assert run_to_end(operation).state == OperationState.CANCELLED
    assert (state_of(installation.queue), "Telemetry" in routed()) == (QueueState.ACTIVE, True)


def test_what_is_published_to_a_drained_queue_may_go_to_another(installation) -> None:
    other = new_queue(installation.queue.tenant, "Other")
    drain_queue(OPERATOR, installation.queue, to=other)
    installation.queue.refresh_from_db()
    assert publish_message(installation.queue, installation.tenant, ENTITIES[0], b"0").topic.startswith("other.")
    with pytest.raises(NotRemovable, match="Telemetry is drained or moved to it; wait for the end"):
        delete_queue(OPERATOR, other)


def test_an_empty_queue_is_deleted_with_all_that_it_has(installation) -> None:
    queue = new_queue(installation.queue.tenant, "Gone", state_topic="gone_state")
    fill(queue, installation.tenant, 5)
    consume(queue)
    plan = plan_deletion(queue)
    assert (plan.messages, plan.why_not, plan.consumers) == (0, [], 0)
    assert {"gone.0", "gone.2", "gone.dlq", "gone_state.0"} <= set(plan.topics)
    assert len(plan.groups) == 4
    assert run_to_end(delete_queue(OPERATOR, queue)).state == OperationState.SUCCEEDED
    assert not Queue.objects.filter(pk=queue.pk).exists()
    assert not [name for name in topics() if name.startswith("gone")]
    assert not [name for name in runtime.provider().admin().groups() if "gone" in name]
    assert AuditEntry.objects.get(object_id=str(queue.pk), action="remove").before["name"] == "Gone"
    again = new_queue(installation.queue.tenant, "Gone")
    fill(again, installation.tenant, 3)
    assert messages_left(again) == 3


def test_what_is_left_is_moved_in_order_and_once(installation) -> None:
    queue, other = (
        new_queue(installation.queue.tenant, "From"),
        new_queue(installation.queue.tenant, "To", partitions=5),
    )
    fill(queue, installation.tenant, 10)
    consume(queue)
    fill(queue, installation.tenant, 60)
    operation = delete_queue(OPERATOR, queue, move_to=other)
    queue.refresh_from_db()
    with pytest.raises(QueueNotActive):
        fill(queue, installation.tenant, 1)
    assert (run_to_end(operation).state, operation.done) == (OperationState.SUCCEEDED, operation.total)
    assert stored(other) == numbers_of(60)
    assert not Queue.objects.filter(pk=queue.pk).exists()


def test_dead_letters_are_decided_on_first(installation) -> None:
    queue = installation.queue
    make_letters(queue, 3)
    with pytest.raises(NotRemovable, match="3 of its dead letters are open or being replayed; replay or discard them"):
        delete_queue(OPERATOR, queue)
    assert run_to_end(delete_queue(OPERATOR, queue, discard_letters=True)).state == OperationState.SUCCEEDED
    assert not DeadLetter.objects.exists()
    assert list(LedgerEntry.objects.order_by("id").values_list("action", "count")) == [("discard", 3), ("purge", 3)]


def test_letters_that_come_meanwhile_keep_the_queue(installation, monkeypatch) -> None:
    monkeypatch.setattr("workers.operations.waiting._PATIENCE_S", 0)
    queue = installation.queue
    operation = delete_queue(OPERATOR, queue)
    letters = make_letters(queue, 1)
    run_until_told(operation, "waits for a decision on 1 dead letters: replay or discard them")
    Queue.objects.filter(pk=queue.pk).update(state=QueueState.DELETING)
    with pytest.raises(NotReplayable, match="a queue that is being deleted"):
        start_replay(OPERATOR, letters)


def test_what_is_tied_to_others_is_not_ended(installation) -> None:
    system = installation.queue.tenant
    target = new_queue(system, "Target")
    new_queue(system, "Sender", handler="forward", handler_options={"queue": "target"})
    new_queue(installation.tenant, "Own", handler="forward", handler_options={"queue": "Target"})
    for plan in (plan_drain(target), plan_deletion(target)):
        assert plan.forwarders == ["Own", "Sender"]
        assert "handlers of Own, Sender send to it; change or delete those queues first" in plan.why_not
    main = new_queue(system, "Main", topic="tb_rule_engine")
    with pytest.raises(NotRemovable, match="Main of the system takes what finds no other queue, and stays"):
        delete_queue(OPERATOR, main)
    own = Queue.objects.get(name="Own")
    with pytest.raises(NotRemovable, match="takes messages of another tenant alone"):
        drain_queue(OPERATOR, installation.queue, to=own)
    with pytest.raises(NotRemovable, match="is the queue itself; name another"):
        delete_queue(OPERATOR, own, move_to=own)


def test_a_handler_sends_to_no_queue_that_is_drained(installation) -> None:
    drain_queue(OPERATOR, installation.queue)
    with pytest.raises(InvalidInput, match="there is no queue 'Telemetry'"):
        new_queue(installation.queue.tenant, "Sender", handler="forward", handler_options={"queue": "Telemetry"})


def test_once_consumers_leave_there_is_no_way_back(installation) -> None:
    queue = installation.queue
    operation = delete_queue(OPERATOR, queue)
    assert delete_queue(OPERATOR, queue) == operation
    Queue.objects.filter(pk=queue.pk).update(state=QueueState.DELETING)
    with pytest.raises(AlreadyFinal, match="that cannot be taken back any more"):
        cancel_operation(OPERATOR, operation.pk)
    with pytest.raises(QueueNotActive, match="nobody consumes it any more"):
        activate_queue(OPERATOR, queue)
    with pytest.raises(QueueNotActive, match="queue Telemetry is deleting"):
        change_queue(OPERATOR, queue, retries=2)


def test_the_deletion_of_one_that_was_only_drained_so_far_can_be_cancelled(installation) -> None:
    operation = delete_queue(OPERATOR, installation.queue)
    assert activate_queue(OPERATOR, installation.queue).state == QueueState.ACTIVE
    assert run_to_end(operation).state == OperationState.CANCELLED
    assert (state_of(installation.queue), "telemetry.0" in topics()) == (QueueState.ACTIVE, True)


def test_how_a_drained_queue_is_consumed_can_be_mended_but_not_its_topics(installation) -> None:
    drain_queue(OPERATOR, installation.queue)
    assert change_queue(OPERATOR, installation.queue, retries=7).retries == 7
    with pytest.raises(QueueNotActive, match="its topics are not changed any more"):
        change_queue(OPERATOR, installation.queue, retention_ms=5)


def test_what_is_acknowledged_while_somebody_deletes_the_queue_is_not_lost(installation) -> None:
    """Every message whose sender heard of no error is in the queue that the others were moved to."""
    source, target = installation.queue, new_queue(installation.queue.tenant, "Target")
    acknowledged: list[int] = []
    begun = threading.Event()

    def publish() -> None:
        number = 0
        try:
            while True:
                publish_message(source, installation.tenant, ENTITIES[0], b"%d" % number)
                acknowledged.append(number)
                number += 1
                begun.set()
        except QueueNotActive:
            return
        finally:
            begun.set()
            connections.close_all()

    sender = threading.Thread(target=publish)
    sender.start()
    assert begun.wait(30)
    operation = delete_queue(OPERATOR, source, move_to=target)
    while not Operation.objects.get(pk=operation.pk).state_choice.is_final:
        Operation.objects.filter(pk=operation.pk).update(due_at=None)
        run_operation(operation.pk)
    sender.join(30)
    assert acknowledged
    assert stored(target)[ENTITIES[0]][: len(acknowledged)] == acknowledged


def test_messages_that_come_after_all_are_consumed_before_anything_is_removed(installation, monkeypatch) -> None:
    """From somebody who had asked where to send them before the queue was drained."""
    queue = installation.queue

    def send_late(*_: object) -> None:
        info = queue.partition_info(0)
        send_and_wait(runtime.provider().producer(), info, QueueMessage(ENTITIES[0], b"0"), 10)

    operation = delete_queue(OPERATOR, queue)
    with monkeypatch.context() as late:
        late.setattr("workers.operations.waiting._PATIENCE_S", 0)
        late.setattr("workers.operations.deletion._await_consumers", send_late)
        run_until_told(operation, "1 messages are still to be consumed")
    assert state_of(queue) == QueueState.DRAINING
    assert len(consume(queue)) == 1
    assert run_to_end(operation).state == OperationState.SUCCEEDED


def test_a_replay_that_was_quicker_than_a_deletion_has_its_letters_handled(installation, monkeypatch) -> None:
    queue, letter = new_queue(installation.tenant, "Own"), make_letter(installation.queue, tenant=installation.tenant)
    monkeypatch.setattr(waiting, "_PATIENCE_S", 0)
    replays = []

    def stop_late(*args: object) -> bool:
        if not replays:
            replays.append(start_replay(SYSTEM, [letter.pk], target=queue))
        return stop_consuming(*args)

    monkeypatch.setattr(deletion, "stop_consuming", stop_late)
    operation = delete_queue(SYSTEM, queue)
    run_until_told(operation, "waits for the end of 1 replay into queue Own")
    assert Queue.objects.get(pk=queue.pk).state == QueueState.DRAINING
    assert run_until_final(replays[0].operation).state == OperationState.SUCCEEDED
    assert len(consume(queue)) == 1
    assert run_until_final(operation).state == OperationState.SUCCEEDED


def test_no_replay_begins_into_a_queue_that_has_just_been_deleted(installation) -> None:
    queue, letter = new_queue(installation.tenant, "Own"), make_letter(installation.queue, tenant=installation.tenant)
    Queue.objects.filter(pk=queue.pk).update(state=QueueState.DELETING)
    with pytest.raises(NotReplayable, match="which is deleting; name another target"):
        start_replay(SYSTEM, [letter.pk], target=queue)
    Queue.objects.filter(pk=queue.pk).delete()
    with pytest.raises(NotReplayable, match="has just been deleted; name another target"):
        start_replay(SYSTEM, [letter.pk], target=queue)
    letter.refresh_from_db()
    assert letter.state == LetterState.OPEN


def test_who_changes_a_queue_that_somebody_has_deleted_hears_so(installation) -> None:
    run_to_end(delete_queue(OPERATOR, installation.queue))
    for act in (change_queue, drain_queue, delete_queue, activate_queue):
        with pytest.raises(QueueNotActive, match="queue Telemetry has just been deleted"):
            act(OPERATOR, installation.queue)


def test_of_two_who_delete_and_drain_at_once_one_is_refused_or_comes_second(installation) -> None:
    together, heard = threading.Barrier(2), []

    def act(action) -> None:
        try:
            together.wait(30)
            heard.append(action(OPERATOR, installation.queue).kind)
        except (NotRemovable, QueueNotActive) as error:
            heard.append(error.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=act, args=(action,)) for action in (delete_queue, drain_queue)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert "delete_queue" in heard
    assert set(heard) <= {"delete_queue", "drain_queue", "not_removable"}
    deletion = Operation.objects.get(kind="delete_queue")
    assert run_to_end(deletion).state == OperationState.SUCCEEDED
    assert not Queue.objects.filter(pk=installation.queue.pk).exists()
    assert ensure_system_tenant().queues.count() == 0
    assert SYSTEM.user is None
