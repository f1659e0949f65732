"""Everything the first page answers: what is broken, since when, and what waits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Max, Q
from django.utils import timezone

from queueapi.choices import FINAL_OPERATION_STATES, LetterState, OperationState, ProcessState
from queueapi.models import DeadLetter, ManagedProcess, Operation, Queue, ServiceInstance
from queueapi.selectors.freshness import Freshness, pipeline_freshness
from queueapi.selectors.queues import Flow, QueueFigures, figures_of, queues_with_figures, total_lag

QUEUES_SHOWN = 20
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
        hosts=list(ServiceInstance.objects.all()),
    )


def open_letters() -> OpenLetters:
    found = DeadLetter.objects.filter(state=LetterState.OPEN).aggregate(number=Count("pk"), newest=Max("failed_at"))
    return OpenLetters(**found)


def operation_counts() -> OperationCounts:
    recent = Q(state=OperationState.FAILED, finished_at__gte=timezone.now() - FAILURES_REMEMBERED)
    found = Operation.objects.aggregate(
        unfinished=Count("pk", filter=~Q(state__in=FINAL_OPERATION_STATES)),
        failed=Count("pk", filter=recent),
        last_failed=Max("finished_at", filter=recent),
    )
    return OperationCounts(**found)
