"""Pausing and resuming many queues as a whole: all of them or, where one is refused, none."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from queueapi.actions.actor import Actor
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.models import Queue
from queueapi.selectors.queue_rows import QueueRow, queue_rows


@dataclass(frozen=True, slots=True)
class PausePlan:
    """What would become of the queues that were chosen.

    rows       those that would be paused, or resumed
    unchanged  those that are so already
    missing    how many there are no more
    """

    rows: list[QueueRow]
    unchanged: list[QueueRow]
    missing: int

    @property
    def held(self) -> int:
        """How many pauses of a tenant or a partition hold on, whatever is done."""
        return sum(not pause.is_of_everything for row in self.rows for pause in row.pauses)


def plan_pauses(queues: Collection[UUID], *, paused: bool) -> PausePlan:
    """To have all of these paused, or not."""
    found = queue_rows(Queue.objects.filter(pk__in=queues).select_related("tenant").order_by("name", "pk"))
    rows = [row for row in found if row.is_paused != paused]
    unchanged = [row for row in found if row.is_paused == paused]
    return PausePlan(rows, unchanged, len(set(queues)) - len(found))


def pause_queues(actor: Actor, queues: Sequence[Queue], *, reason: str) -> int:
    """How many were not paused before. InvalidInput, and none is paused, where one of them cannot be."""
    with transaction.atomic():
        before = {queue.pk for queue in queues if _is_paused(queue)}
        for queue in queues:
            pause_queue(actor, queue, reason=reason)
    return sum(queue.pk not in before for queue in queues)


def resume_queues(actor: Actor, queues: Sequence[Queue]) -> int:
    """How many were paused before. Pauses of a tenant or a partition hold on."""
    with transaction.atomic():
        return sum(resume_queue(actor, queue) for queue in queues)


def _is_paused(queue: Queue) -> bool:
    return queue.pauses.filter(tenant=None, partition=None).exists()
