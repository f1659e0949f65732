"""What is running: hosts tell of their consumers, the supervisor tells about its children."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from queueapi.choices import ProcessState
from queueapi.models import ConsumerStanding, ManagedProcess

FORGET_AFTER = timedelta(hours=1)

_ONE_STANDING: Final = ("service_id", "queue", "consumer_group")
_TOLD_OF_IT: Final = (
    "partitions", "queue_version", "state", "reason", "since", "as_of", "counts", "tenants", "handled_per_s", "budget",
)  # fmt: skip


def record_standings(service_id: str, standings: Sequence[ConsumerStanding]) -> None:
    """How a host's consumers are now; those that it no longer has are forgotten, and those of hosts long gone."""
    now = timezone.now()
    for standing in standings:
        standing.service_id, standing.as_of = service_id, now
    with transaction.atomic():
        ConsumerStanding.objects.bulk_create(
            standings, update_conflicts=True, unique_fields=_ONE_STANDING, update_fields=_TOLD_OF_IT
        )
        mine_before = Q(service_id=service_id, as_of__lt=now)
        ConsumerStanding.objects.filter(mine_before | Q(as_of__lt=now - FORGET_AFTER)).delete()


def forget_standings(service_id: str) -> None:
    """Its host went away on its own."""
    ConsumerStanding.objects.filter(service_id=service_id).delete()


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
