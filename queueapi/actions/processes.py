"""What is running: hosts tell of their consumers, the supervisor tells about its children."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from queueapi.choices import ProcessState
from queueapi.models import ConsumerStanding, ManagedProcess, Queue, StaleCommits

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


def count_stale_commits(refused: Mapping[UUID, int]) -> None:
    """So many more commits of these queues were refused; of one that is deleted nobody asks any more."""
    now = timezone.now()
    with transaction.atomic():
        there = Queue.objects.filter(pk__in=refused).values_list("pk", flat=True)
        StaleCommits.objects.bulk_create(
            [StaleCommits(queue_id=one, refused=0, last_at=now) for one in there], ignore_conflicts=True
        )
        for queue_id, number in sorted(refused.items()):
            StaleCommits.objects.filter(queue_id=queue_id).update(refused=F("refused") + number, last_at=now)


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
