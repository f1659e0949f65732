"""A tenant that gets queues of its own, and returns: who decides, what is waited for, and that order survives."""

from uuid import uuid4

import pytest
from django.db import IntegrityError
from django.utils import timezone

from queueapi import runtime
from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.isolated_queues import remove_isolated_queues
from queueapi.actions.isolation import (
    approve_request,
    change_request,
    comment_on_request,
    isolate_tenant,
    refuse_request,
    request_isolation,
    retry_request,
    return_to_shared,
    withdraw_request,
)
from queueapi.actions.isolation_steps import begin_return, end_return, give_return_up
from queueapi.actions.messages import publish_message
from queueapi.actions.operations import NoLongerOurs, cancel_operation, claim_operation, pause_operation
from queueapi.actions.pauses import hold_tenant, pause_queue, resume_queue
from queueapi.actions.provisioning import provision_queue
from queueapi.actions.queue_ends import activate_queue, delete_queue, drain_queue, forget_queue
from queueapi.actions.queues import change_queue, create_queue
from queueapi.actions.rehearsing import rehearse
from queueapi.actions.replays import start_replay
from queueapi.actions.tenant_profiles import create_profile
from queueapi.actions.tenant_removal import delete_tenant
from queueapi.actions.tenants import change_tenant
from queueapi.choices import IsolationState, OperationState, QueueState, Role
from queueapi.cluster.models import Partition
from queueapi.cluster.store import DatabaseStore
from queueapi.errors import AlreadyFinal, InvalidInput, NotAllowed, NotChangeable, NotRemovable, QueueNotActive
from queueapi.models import AuditEntry, ConsumerStanding, IsolationRequest, Operation, Pause, Queue
from queuecore.errors import ProviderUnavailable
from queuecore.testing.waiting import wait_until
from tests.integration.queue_kit import (
    ENTITIES,
    consume,
    fill,
    isolated,
    new_queue,
    run_to_end,
    run_until_final,
    run_until_told,
    stored,
)
from tests.letters import make_letter
from tests.people import api_of, person
from workers.operations import deletion, returning, waiting
from workers.operations import isolation as running

TELEMETRY = [{"name": "Telemetry", "partitions": 2}]


@pytest.fixture(autouse=True)
def impatient(monkeypatch) -> None:
    """Whoever waits is told so at once."""
    monkeypatch.setattr(waiting, "_PATIENCE_S", 0.3)


def actor(name: str, role: Role = Role.ADMINISTRATOR, tenant=None) -> Actor:
    user = person(name, role, tenant)
    return Actor(name, user, tenant_id=None if tenant is None else tenant.id)


def own_queue(installation) -> Queue:
    return Queue.objects.select_related("tenant", "operation", "successor").get(tenant=installation.tenant)


def state_of(request: IsolationRequest) -> IsolationState:
    request.refresh_from_db()
    return request.state_choice


def approved(installation) -> IsolationRequest:
    return isolate_tenant(SYSTEM, installation.tenant, TELEMETRY, "too noisy for the others")


def active(installation) -> IsolationRequest:
    request = approved(installation)
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED
    assert state_of(request) == IsolationState.ACTIVE
    return request


def test_a_tenant_asks_another_approves_and_its_messages_go_to_its_own_topics(installation) -> None:
    eve = actor("eve", Role.TENANT_ADMIN, installation.tenant)
    request = request_isolation(eve, installation.tenant, TELEMETRY, "bursts in May")
    assert (request.state, request.requested_by_name) == (IsolationState.REQUESTED, "eve")
    approve_request(actor("ada"), request, "fine")
    assert state_of(request) == IsolationState.APPROVED
    run_until_final(request.operation)
    assert (state_of(request), request.decided_by_name, request.decision) == (IsolationState.ACTIVE, "ada", "fine")
    own = own_queue(installation)
    topics = {f"telemetry.isolated.{installation.tenant.id}.{number}" for number in range(2)}
    assert own.topic_names() == topics <= set(runtime.provider().admin().topics())
    assert publish_message(installation.queue, installation.tenant, uuid4(), b"1").topic in topics
    told = AuditEntry.objects.filter(object_id=str(request.pk)).order_by("id").values_list("action", flat=True)
    assert list(told) == ["request", "approve", "step", "step", "step"]
    assert request.operation.tenant_id == installation.tenant.id


def test_what_is_left_out_is_as_in_the_shared_queue(installation) -> None:
    shared = installation.queue
    own = isolated(installation.tenant, shared, retries=7)
    assert (own.partitions, own.handler, own.retries) == (shared.partitions, shared.handler, 7)
    assert (own.processing_strategy, own.retry_pause_ms) == (shared.processing_strategy, shared.retry_pause_ms)
    assert own.letter_topic == f"telemetry.isolated.{installation.tenant.id}.dlq"


def test_the_own_queue_is_written_at_once_and_consumed_when_the_shared_one_has_passed_the_cut(installation) -> None:
    tenant, shared = installation.tenant, installation.queue
    fill(shared, tenant, 20)
    request = approved(installation)
    run_until_told(
        request.operation,
        "20 messages are still to be consumed in queue Telemetry that may be before the tenant's own",
    )
    assert (state_of(request), own_queue(installation).state) == (IsolationState.HANDING_OVER, QueueState.HANDING_OVER)
    # What comes later is of others, or after the cut.
    fill(shared, tenant, 10, first=20)
    fill(shared, shared.tenant, 5, first=100)
    own = own_queue(installation)
    assert sum(map(len, stored(own).values())) == 10
    assert sum(offset for _, offset in request.cut[str(own.pk)]) == 20
    assert run_to_end(request.operation).state == OperationState.RUNNING
    consume(shared)
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED
    assert (state_of(request), own_queue(installation).state) == (IsolationState.ACTIVE, QueueState.ACTIVE)
    assert stored(own) == {entity: [n for n in range(20, 30) if ENTITIES[n % 7] == entity] for entity in ENTITIES}


def test_an_isolation_that_waits_behind_a_pause_says_so(installation) -> None:
    fill(installation.queue, installation.tenant, 1)
    pause_queue(SYSTEM, installation.queue, reason="looked into")
    request = approved(installation)
    run_until_told(
        request.operation,
        "1 messages are still to be consumed in queue Telemetry that may be before the tenant's own, and paused is "
        "everything",
    )


def test_a_producer_that_has_not_heard_of_it_is_waited_for(installation) -> None:
    store = DatabaseStore()
    store.acknowledge("slow", 0, 60)
    request = approved(installation)
    run_until_told(request.operation, "waits until slow has heard where the tenant's messages go now")
    assert (state_of(request), request.cut) == (IsolationState.HANDING_OVER, {})
    store.acknowledge("slow", store.routing_version(), 60)
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED
    store.close()


def test_nobody_approves_what_they_have_asked_for(installation) -> None:
    ada = actor("ada")
    request = request_isolation(ada, installation.tenant, TELEMETRY, "trial")
    with pytest.raises(NotAllowed, match="nobody approves what they have asked for themselves"):
        approve_request(ada, request)
    request.refresh_from_db()
    request.decided_by, request.decided_at, request.state = ada.user, request.created_at, IsolationState.APPROVED
    with pytest.raises(IntegrityError):
        request.save()


def test_a_profile_can_approve_by_itself(installation) -> None:
    small = create_profile(SYSTEM, name="small", approves_isolation=True)
    tenant = change_tenant(SYSTEM, installation.tenant, profile=small)
    request = request_isolation(actor("eve", Role.TENANT_ADMIN, tenant), tenant, TELEMETRY, "trial")
    assert (request.state, request.decision) == (IsolationState.APPROVED, "profile small approves it")


def test_a_request_is_changed_commented_and_taken_back_until_it_is_decided_on(installation) -> None:
    tenant = installation.tenant
    eve, ada = actor("eve", Role.TENANT_ADMIN, tenant), actor("ada")
    request = request_isolation(eve, tenant, TELEMETRY, "trial")
    comment_on_request(ada, request, "four are enough")
    changed = change_request(ada, request, queues=[{"name": "Telemetry", "partitions": 4}])
    assert (changed.queues[0]["partitions"], changed.version) == (4, 3)
    assert [(one.author_name, one.text) for one in changed.comments.all()] == [("ada", "four are enough")]
    with pytest.raises(NotChangeable, match="eve asked for it, and can take it back"):
        withdraw_request(actor("mallory", Role.TENANT_ADMIN, tenant), request)
    withdraw_request(eve, request)
    assert state_of(request) == IsolationState.REFUSED
    assert AuditEntry.objects.filter(action="withdraw", object_id=str(request.pk)).count() == 1
    for decide in (approve_request, change_request, withdraw_request):
        with pytest.raises(NotChangeable, match="is refused, and only one that is requested can be"):
            decide(ada, request)
    assert not Queue.objects.filter(tenant=tenant).exists()


def test_a_request_is_refused_with_a_reason_and_another_can_be_made(installation) -> None:
    request = request_isolation(SYSTEM, installation.tenant, TELEMETRY, "trial")
    refuse_request(actor("ada"), request, "no room before June")
    assert (state_of(request), request.decision) == (IsolationState.REFUSED, "no room before June")
    assert request_isolation(SYSTEM, installation.tenant, TELEMETRY, "again").state == IsolationState.REQUESTED


def test_one_isolation_of_a_tenant_is_open_at_a_time(installation) -> None:
    new_queue(installation.queue.tenant, "Orders")
    request_isolation(SYSTEM, installation.tenant, TELEMETRY, "trial")
    with pytest.raises(NotChangeable, match="another isolation of tenant Greenhouse is requested or under way"):
        isolate_tenant(SYSTEM, installation.tenant, [{"name": "Orders"}], "more")
    with pytest.raises(NotChangeable, match="its isolation is requested or under way"):
        delete_tenant(SYSTEM, installation.tenant)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ([{"name": "Telemetri"}], "is called 'Telemetri'; did you mean 'Telemetry'?"),
        ([{"name": "Remembering"}], "handlers of Remembering remember things in memory"),
        ([{"name": "Telemetry"}, {"name": "TELEMETRY"}], "name at least one, and each once"),
        ([], "name at least one"),
        ([{"name": "Telemetry", "partitions": 9}], "partitions: use at most 8"),
        ([{"name": "Telemetry"}, {"name": "Orders"}], "1 queues of its own are there, and 1 the most"),
        ([{"name": "Telemetry", "retries": 100_000}], "retries: 100000 cannot be; use 0 to 1,000 retries"),
        ([{"name": "Cores"}], "no active queue of the rule engine that all share is called 'Cores'"),
    ],
)
def test_what_a_tenant_cannot_have_is_refused_when_it_is_asked_for(installation, asked, why) -> None:
    system = installation.queue.tenant
    new_queue(system, "Orders")
    new_queue(system, "Remembering", state_topic="memory")
    new_queue(system, "Cores", service_type="TB_CORE")
    small = create_profile(SYSTEM, name="small", max_queues=1, max_partitions_per_queue=8)
    tenant = change_tenant(SYSTEM, installation.tenant, profile=small)
    with pytest.raises(InvalidInput, match=why):
        request_isolation(SYSTEM, tenant, asked, "trial")
    assert not IsolationRequest.objects.exists()
    assert not Queue.objects.filter(tenant=tenant).exists()


def test_what_the_profile_limits_is_adapted_where_nobody_asked_for_it(installation) -> None:
    small = create_profile(SYSTEM, name="small", max_retention_ms=3_600_000)
    change_tenant(SYSTEM, installation.tenant, profile=small)
    assert isolated(installation.tenant, installation.queue).retention_ms == 3_600_000


def test_the_systems_queues_are_shared(installation) -> None:
    with pytest.raises(InvalidInput, match="those that all share"):
        request_isolation(SYSTEM, installation.queue.tenant, TELEMETRY, "trial")


def test_order_is_kept_from_whoever_would_go_another_way(installation) -> None:
    with pytest.raises(InvalidInput, match="isolate the tenant instead"):
        create_queue(SYSTEM, installation.tenant, name="telemetry", topic="mine", handler="log")
    own = isolated(installation.tenant, installation.queue)
    for end in (drain_queue, delete_queue):
        with pytest.raises(NotRemovable, match="end that isolation instead"):
            end(SYSTEM, own)


def test_what_is_cancelled_in_time_leaves_nothing_and_can_be_tried_again(installation) -> None:
    request = approved(installation)
    own = own_queue(installation)
    cancel_operation(SYSTEM, request.operation_id)
    assert run_until_final(request.operation).state == OperationState.CANCELLED
    assert (state_of(request), request.error) == (IsolationState.FAILED, "cancelled after 0 of 5")
    assert request.is_cancelled
    assert not Queue.objects.filter(tenant=installation.tenant).exists()
    assert own.topic_names().isdisjoint(runtime.provider().admin().topics())
    retry_request(SYSTEM, request)
    request.refresh_from_db()
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED
    assert (state_of(request), request.error) == (IsolationState.ACTIVE, "")


def test_once_messages_go_there_it_goes_on_to_its_end(installation) -> None:
    fill(installation.queue, installation.tenant, 1)
    request = approved(installation)
    run_to_end(request.operation)
    assert state_of(request) == IsolationState.HANDING_OVER
    with pytest.raises(AlreadyFinal, match="the tenant's messages go to its own queues already"):
        cancel_operation(SYSTEM, request.operation_id)


def test_a_provider_that_is_away_is_waited_for(installation, monkeypatch) -> None:
    request = approved(installation)
    with monkeypatch.context() as patched:
        patched.setattr(running, "provision_queue", _away)
        run_to_end(request.operation)
    assert state_of(request) == IsolationState.PROVISIONING
    assert request.operation.log.last().text == "waits and will try again: the broker is away"
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED


def _away(*_: object) -> None:
    raise ProviderUnavailable("the broker is away")


def test_a_failure_in_the_middle_keeps_the_messages_and_is_gone_on_from(installation, monkeypatch) -> None:
    request = approved(installation)
    with monkeypatch.context() as patched:
        patched.setattr(running, "end_offsets", lambda _: 1 // 0)
        assert run_until_final(request.operation).state == OperationState.FAILED
    assert (state_of(request), own_queue(installation).state) == (IsolationState.FAILED, QueueState.HANDING_OVER)
    assert "ZeroDivisionError" in request.error
    assert not request.is_cancelled
    fill(installation.queue, installation.tenant, 3)
    retry_request(SYSTEM, request)
    request.refresh_from_db()
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED
    assert state_of(request) == IsolationState.ACTIVE
    assert sum(map(len, stored(own_queue(installation)).values())) == 3


def hosted(queue: Queue, service_id: str = "host-1") -> None:
    """As if this host consumed all of the queue by its row as it is now."""
    queue.refresh_from_db()
    for info in queue.partition_infos():
        told = {"service_type": queue.service_type, "queue": queue.name, "number": info.partition}
        epoch = 1 + Partition.objects.count()
        Partition.objects.get_or_create(
            name=str(info), defaults={**told, "tenant": queue.tenant_id, "owner": service_id, "epoch": epoch}
        )
    numbers = [info.partition for info in queue.partition_infos()]
    now = timezone.now()
    ConsumerStanding.objects.update_or_create(
        service_id=service_id,
        queue=queue,
        consumer_group="g",
        defaults={
            "partitions": numbers,
            "queue_version": queue.version,
            "state": "running",
            "since": now,
            "as_of": now,
        },
    )


def test_a_tenant_returns_behind_what_its_own_queue_still_has(installation) -> None:
    tenant, shared = installation.tenant, installation.queue
    request = active(installation)
    own = own_queue(installation)
    fill(shared, tenant, 10)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_until_told(
        request.operation, "waits until somebody has partition 0 of queue Telemetry, and holds the tenant back there"
    )
    assert (own_queue(installation).state, state_of(request)) == (QueueState.ACTIVE, IsolationState.RETIRING)
    assert Pause.objects.get().tenant == tenant
    assert not resume_queue(SYSTEM, shared, tenant=tenant), "it is the operation's to lift"
    hosted(shared)
    run_until_told(request.operation, "10 messages are still to be consumed in the tenant's queue Telemetry")
    assert own_queue(installation).state == QueueState.DRAINING
    with pytest.raises(AlreadyFinal, match="go to the shared queues already"):
        cancel_operation(SYSTEM, request.operation_id)
    # By whichever name it is published.
    fill(own_queue(installation), tenant, 5, first=10)
    assert sum(map(len, stored(shared).values())) == 5
    assert Pause.objects.count() == 1
    consume(own)
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED
    assert (state_of(request), Pause.objects.count()) == (IsolationState.RETIRED, 0)
    assert not Queue.objects.filter(tenant=tenant).exists()
    assert own.topic_names().isdisjoint(runtime.provider().admin().topics())
    assert isolated(tenant, new_queue(shared.tenant, "Later")), "and can be isolated again"


def test_a_host_that_has_not_heard_of_the_hold_is_waited_for(installation) -> None:
    request = active(installation)
    hosted(installation.queue)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_until_told(request.operation, "waits until host-1 holds the tenant back in partition 0 of queue Telemetry")
    hosted(installation.queue)
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED


def test_a_return_that_is_cancelled_in_time_changes_nothing(installation) -> None:
    request = active(installation)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_to_end(request.operation)
    cancel_operation(SYSTEM, request.operation_id)
    assert run_until_final(request.operation).state == OperationState.CANCELLED
    assert (state_of(request), Pause.objects.count()) == (IsolationState.ACTIVE, 0)
    assert own_queue(installation).state == QueueState.ACTIVE


def test_a_return_waits_while_much_is_left_and_nothing_is_held_meanwhile(installation, monkeypatch) -> None:
    monkeypatch.setattr(returning, "SMALL_BACKLOG", 3)
    request = active(installation)
    fill(installation.queue, installation.tenant, 5)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_until_told(request.operation, "waits until 3 messages or fewer wait in the tenant's queue Telemetry; 5 do")
    assert not Pause.objects.exists()


def test_a_return_does_not_begin_while_an_own_queue_is_paused(installation) -> None:
    request = active(installation)
    pause_queue(SYSTEM, own_queue(installation), reason="looked into")
    [warning] = rehearse(lambda: return_to_shared(SYSTEM, request)).warnings
    assert warning == "it waits until queue Telemetry is resumed: paused is everything"
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_until_told(request.operation, "waits until queue Telemetry is resumed: paused is everything")
    assert own_queue(installation).state == QueueState.ACTIVE
    resume_queue(SYSTEM, own_queue(installation))
    run_until_told(
        request.operation, "waits until somebody has partition 0 of queue Telemetry, and holds the tenant back there"
    )


def test_a_return_waits_for_replays_into_an_own_queue(installation) -> None:
    request = active(installation)
    letter = make_letter(installation.queue, tenant=installation.tenant)
    replay = start_replay(SYSTEM, [letter.pk], target=own_queue(installation))
    [warning] = rehearse(lambda: return_to_shared(SYSTEM, request)).warnings
    assert warning == "it waits for the end of 1 replay into queue Telemetry"
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_until_told(request.operation, "waits for the end of 1 replay into queue Telemetry")
    cancel_operation(SYSTEM, replay.operation_id)
    run_until_final(replay.operation)
    run_until_told(
        request.operation, "waits until somebody has partition 0 of queue Telemetry, and holds the tenant back there"
    )


def test_a_replay_that_begins_during_a_return_keeps_the_own_queue_until_its_end(installation) -> None:
    request = active(installation)
    fill(installation.queue, installation.tenant, 1)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_to_end(request.operation)
    hosted(installation.queue)
    run_until_told(request.operation, "1 messages are still to be consumed in the tenant's queue Telemetry")
    own = own_queue(installation)
    letter = make_letter(installation.queue, tenant=installation.tenant)
    replay = start_replay(SYSTEM, [letter.pk], target=own)
    consume(own)
    run_until_told(request.operation, "waits for the end of 1 replay into queue Telemetry")
    assert own_queue(installation).state == QueueState.DRAINING
    assert run_until_final(replay.operation).state == OperationState.SUCCEEDED
    assert len(consume(own)) == 1
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED


def test_a_return_that_failed_is_retried_and_lets_the_tenant_go(installation, monkeypatch) -> None:
    request = active(installation)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_to_end(request.operation)
    hosted(installation.queue)
    with monkeypatch.context() as patched:
        patched.setattr(returning, "end_return", lambda _: 1 // 0)
        run_until_final(request.operation)
    assert (state_of(request), Pause.objects.count()) == (IsolationState.FAILED, 1)
    own = own_queue(installation)
    assert own.state == QueueState.DRAINING
    with pytest.raises(QueueNotActive, match="go to the shared queue of that name, in their order"):
        activate_queue(SYSTEM, own)
    with pytest.raises(NotRemovable, match="end that isolation instead"):
        delete_queue(SYSTEM, own)
    retry_request(SYSTEM, request)
    request.refresh_from_db()
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED
    assert (state_of(request), Pause.objects.count()) == (IsolationState.RETIRED, 0)


def test_nobody_takes_an_own_queue_out_of_its_handover(installation) -> None:
    fill(installation.queue, installation.tenant, 3)
    request = approved(installation)
    assert change_queue(SYSTEM, own_queue(installation), retries=7).state == QueueState.CREATING
    run_to_end(request.operation)
    own = own_queue(installation)
    assert own.state == QueueState.HANDING_OVER
    with pytest.raises(QueueNotActive, match="is just being isolated or returns; change its topics after that"):
        change_queue(SYSTEM, own, retention_ms=60_000)
    assert change_queue(SYSTEM, own, retries=9).operation_id == request.operation_id
    for end in (drain_queue, delete_queue):
        with pytest.raises(NotRemovable, match="is just being isolated"):
            end(SYSTEM, own)
    with pytest.raises(NotRemovable, match="Greenhouse have queues of their own instead of it"):
        delete_queue(SYSTEM, installation.queue, move_to=new_queue(installation.queue.tenant, "Other"))
    consume(installation.queue)
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED
    assert state_of(request) == IsolationState.ACTIVE


def test_an_old_request_is_not_retried_with_the_queues_of_a_newer_one(installation) -> None:
    old = approved(installation)
    cancel_operation(SYSTEM, old.operation_id)
    run_until_final(old.operation)
    newer = active(installation)
    with pytest.raises(NotChangeable, match=f"request {newer.pk} has its queues by now"):
        retry_request(SYSTEM, old)
    assert state_of(newer) == IsolationState.ACTIVE


def test_what_nobody_carries_out_any_more_is_retried(installation) -> None:
    request = approved(installation)
    with pytest.raises(NotChangeable, match="carries it out; wait for its end"):
        retry_request(SYSTEM, request)
    over = {"state": OperationState.FAILED, "finished_at": timezone.now()}
    Operation.objects.filter(pk=request.operation_id).update(**over)
    retry_request(SYSTEM, request)
    request.refresh_from_db()
    assert run_until_final(request.operation).state == OperationState.SUCCEEDED
    assert state_of(request) == IsolationState.ACTIVE


def test_a_runner_that_was_replaced_removes_nothing(installation) -> None:
    request = approved(installation)
    replaced = claim_operation(request.operation_id, "first")
    own = own_queue(installation)
    provision_queue(own)
    Operation.objects.filter(pk=replaced.pk).update(lease_owner="second")
    with pytest.raises(NoLongerOurs):
        remove_isolated_queues(SYSTEM, replaced)
    assert own.topic_names() <= runtime.provider().admin().topics().keys()
    assert own_queue(installation).state == QueueState.CREATING


def test_a_runner_that_was_replaced_changes_nothing(installation) -> None:
    request = active(installation)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    replaced = claim_operation(request.operation_id, "first")
    Operation.objects.filter(pk=replaced.pk).update(lease_owner="second")
    for step in (begin_return, end_return, give_return_up):
        with pytest.raises(NoLongerOurs):
            step(replaced)
    with pytest.raises(NoLongerOurs):
        hold_tenant(SYSTEM, installation.queue, installation.tenant, replaced, "it returns")
    assert not Pause.objects.exists()
    with pytest.raises(NoLongerOurs):
        forget_queue(own_queue(installation), replaced)
    assert own_queue(installation).state == QueueState.ACTIVE


def test_a_runner_that_stood_still_before_topics_go_leaves_them(installation, monkeypatch) -> None:
    request = active(installation)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_to_end(request.operation)
    hosted(installation.queue)

    def stand_still(run, *_: object, is_stoppable: bool) -> None:
        if not is_stoppable:
            Operation.objects.filter(pk=run.operation.pk).update(lease_owner="another")

    monkeypatch.setattr(deletion, "_decide_letters", stand_still)
    wait_until(lambda: run_to_end(request.operation).lease_owner == "another")
    own = own_queue(installation)
    assert own.topic_names() <= runtime.provider().admin().topics().keys()
    assert (own.state, request.operation.state) == (QueueState.DELETING, OperationState.RUNNING)


def test_a_tenants_people_neither_cancel_nor_pause_what_administrators_decide_on(installation) -> None:
    eve = actor("eve", Role.TENANT_ADMIN, installation.tenant)
    request = active(installation)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    for stop in (cancel_operation, pause_operation):
        with pytest.raises(NotAllowed, match="administrators decide on isolation"):
            stop(eve, request.operation_id)
    with pytest.raises(InvalidInput, match="others wait for that"):
        pause_queue(eve, own_queue(installation), reason="mine")


def test_a_pause_of_the_tenant_goes_along(installation) -> None:
    pause_queue(SYSTEM, installation.queue, tenant=installation.tenant, reason="does harm")
    active(installation)
    assert [(pause.queue, pause.reason) for pause in Pause.objects.filter(tenant=None)] == [
        (own_queue(installation), "does harm")
    ]


def test_the_shared_queues_options_stay_the_installations(installation) -> None:
    Queue.objects.filter(pk=installation.queue.pk).update(
        handler="webhook", handler_options={"url": "http://inner.test"}
    )
    active(installation)
    eve = api_of(person("eve", Role.TENANT_ADMIN, installation.tenant))
    assert own_queue(installation).handler_options == {"url": "http://inner.test"}
    assert eve.get(f"/api/v1/queues/{own_queue(installation).pk}").json()["handler_options"] == {}
    assert "inner.test" not in str(eve.get("/api/v1/audit").json())


def test_letters_are_decided_on_before_a_return(installation) -> None:
    request = active(installation)
    make_letter(own_queue(installation), tenant=installation.tenant)
    with pytest.raises(NotChangeable, match="1 dead letters of its queues are open or being replayed"):
        return_to_shared(SYSTEM, request)
    return_to_shared(SYSTEM, request, discard_letters=True)
    request.refresh_from_db()
    run_to_end(request.operation)
    hosted(installation.queue)
    wait_until(lambda: run_to_end(request.operation) and state_of(request) == IsolationState.RETIRED)


def test_a_shared_queue_stays_while_a_tenant_returns_to_it(installation) -> None:
    request = active(installation)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_to_end(request.operation)
    with pytest.raises(NotRemovable, match="messages of tenant Greenhouse are just returning to it"):
        drain_queue(SYSTEM, installation.queue)


def test_a_tenant_that_was_isolated_can_be_deleted(installation) -> None:
    request = active(installation)
    return_to_shared(SYSTEM, request)
    request.refresh_from_db()
    run_to_end(request.operation)
    hosted(installation.queue)
    run_until_final(request.operation)
    delete_tenant(SYSTEM, installation.tenant)
    assert Operation.objects.get(pk=request.operation_id).tenant_id is None
