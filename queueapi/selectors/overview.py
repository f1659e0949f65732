"""Everything the first page answers: what is broken, since when, and what waits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Max, Q, Sum
from django.utils import timezone

from queueapi.choices import FINAL_OPERATION_STATES, LetterState, OperationState, ProcessState
from queueapi.cluster.models import ServiceInstance
from queueapi.models import (
    ConsumerStanding,
    DeadLetter,
    DeadLetterGroup,
    ManagedProcess,
    Operation,
    Pause,
    Queue,
)
from queueapi.selectors.consumers import all_pauses, troubled_consumers
from queueapi.selectors.freshness import Freshness, pipeline_freshness
from queueapi.selectors.queues import Flow, QueueFigures, figures_of, queues_with_figures, total_lag
from queueapi.selectors.services import services

QUEUES_SHOWN = 20
TROUBLES_SHOWN = 20
FAILURES_REMEMBERED = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class OpenLetters:
    number: int
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """`failed` counts those that ended within the last day: older ones are history."""

    unfinished: int
    failed: int
    last_failed: datetime | None


@dataclass(frozen=True, slots=True)
class Overview:
    freshness: Freshness
    lag: Flow
    queues: list[QueueFigures]
    queue_count: int
    letters: OpenLetters
    operations: OperationCounts
    processes: list[ManagedProcess]
    hosts: list[ServiceInstance]
    pauses: list[Pause]
    troubled_consumers: list[ConsumerStanding]

    @property
    def worst(self) -> QueueFigures | None:
        """The queue most messages wait in, or None where nothing waits."""
        return self.queues[0] if self.queues and self.queues[0].flow.lag_messages else None

    @property
    def running(self) -> list[ManagedProcess]:
        return [process for process in self.processes if process.state == ProcessState.RUNNING]

    @property
    def not_running(self) -> list[ManagedProcess]:
        return [process for process in self.processes if process.state != ProcessState.RUNNING]

    @property
    def restarts(self) -> int:
        return sum(process.restarts for process in self.processes)

    @property
    def live_hosts(self) -> list[ServiceInstance]:
        return [host for host in self.hosts if host.is_alive]


def overview() -> Overview:
    worst_first = queues_with_figures().order_by(F("total_lag").desc(nulls_last=True), "name")
    return Overview(
        freshness=pipeline_freshness(),
        lag=total_lag(),
        queues=figures_of(worst_first[:QUEUES_SHOWN]),
        queue_count=Queue.objects.count(),
        letters=open_letters(),
        operations=operation_counts(),
        processes=list(ManagedProcess.objects.all()),
        hosts=list(services()),
        pauses=list(all_pauses()[:TROUBLES_SHOWN]),
        troubled_consumers=list(troubled_consumers()[:TROUBLES_SHOWN]),
    )


def open_letters() -> OpenLetters:
    number = DeadLetterGroup.objects.aggregate(number=Sum("open_letters"))["number"] or 0
    newest = (
        DeadLetter.objects.filter(state=LetterState.OPEN).order_by("-failed_at").values_list("failed_at", flat=True)
    )
    return OpenLetters(number, newest.first())


def operation_counts() -> OperationCounts:
    recent = Q(state=OperationState.FAILED, finished_at__gte=timezone.now() - FAILURES_REMEMBERED)
    found = Operation.objects.aggregate(
        unfinished=Count("pk", filter=~Q(state__in=FINAL_OPERATION_STATES)),
        failed=Count("pk", filter=recent),
        last_failed=Max("finished_at", filter=recent),
    )
    return OperationCounts(**found)
