"""A large installation as the console shows it: that of the REST lists, with what these have no use for."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from tests.benchmarks.processes import run_together
from tests.benchmarks.rest_bulk import insert
from tests.benchmarks.rest_row_kinds import usage
from tests.benchmarks.rest_rows import DAYS, MADE, open_django
from tests.benchmarks.rest_rows import installation as rest_installation

# Each has an account that is called so; a tenant's people are the first one's.
ROLES: Final = ("administrator", "operator", "tenant_admin", "tenant_viewer")

_ALERTS: Final = 1_000
_LEDGER: Final = 100_000
_AT_ONCE: Final = 5_000


def installation(folder: Path, scale: float) -> Path:
    """The data folder of one of this size; one that was made by an older version of this code is made anew."""
    data, lists = folder / f"console-{scale:g}", rest_installation(folder, scale)
    made, version = data / MADE, (lists / MADE).read_text() + sha256(Path(__file__).read_bytes()).hexdigest()
    if not made.exists() or made.read_text() != version:
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(lists, data)
        made.unlink()
        run_together([partial(_making, data, scale)])
        made.write_text(version)
    return data


def things() -> dict[str, Any]:
    """By kind the key of one, which has many rows where any has."""
    from queueapi import models
    from queueapi.cluster.models import Rebalance, ServiceInstance
    from queueapi.plans import whole_queue_group

    one = UUID(int=1)
    letter = models.DeadLetter.objects.get(pk=one)
    return {
        "queue": one,
        "pause": models.Pause.objects.filter(queue=one).values_list("pk", flat=True).first(),
        "consumer_group": whole_queue_group(models.Queue.objects.get(pk=one)),
        "tenant": one,
        "tenant_profile": models.TenantProfile.objects.get(name="Bench").pk,
        "letter": letter.pk,
        "letter_group": letter.group_id,
        "isolation_request": models.IsolationRequest.objects.get(state="requested").pk,
        "service": ServiceInstance.objects.values_list("pk", flat=True).first(),
        "rebalance": Rebalance.objects.values_list("pk", flat=True).first(),
        "operation": one,
        "alert": models.Alert.objects.values_list("pk", flat=True).first(),
        "silence": models.Silence.objects.values_list("pk", flat=True).first(),
        "alert_rule": models.AlertRule.objects.get(name="Bench").pk,
        "alert_channel": models.AlertChannel.objects.values_list("pk", flat=True).first(),
        "token": models.ApiToken.objects.values_list("pk", flat=True).first(),
        "user": models.Account.objects.values_list("user_id", flat=True).first(),
    }


def own_things() -> dict[str, Any]:
    """The same, of what is the first tenant's."""
    from queueapi import models

    of_tenants: dict[str, Any] = {
        "isolation_request": models.IsolationRequest,
        "operation": models.Operation,
        "alert": models.Alert,
        "token": models.ApiToken,
    }
    own = {name: kind.objects.filter(tenant=UUID(int=1)).first().pk for name, kind in of_tenants.items()}
    return {**things(), **own}


def freshen() -> None:
    """As if all of it had just been sampled: pages say less of what is old."""
    from django.utils import timezone

    from queueapi import models
    from queueapi.cluster.models import ClusterState, ServiceInstance
    from queuecore.topics import ServiceType

    now = timezone.now()
    # As a coordinator would have left it.
    ClusterState.objects.update_or_create(id=1, defaults={"stamp": "made"})
    models.LagCurrent.objects.update(as_of=now)
    models.RequestCurrent.objects.update(as_of=now)
    living = {"heartbeat_at": now, "lease_expires_at": now + timedelta(days=1)}
    ServiceInstance.objects.update(service_types=list(ServiceType), **living)
    models.ConsumerStanding.objects.update(counts={"handled": 7, "total": 9})
    run = {"events": 9, "started_at": now, "finished_at": now, "newest_event_at": now}
    models.PipelineRun.objects.update_or_create(query="events", batch_id=1, defaults=run)
    _freshen_usage(now.date())
    _freshen_histories(UUID(int=1), now)


def _freshen_usage(today: date) -> None:
    """Who asks for the last days is to find some."""
    from queueapi.models import Tenant, TenantUsageDay

    if TenantUsageDay.objects.filter(day=today).exists():
        return
    TenantUsageDay.objects.all().delete()
    days = [today - timedelta(days=back) for back in range(DAYS)]
    tenants = Tenant.objects.values_list("pk", flat=True)
    insert(TenantUsageDay, ({**usage(tenant, 0), "day": day} for tenant in tenants for day in days))


def _freshen_histories(queue: UUID, now: datetime) -> None:
    """Of one queue, for as long as they are kept."""
    from queueapi import models
    from queueapi.config import config

    minute, newest = timedelta(minutes=1), config().minute_retention_days
    lag, took = {"lag_messages": 7, "lag_seconds": 1.5}, {"p50_ms": 1.5, "p95_ms": 7.5, "p99_ms": 9.5}
    kept: Sequence[tuple[Any, timedelta, int, dict[str, float]]] = (
        (models.LagMinute, minute, newest, lag),
        (models.LagHour, timedelta(hours=1), config().hour_retention_days, lag),
        (models.LagDay, timedelta(days=1), config().day_retention_days, lag),
        (models.ProcessingMinute, minute, newest, took),
    )
    last = now.replace(second=0, microsecond=0)
    for model, stretch, days, figures in kept:
        model.objects.filter(queue=queue).delete()
        times = (last - number * stretch for number in range(timedelta(days=days) // stretch))
        insert(model, ({"queue_id": queue, "at": at, **figures} for at in times))


@contextmanager
def _making(data: Path, scale: float) -> Iterator[Callable[[], None]]:
    open_django(data)
    from django.core.management import call_command

    # One that was made before has what came since then.
    call_command("migrate", verbosity=0)
    call_command("migrate", "--database=cluster", verbosity=0)

    def work() -> None:
        from django.db import connection, transaction

        with transaction.atomic():
            _fill(lambda count: max(3, round(count * scale)))
        with connection.cursor() as cursor:
            cursor.execute("analyze")

    yield work


def _fill(many: Callable[[int], int]) -> None:
    from django.db.models import OuterRef, Subquery
    from django.utils import timezone

    from queueapi import models

    now, one = timezone.now(), UUID(int=1)
    _people(one)
    models.DeadLetterBody.objects.get_or_create(letter_id=one, defaults={"payload": b'{"temperature": 21.5}'})
    _tally()
    profile = models.TenantProfile.objects.create(name="Bench")
    models.Tenant.objects.filter(pk=one).update(profile=profile)
    models.AlertChannel.objects.create(name="Bench", kind="email", options={"recipients": ["oncall@example.org"]})
    rule = models.AlertRule.objects.create(name="Bench", metric="lag_messages", threshold=100, resolve_at=80)
    models.Silence.objects.create(rule=rule, reason="an upgrade", created_by="ada", until=now + timedelta(days=900))
    models.IsolationRequest.objects.create(
        tenant_id=UUID(int=2), queues=[{"name": "Main"}], reason="bursts", requested_by_name="eve"
    )
    queues = list(models.Queue.objects.order_by("pk")[: many(_ALERTS)])
    alert = {"rule": rule, "rule_name": "Bench", "metric": "lag_messages", "severity": "warning", "threshold": 100}
    models.Alert.objects.bulk_create(
        models.Alert(
            **alert, queue=queue, subject_key=f"queue:{queue.pk}", subject_name=queue.name, value=150, since=now,
            fired_at=now, reason="150 messages wait",
        )
        for queue in queues
    )  # fmt: skip
    whose = models.Queue.objects.filter(pk=OuterRef("queue")).values("tenant")
    models.Alert.objects.update(tenant=Subquery(whose))
    groups = list(models.DeadLetterGroup.objects.order_by("pk").values_list("pk", "queue_id", "fingerprint"))
    noted = (
        models.LedgerEntry(actor_name=f"person-{number % 100}", action="note", group_id=groups[number % len(groups)][0])
        for number in range(many(_LEDGER))
    )
    models.LedgerEntry.objects.bulk_create(noted, batch_size=_AT_ONCE)
    _heat(one, now)
    hour = now.replace(minute=0, second=0, microsecond=0)
    came = (
        models.DeadLetterTrend(queue_id=queue, fingerprint=fingerprint, at=hour - timedelta(hours=back), letters=back)
        for _, queue, fingerprint in groups
        for back in range(1, 25)
    )
    models.DeadLetterTrend.objects.bulk_create(came, batch_size=_AT_ONCE)


def _people(tenant: UUID) -> None:
    from django.contrib.auth.models import User

    from queueapi.models import Account

    for role in ROLES:
        user = User.objects.create(username=role)
        Account.objects.create(user=user, role=role, tenant_id=tenant if role.startswith("tenant_") else None)


def _tally() -> None:
    """As the index would have counted."""
    from django.db.models import Count

    from queueapi import models

    if models.DeadLetterTally.objects.exists():
        return
    rows = models.DeadLetter.objects.order_by().values_list("group_id", "tenant_id", "state")
    counted = rows.annotate(number=Count("pk"))
    tallies = (
        models.DeadLetterTally(group_id=group, tenant_id=tenant, state=state, letters=number)
        for group, tenant, state, number in counted
    )
    models.DeadLetterTally.objects.bulk_create(tallies, batch_size=_AT_ONCE)


def _heat(queue: UUID, now: Any) -> None:
    from queueapi import models

    entities = [{"key": str(UUID(int=9)), "is_uuid": True, "tenant_id": str(queue), "messages": 7}]
    models.PartitionHeat.objects.bulk_create(
        models.PartitionHeat(queue_id=queue, partition=number, messages=9, share=0.1, entities=entities, as_of=now)
        for number in range(10)
    )
    models.QueueSkew.objects.create(queue_id=queue, skew=1.9, entities_seen=9, as_of=now)
