"""Some of everything that the console shows, in the database of a test."""

from datetime import timedelta
from itertools import count
from typing import Any, Final
from uuid import uuid4

from django.utils import timezone

from queueapi.actions.actor import SYSTEM
from queueapi.actions.operations import log_operation, start_operation
from queueapi.actions.replays import start_replay
from queueapi.choices import LedgerAction, RebalanceState, Role
from queueapi.cluster.models import Partition, Rebalance, ServiceInstance
from queueapi.models import (
    AuditEntry,
    ConsumerStanding,
    DeadLetterTrend,
    IsolationRequest,
    LagCurrent,
    LagMinute,
    LedgerEntry,
    ManagedProcess,
    PartitionHeat,
    Pause,
    PipelineRun,
    Queue,
    QueueSkew,
    RequestCurrent,
    Tenant,
    TenantProfile,
)
from queueapi.plans import whole_queue_group
from queuecore.topics import ServiceType
from tests.alerts import make_alert, make_channel, make_rule, make_silence
from tests.letters import make_letter
from tests.people import person, token_of

LETTERS: Final = 2
PARTITIONS: Final = 3

_numbers = count(1)
_epochs = count(1)


def make_things(number: int) -> dict[str, Any]:
    """So many of each kind, and as many letters for each queue; by kind the key of one."""
    return [_make(next(_numbers)) for _ in range(number)][-1]


def _make(number: int) -> dict[str, Any]:
    now = timezone.now()
    profile = TenantProfile.objects.create(name=f"Profile {number}")
    tenant = Tenant.objects.create(name=f"Tenant {number}", profile=profile)
    queue = Queue.objects.create(
        tenant=tenant, name=f"Queue{number}", topic=f"queue{number}", handler="log", partitions=PARTITIONS
    )
    letters = [make_letter(queue, tenant=tenant, fingerprint=f"{number:016}") for _ in range(LETTERS)]
    service = _cluster(number, queue, now)
    _figures(number, queue, letters[0].fingerprint, now)
    pause = Pause.objects.create(queue=queue, reason="billing is away", paused_by="ada")
    channel = make_channel()
    rule = make_rule(queue)
    rule.channels.add(channel)
    user = person(f"person-{number}", Role.OPERATOR)
    token, _ = token_of(user, ["queues:read"])
    replay = start_replay(SYSTEM, [letters[1].pk])
    log_operation(replay.operation, "begun")
    start_operation(SYSTEM, "count", "Count", {}, 3)
    AuditEntry.objects.create(
        actor_name="ada", action="change", object_type="queue", object_id=str(queue.pk), after={"retries": number}
    )
    LedgerEntry.objects.create(actor_name="ada", action=LedgerAction.NOTE, group_id=letters[0].group_id)
    return {
        "queue": queue.pk,
        "pause": pause.pk,
        "consumer_group": whole_queue_group(queue),
        "tenant": tenant.pk,
        "tenant_profile": profile.pk,
        "letter": letters[0].pk,
        "letter_group": letters[0].group_id,
        "isolation_request": _isolation(number).pk,
        "service": service.pk,
        "rebalance": Rebalance.objects.latest("created_at").pk,
        "operation": replay.operation_id,
        "alert": make_alert(queue, rule).pk,
        "silence": make_silence(queue).pk,
        "alert_rule": rule.pk,
        "alert_channel": channel.pk,
        "token": token.pk,
        "user": user.pk,
    }


def _isolation(number: int) -> IsolationRequest:
    """Of another tenant: who has asked does not ask again."""
    asked = {"queues": [{"name": "Telemetry"}], "reason": "bursts", "requested_by_name": "ada"}
    return IsolationRequest.objects.create(tenant=Tenant.objects.create(name=f"Asking {number}"), **asked)


def _cluster(number: int, queue: Queue, now: Any) -> ServiceInstance:
    service = ServiceInstance.objects.create(
        service_id=f"service-{number}",
        incarnation="1",
        service_types=list(ServiceType),
        host="h",
        pid=1,
        started_at=now,
        heartbeat_at=now,
        lease_expires_at=now + timedelta(hours=1),
    )
    for info in queue.partition_infos():
        Partition.objects.create(
            name=info.full_topic_name,
            service_type=queue.service_type,
            queue=queue.name,
            number=info.partition or 0,
            tenant=queue.tenant_id,
            owner=service.service_id,
            target=service.service_id,
            epoch=next(_epochs),
        )
    moves = [[f"queue{number}.0", "service-0", service.service_id]]
    Rebalance.objects.create(
        id=uuid4(), state=RebalanceState.DONE, cause="request", reason="disk", created_at=now, finished_at=now,
        moves=1, listed=moves,
    )  # fmt: skip
    ConsumerStanding.objects.create(
        queue=queue, service_id=service.service_id, state="running", since=now, as_of=now, counts={"handled": 7}
    )
    ManagedProcess.objects.create(name=f"process-{number}", state="running", changed_at=now)
    return service


def _figures(number: int, queue: Queue, fingerprint: str, now: Any) -> None:
    hour = now.replace(minute=0, second=0, microsecond=0)
    DeadLetterTrend.objects.create(queue=queue, fingerprint=fingerprint, at=hour, letters=LETTERS)
    for partition in range(PARTITIONS):
        sample = {"end_offset": 9_000, "lag_messages": 7, "lag_seconds": 12.5, "as_of": now}
        place = {"queue": queue, "partition": partition}
        LagCurrent.objects.create(**place, topic=f"{queue.topic}.{partition}", consumer_group="c", **sample)
        named = [{"tenant_id": str(queue.tenant_id), "messages": 9}]
        entities = [{"key": str(uuid4()), "is_uuid": True, **named[0]}]
        PartitionHeat.objects.create(**place, messages=9, share=1 / 3, entities=entities, tenants=named, as_of=now)
    what_if = [{"partitions": 6, "hash_function": "murmur3_128", "skew": 1.2, "moved": 0.5}]
    QueueSkew.objects.create(queue=queue, skew=1.9, entities_seen=3, what_if=what_if, as_of=now)
    minute = now.replace(second=0, microsecond=0)
    LagMinute.objects.create(queue=queue, at=minute, lag_messages=21)
    RequestCurrent.objects.create(
        service_id=f"service-{number}", request_topic="prices", pending=3, oldest_pending_ms=1_200, as_of=now
    )
    PipelineRun.objects.create(
        query="events", batch_id=number, events=9, started_at=now, finished_at=now, newest_event_at=now
    )
