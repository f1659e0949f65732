"""Another number of partitions for a queue: new ones take over from those it had; nothing is lost or out of order."""

import pytest
from django.db import IntegrityError, transaction

from queueapi import runtime
from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.isolation import return_to_shared
from queueapi.actions.messages import publish_message
from queueapi.actions.operations import cancel_operation
from queueapi.actions.pauses import pause_queue
from queueapi.actions.queue_ends import delete_queue, drain_queue
from queueapi.actions.queues import change_queue
from queueapi.actions.replays import start_replay
from queueapi.actions.resizing import resize_queue
from queueapi.actions.tenant_profiles import change_profile
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.choices import LetterState, OperationState
from queueapi.cluster.models import Partition
from queueapi.cluster.store import DatabaseStore
from queueapi.errors import AlreadyFinal, InvalidInput, NotChangeable, NotRemovable, QueueNotActive
from queueapi.models import AuditEntry, IsolationRequest, Pause, Queue
from queueapi.selectors.message_scans import MessageQuery, scan_messages
from queueapi.selectors.resize_plans import plan_resize
from queuecore.deadletter.policy import DeadLetterPolicy
from queuecore.deadletter.writing import letter_target
from queuecore.messages import QueueMessage
from queuecore.routing import QueueKey
from queuecore.sending import send_and_wait
from queuecore.topics import ServiceType, TopicPartitionInfo
from tests.integration.queue_kit import (
    ENTITIES,
    consume,
    fill,
    isolated,
    new_queue,
    numbers_of,
    run_to_end,
    run_until_final,
    run_until_told,
    stored,
)
from tests.integration.replay_kit import make_letters
from tests.letters import make_letter
from workers.cluster import KnownPartitions
from workers.operations import resizing, waiting
from workers.operations.runner import run_operation

OPERATOR = Actor("ada")


@pytest.fixture
def orders(installation, monkeypatch) -> Queue:
    monkeypatch.setattr(waiting, "_PATIENCE_S", 0.0)
    return new_queue(ensure_system_tenant(), "Orders", partitions=3)


def topics() -> set[str]:
    return {name for name in runtime.provider().admin().topics() if name.startswith("orders")}


def routed(queue: Queue) -> range:
    key = QueueKey(ServiceType.of(queue.service_type), queue.name, queue.tenant_id)
    return DatabaseStore().routing().queues[key].numbers


def consumed(queue: Queue) -> list[int]:
    """What the cluster is to consume of it."""
    return [one.number for one in KnownPartitions().read() if one.queue == queue.name]


def again(queue: Queue) -> Queue:
    return Queue.objects.get(pk=queue.pk)


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_new_partitions_take_over(installation, orders, partitions) -> None:
    fill(orders, installation.tenant, 20)
    operation = resize_queue(OPERATOR, orders, partitions=partitions)
    run_until_told(operation, "20 messages are still to be consumed in the former partitions")
    during = again(orders)
    assert (routed(orders), consumed(orders)) == (range(3, 3 + partitions), [0, 1, 2])
    assert during.partition_numbers == list(range(3 + partitions))
    fill(during, installation.tenant, 20, first=20)
    assert len(consume(during.with_partitions(during.former_numbers))) == 20
    run_until_final(operation)
    after = again(orders)
    assert (operation.state, after.former_numbers) == (OperationState.SUCCEEDED, range(0))
    assert consumed(orders) == list(range(3, 3 + partitions))
    assert topics() == {"orders.dlq", *(f"orders.{number}" for number in range(3, 3 + partitions))}
    expected = {entity: [one for one in numbers if one >= 20] for entity, numbers in numbers_of(40).items()}
    assert stored(after) == expected


def test_numbers_are_never_used_again(installation, orders) -> None:
    for partitions, first in ((5, 3), (2, 8), (3, 10)):
        run_until_final(resize_queue(OPERATOR, again(orders), partitions=partitions))
        assert again(orders).routed_numbers == range(first, first + partitions)
    with pytest.raises(IntegrityError), transaction.atomic():
        Queue.objects.filter(pk=orders.pk).update(former_first=9, former_partitions=2)
    with pytest.raises(IntegrityError), transaction.atomic():
        Queue.objects.filter(pk=orders.pk).update(former_first=0)


def test_what_is_published_meanwhile_is_found(installation, orders) -> None:
    fill(orders, installation.tenant, 7)
    operation = resize_queue(OPERATOR, orders, partitions=4)
    run_to_end(operation)
    fill(again(orders), installation.tenant, 7, first=7)
    found = scan_messages(again(orders), MessageQuery(entity=ENTITIES[2]))
    assert sorted(int(record.data) for _, record in found.found) == [2, 9]
    assert len(scan_messages(again(orders), MessageQuery()).found) == 14


def test_until_messages_go_elsewhere_it_can_be_cancelled(installation, orders) -> None:
    operation = resize_queue(OPERATOR, orders, partitions=5)
    cancel_operation(OPERATOR, operation.pk)
    run_until_final(operation)
    assert operation.state == OperationState.CANCELLED
    assert (again(orders).routed_numbers, topics()) == (range(3), {"orders.dlq", "orders.0", "orders.1", "orders.2"})
    fill(orders, installation.tenant, 3)
    operation = resize_queue(OPERATOR, orders, partitions=5)
    run_to_end(operation)
    with pytest.raises(AlreadyFinal, match="go to its new partitions already"):
        cancel_operation(OPERATOR, operation.pk)


def test_what_comes_late_is_handled_before_anything_is_removed(installation, orders, monkeypatch) -> None:
    """From a producer that had asked where to before, and stood still for longer than anybody waits."""
    operation = resize_queue(OPERATOR, orders, partitions=2)
    send = runtime.provider().producer()

    def released(*_: object) -> None:
        monkeypatch.setattr(resizing, "_await_released", lambda *_: None)
        send_and_wait(send, orders.partition_info(1), QueueMessage(ENTITIES[0], b"late"), 10)

    monkeypatch.setattr(resizing, "_await_released", released)
    run_until_told(operation, "1 messages are still to be consumed in the former partitions")
    assert consumed(orders) == [0, 1, 2]
    [late] = consume(again(orders).with_partitions(range(3)))
    assert late.data == b"late"
    assert run_until_final(operation).state == OperationState.SUCCEEDED


def test_topics_stay_while_a_host_has_them(installation, orders) -> None:
    operation = resize_queue(OPERATOR, orders, partitions=2)
    Partition.objects.create(name="orders.1", queue="Orders", number=1, tenant=orders.tenant_id, owner="a", epoch=1)
    run_until_told(operation, "waits until hosts have released 1 former partitions")
    assert "orders.1" in topics()
    Partition.objects.all().delete()
    assert run_until_final(operation).state == OperationState.SUCCEEDED


def test_one_that_failed_goes_on(installation, orders, monkeypatch) -> None:
    operation = resize_queue(OPERATOR, orders, partitions=2)
    with monkeypatch.context() as broken:
        broken.setattr(resizing, "await_producers", lambda *_, **__: 1 / 0)
        run_operation(operation.pk)
    operation.refresh_from_db()
    assert operation.state == OperationState.FAILED
    assert again(orders).former_numbers == range(3)
    with pytest.raises(NotChangeable, match="a resize to 2 partitions was left half done; ask for as many"):
        resize_queue(OPERATOR, orders, partitions=7)
    with pytest.raises(NotRemovable, match="it is just being resized"):
        drain_queue(OPERATOR, orders)
    plan = plan_resize(again(orders), 2)
    assert (plan.created, plan.topics) == ([], ["orders.0", "orders.1", "orders.2"])
    assert run_until_final(resize_queue(OPERATOR, orders, partitions=2)).state == OperationState.SUCCEEDED
    assert again(orders).partition_numbers == [3, 4]


def test_the_plan_says_what_would_be_made_and_removed(installation, orders) -> None:
    plan = plan_resize(orders, 2)
    assert plan.summary == "queue Orders would be resized to 2 partitions, 3 to 4"
    assert (plan.created, plan.topics) == (["orders.3", "orders.4"], ["orders.0", "orders.1", "orders.2"])
    assert plan.groups == [f"tb_rule_engine_orders-consumer-{number}" for number in range(3)]
    assert {change.what for change in plan.changes} >= {"queue Orders", "topic orders.3", "topic orders.0"}


def test_what_stands_in_the_way(installation, orders) -> None:
    def refused(queue: Queue, partitions: int = 5) -> str:
        with pytest.raises(NotChangeable) as refusal:
            resize_queue(OPERATOR, queue, partitions=partitions)
        return refusal.value.message

    assert "it has 3 partitions already" in refused(orders, 3)
    stateful = new_queue(ensure_system_tenant(), "Stateful", state_topic="memory")
    assert "its handler keeps its state by partition" in refused(stateful)
    other = new_queue(ensure_system_tenant(), "Other")
    delete_queue(OPERATOR, other, move_to=orders)
    assert "Other is drained or moved to it" in refused(orders)
    assert "Other is draining, and only active ones are resized" in refused(other)
    third = new_queue(ensure_system_tenant(), "Third")
    resize_queue(OPERATOR, third, partitions=4)
    assert "'Resize queue Third to 4 partitions' is under way" in refused(third)
    with pytest.raises(NotRemovable, match="it is just being resized"):
        drain_queue(OPERATOR, third)
    with pytest.raises(QueueNotActive, match="it is just being resized; change its topics after that"):
        change_queue(OPERATOR, third, retention_ms=3_600_000)
    assert change_queue(OPERATOR, third, retries=9).retries == 9


def test_a_replay_into_it_comes_first(installation, orders) -> None:
    start_replay(OPERATOR, make_letters(orders, 2))
    with pytest.raises(NotChangeable, match="1 replay sends letters to it"):
        resize_queue(OPERATOR, orders, partitions=5)


def test_a_profile_limits_it(installation, orders) -> None:
    tenant = installation.tenant
    own = isolated(tenant, orders)
    tenant.refresh_from_db()
    change_profile(SYSTEM, tenant.profile, max_partitions_per_queue=4)
    with pytest.raises(InvalidInput, match="partitions: use at most 4; 5 were asked for"):
        resize_queue(OPERATOR, own, partitions=5)
    operation = resize_queue(OPERATOR, own, partitions=4)
    with pytest.raises(NotChangeable, match="Orders is just being resized"):
        return_to_shared(SYSTEM, IsolationRequest.objects.get())
    assert run_until_final(operation).tenant_id == tenant.pk
    assert f"orders.isolated.{tenant.pk}.6" in topics()


def test_letters_stay_in_their_topic(installation, orders) -> None:
    """It has as many partitions as the queue had when it was made."""
    run_until_final(resize_queue(OPERATOR, orders, partitions=5))
    resized = again(orders)
    assert (resized.letter_topic_partitions, runtime.provider().admin().topics()["orders.dlq"].partitions) == (3, 3)
    policy = DeadLetterPolicy(partitions=3)
    places = [letter_target(resized.partition_info(number), policy) for number in resized.routed_numbers]
    assert [place.partition for place in places] == [0, 1, 2, 0, 1]
    assert {place.topic for place in places} == {"orders.dlq"}


def test_a_letter_of_a_former_partition_goes_where_its_entity_is(installation, orders) -> None:
    letter = make_letter(orders, key=ENTITIES[3], partition=2, payload=b"3")
    run_until_final(resize_queue(OPERATOR, orders, partitions=5))
    expected = publish_message(again(orders), installation.tenant, ENTITIES[3], b"10")
    replay = start_replay(OPERATOR, [letter.pk])
    run_until_final(replay.operation)
    letter.refresh_from_db()
    assert letter.state == LetterState.REPLAYING
    after = again(orders)
    assert stored(after)[ENTITIES[3]] == [10, 3]
    assert expected.partition in after.routed_numbers


def test_a_pause_of_a_former_partition_goes_with_it(installation, orders) -> None:
    pause_queue(OPERATOR, orders, partition=1, reason="slow disk")
    with pytest.raises(InvalidInput, match="queue Orders has no partition 3; name one from 0 to 2"):
        pause_queue(OPERATOR, orders, partition=3, reason="none such")
    run_until_final(resize_queue(OPERATOR, orders, partitions=2))
    assert not Pause.objects.filter(queue=orders).exists()
    with pytest.raises(InvalidInput, match="has no partition 1; name one from 3 to 4"):
        pause_queue(OPERATOR, again(orders), partition=1, reason="gone")
    actions = AuditEntry.objects.filter(object_type="queue", object_id=str(orders.pk)).order_by("id")
    assert list(actions.values_list("action", flat=True)) == ["create", "pause", "resize", "resume"]
    told = actions.get(action="resize")
    assert (told.before, told.after) == (
        {"partitions": 3, "first_partition": 0},
        {"partitions": 2, "first_partition": 3},
    )


def test_it_is_no_field_that_is_entered(installation, orders) -> None:
    with pytest.raises(InvalidInput, match="partitions of a queue is not entered; resize the queue"):
        change_queue(OPERATOR, orders, partitions=5)


def test_a_letter_names_the_partition_of_its_queue() -> None:
    info = TopicPartitionInfo("orders", 7)
    assert letter_target(info, DeadLetterPolicy(topic="given-up", partitions=3)).partition == 1
    assert letter_target(info).partition == 7
