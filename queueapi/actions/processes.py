"""What is running: hosts announce themselves, the supervisor tells about its children."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from queueapi.choices import ProcessState
from queueapi.models import ConsumerStanding, ManagedProcess, ServiceInstance
from queuecore.topics import ServiceType

LEASE = timedelta(seconds=15)
FORGET_AFTER = timedelta(hours=1)

_ONE_STANDING: Final = ("service", "queue", "consumer_group")
_TOLD_OF_IT: Final = (
    "partitions", "state", "reason", "since", "as_of", "counts", "tenants", "handled_per_s", "budget",
)  # fmt: skip


def renew_lease(service_id: str, host: str, pid: int, partitions: int) -> None:
    """Announce a consumer host, or say that it is still there; also forget those that have been dead for long."""
    now = timezone.now()
    ServiceInstance.objects.update_or_create(
        service_id=service_id,
        defaults={"heartbeat_at": now, "lease_expires_at": now + LEASE, "partitions": partitions},
        create_defaults={
            "service_types": [kind.value for kind in ServiceType],
            "host": host,
            "pid": pid,
            "partitions": partitions,
            "started_at": now,
            "heartbeat_at": now,
            "lease_expires_at": now + LEASE,
        },
    )
    ServiceInstance.objects.filter(lease_expires_at__lt=now - FORGET_AFTER).delete()


def leave(service_id: str) -> None:
    """A host went away on its own."""
    ServiceInstance.objects.filter(service_id=service_id).delete()


def record_standings(service_id: str, standings: Sequence[ConsumerStanding]) -> None:
    """How a host's consumers are now; those that it no longer has are forgotten."""
    now = timezone.now()
    for standing in standings:
        standing.service_id, standing.as_of = service_id, now
    with transaction.atomic():
        ConsumerStanding.objects.bulk_create(
            standings, update_conflicts=True, unique_fields=_ONE_STANDING, update_fields=_TOLD_OF_IT
        )
        ConsumerStanding.objects.filter(service=service_id, as_of__lt=now).delete()


def record_process(
    name: str, state: ProcessState, *, pid: int | None = None, restarts: int = 0, last_exit: str = ""
) -> None:
    """What the supervisor sees of one child."""
    ManagedProcess.objects.update_or_create(
        name=name,
        defaults={
            "state": state,
            "pid": pid,
            "restarts": restarts,
            "last_exit": last_exit[:200],
            "changed_at": timezone.now(),
        },
    )


def forget_processes_except(names: list[str]) -> None:
    """Children of an earlier start that this one does not have."""
    ManagedProcess.objects.exclude(name__in=names).delete()
