"""Everything the first page answers: what is broken, since when and why, and what waits."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Max, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from queueapi.choices import (
    FINAL_OPERATION_STATES,
    LetterState,
    OperationState,
    ProcessState,
)
from queueapi.models import (
    ConsumerStanding,
    DeadLetter,
    DeadLetterGroup,
    LagCurrent,
    LagMinute,
    ManagedProcess,
    Operation,
    Pause,
    QuarantinedLetter,
    Queue,
)
from queueapi.selectors.alerts import Firing, firing
from queueapi.selectors.consumers import all_pauses, troubled_consumers
from queueapi.selectors.freshness import Freshness, freshness_from, freshness_values, pipeline_freshness
from queueapi.selectors.group_rows import GroupRow, group_rows
from queueapi.selectors.lag import QueueLag, queue_lags, still_sampled
from queueapi.selectors.letter_groups import largest_open_groups
from queueapi.selectors.pending_requests import RequestTotals, request_totals_as_of
from queueapi.selectors.queue_rows import worst_queues
from queueapi.selectors.services import Hosts, hosts

ALERTS_SHOWN: Final = 3
QUEUES_SHOWN: Final = 10
GROUPS_SHOWN: Final = 5
HOSTS_SHOWN: Final = 10
TROUBLES_SHOWN: Final = 20
FAILURES_REMEMBERED: Final = timedelta(hours=24)
TREND_MINUTES: Final = 60
_MINUTE: Final = timedelta(minutes=1)
_OF_QUEUES: Final = ("queues", "lag_messages", "open_letters", "oldest_letter", "newest_letter", "quarantined")


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """`failed` counts those that ended within the last day: older ones are history."""

    unfinished: int
    failed: int
    last_failed: datetime | None


@dataclass(frozen=True, slots=True)
class Totals:
    """Of all queues: how many there are, how many messages wait in them, how many letters nobody has decided on, and
    how many are not in the index. And the operations that are under way or failed."""

    queues: int
    lag_messages: int
    open_letters: int
    oldest_letter: datetime | None
    newest_letter: datetime | None
    quarantined: int
    operations: OperationCounts


@dataclass(frozen=True, slots=True)
class WorstQueue:
    """`trend` is how many messages waited in each of the last minutes, the oldest first; None: nobody looked."""

    lag: QueueLag
    trend: list[int | None]


@dataclass(frozen=True, slots=True)
class Overview:
    """`queues` are those that do worst, worst first."""

    freshness: Freshness
    totals: Totals
    alerts: Firing
    queues: list[WorstQueue]
    groups: list[GroupRow]
    requests: RequestTotals
    processes: list[ManagedProcess]
    hosts: Hosts
    pauses: list[Pause]
    troubled_consumers: list[ConsumerStanding]

    @property
    def worst(self) -> QueueLag | None:
        """None where nothing waits."""
        return self.queues[0].lag if self.queues else None

    @property
    def operations(self) -> OperationCounts:
        return self.totals.operations

    @property
    def running(self) -> list[ManagedProcess]:
        return [process for process in self.processes if process.state == ProcessState.RUNNING]

    @property
    def not_running(self) -> list[ManagedProcess]:
        return [process for process in self.processes if process.state != ProcessState.RUNNING]

    @property
    def restarts(self) -> int:
        return sum(process.restarts for process in self.processes)


def overview() -> Overview:
    there = hosts(HOSTS_SHOWN)
    freshness, totals = freshness_and_totals()
    return Overview(
        freshness=freshness,
        totals=totals,
        alerts=firing(ALERTS_SHOWN),
        queues=worst_first(worst_queues(QUEUES_SHOWN)),
        groups=group_rows(largest_open_groups(GROUPS_SHOWN), with_replays=False),
        requests=request_totals_as_of(freshness.as_of),
        processes=list(ManagedProcess.objects.all()),
        hosts=there,
        pauses=list(all_pauses()[:TROUBLES_SHOWN]),
        troubled_consumers=list(troubled_consumers(there.alive)[:TROUBLES_SHOWN]),
    )


def freshness_and_totals() -> tuple[Freshness, Totals]:
    """One query, as soon as there is a queue: the page is asked for every few seconds."""
    letters = DeadLetter.objects.filter(state=LetterState.OPEN).values("failed_at")
    unfinished = Operation.objects.exclude(state__in=FINAL_OPERATION_STATES)
    day = timezone.now() - FAILURES_REMEMBERED
    failed = Operation.objects.filter(state=OperationState.FAILED, finished_at__gte=day)
    found = Queue.objects.aggregate(
        queues=Count("pk"),
        lag_messages=Coalesce(Max(Subquery(_sum(LagCurrent.objects.filter(still_sampled()), "lag_messages"))), 0),
        open_letters=Coalesce(Max(Subquery(_sum(DeadLetterGroup.objects.all(), "open_letters"))), 0),
        oldest_letter=Max(Subquery(letters.order_by("failed_at")[:1])),
        newest_letter=Max(Subquery(letters.order_by("-failed_at")[:1])),
        quarantined=Coalesce(Max(Subquery(_counted(QuarantinedLetter.objects.all()))), 0),
        unfinished=Coalesce(Max(Subquery(_counted(unfinished))), 0),
        failed=Coalesce(Max(Subquery(_counted(failed))), 0),
        last_failed=Max(Subquery(failed.order_by("-finished_at").values("finished_at")[:1])),
        **{name: Max(value) for name, value in freshness_values().items()},
    )
    operations = OperationCounts(*(found[name] for name in ("unfinished", "failed", "last_failed")))
    summed = {name: found[name] for name in _OF_QUEUES}
    # Of no queue at all nothing is told along.
    freshness = freshness_from(found) if found["queues"] else pipeline_freshness()
    return freshness, Totals(**summed, operations=operations)


def _counted(rows: QuerySet[Any]) -> QuerySet[Any, Any]:
    every = rows.order_by().annotate(every=Value(1))
    number: QuerySet[Any, Any] = every.values("every").annotate(number=Count("pk")).values("number")
    return number


def _sum(rows: QuerySet[Any], field: str) -> QuerySet[Any, Any]:
    """Of those that add anything, which an index finds."""
    some = rows.filter(**{f"{field}__gt": 0}).order_by().annotate(every=Value(1))
    total: QuerySet[Any, Any] = some.values("every").annotate(total=Sum(field)).values("total")
    return total


def worst_first(queues: Iterable[Queue]) -> list[WorstQueue]:
    """With how each has been during the last hour."""
    lags = queue_lags(queues)
    trends = _trends([lag.queue.pk for lag in lags])
    lags.sort(key=lambda lag: (lag.status.badness if lag.status else -1, lag.lag_seconds or 0.0), reverse=True)
    return [WorstQueue(lag, trends[lag.queue.pk]) for lag in lags]


def _trends(queues: list[UUID]) -> dict[UUID, list[int | None]]:
    end = timezone.now().replace(second=0, microsecond=0) + _MINUTE
    begin = end - TREND_MINUTES * _MINUTE
    trends: dict[UUID, list[int | None]] = {queue: [None] * TREND_MINUTES for queue in queues}
    rows = LagMinute.objects.filter(queue__in=queues, at__gte=begin, at__lt=end).order_by()
    for queue, at, lag in rows.values_list("queue", "at", "lag_messages"):
        trends[queue][(at - begin) // _MINUTE] = lag
    return trends
