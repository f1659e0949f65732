"""Lag of whole queues, and of all of them: how much waits, and how the worst partition is."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
    Window,
)
from django.db.models.functions import RowNumber
from django.utils import timezone

from queueapi.choices import LagStatus
from queueapi.models import LagCurrent, Queue
from queueapi.models.lag import KNOWN_LAG_S
from queueapi.selectors.freshness import STALE_AFTER, is_stale

BADNESS: Final = Case(
    *(When(status=status, then=Value(status.badness)) for status in LagStatus), output_field=IntegerField()
)
TROUBLED: Final = tuple(status for status in LagStatus if status != LagStatus.OK)
_ADDED_UP: Final = ("lag_messages", "produced_per_s", "consumed_per_s", "trend_per_s")
_LONGEST: Final = ("lag_seconds", "oldest_age_s", "drain_eta_s")
# No name is a column's: what is named like one would be taken for it.
_FIGURES: Final[Mapping[str, Any]] = {
    "partitions": Count("pk"),
    **{f"of_{name}": Sum(name) for name in _ADDED_UP},
    **{f"of_{name}": Max(name) for name in _LONGEST},
    # Where something waits and nobody knows when it is done, all of it never is.
    "endless": Count("pk", filter=Q(drain_eta_s=None, lag_messages__gt=0)),
    "first_sampled": Min("as_of"),
    "last_sampled": Max("as_of"),
    **{f"are_{status}": Count("pk", filter=Q(status=status)) for status in LagStatus},
}


@dataclass(frozen=True, slots=True)
class LagFigures:
    """Of several partitions together.

    partitions    how many are sampled; the rest is None where none is
    statuses      how many partitions are of each
    lag_seconds   and `oldest_age_s`, `drain_eta_s`: those of the partition where it is longest
    as_of         of a queue the oldest sample among them, of all queues the newest
    """

    partitions: int
    statuses: dict[str, int]
    lag_messages: int | None
    lag_seconds: float | None
    oldest_age_s: float | None
    produced_per_s: float | None
    consumed_per_s: float | None
    trend_per_s: float | None
    drain_eta_s: float | None
    as_of: datetime | None

    @property
    def is_stale(self) -> bool:
        return self.as_of is not None and is_stale(self.as_of)


@dataclass(frozen=True, slots=True)
class LagTotals(LagFigures):
    """`unsampled` is how many partitions are left out, as there are no samples of them any more."""

    unsampled: int


@dataclass(frozen=True, slots=True)
class QueueLag(LagFigures):
    """`worst` is the partition that the queue is judged by; None where none was sampled."""

    queue: Queue
    worst: LagCurrent | None

    @property
    def status(self) -> LagStatus | None:
        return None if self.worst is None else self.worst.status_choice

    @property
    def is_troubled(self) -> bool:
        return self.status not in (None, LagStatus.OK)

    @property
    def reason(self) -> str:
        """Why it has its status, without naming that again."""
        return "" if self.worst is None else self.worst.reason.removeprefix(f"{self.worst.status_choice.label}: ")

    @property
    def status_since(self) -> datetime | None:
        return None if self.worst is None else self.worst.status_since

    @property
    def status_lasts(self) -> timedelta | None:
        """For how long it has been so."""
        return None if self.status_since is None else timezone.now() - self.status_since

    @property
    def is_of_one_of_several(self) -> bool:
        """Whether the reason tells of its worst partition what is not so of all of them."""
        return self.partitions > 1 and (self.is_troubled or bool(self.lag_messages))


def still_sampled() -> Q:
    """Partitions that count: nobody knows how far behind one is whose topic is gone, or that has no leader. Where there
    are no fresh samples at all, those that were sampled to the end count: they are told as old, or not told apart.
    The newest is looked for only where something is old."""
    every = LagCurrent.objects.order_by().annotate(every=Value(1)).values("every")
    since = every.annotate(since=Max("as_of") - STALE_AFTER).values("since")
    return Q(as_of__gte=timezone.now() - STALE_AFTER) | Q(as_of__gte=Subquery(since))


def lag_rows() -> QuerySet[LagCurrent]:
    """Of each partition, with what lists are ordered by and whose it is."""
    return LagCurrent.objects.annotate(
        known_lag_s=KNOWN_LAG_S, queue_name=F("queue__name"), tenant=F("queue__tenant_id")
    )


def with_status(rows: QuerySet[LagCurrent], status: LagStatus) -> QuerySet[LagCurrent]:
    """Those that are so. Nearly all are well: an index would find a hundred thousand of them, only to have them sorted,
    where a walk in the order that is asked for has a page of them at once."""
    others = [other for other in LagStatus if other != status]
    return rows.exclude(status__in=others) if status == LagStatus.OK else rows.filter(status=status)


def queues_with_status(queues: QuerySet[Queue], status: LagStatus) -> QuerySet[Queue]:
    """Those with a partition that is so; found in the same two ways."""
    rows = LagCurrent.objects.filter(still_sampled(), status=status)
    if status == LagStatus.OK:
        return queues.filter(Exists(rows.filter(queue=OuterRef("pk"))))
    return queues.filter(pk__in=rows.values("queue"))


def queues_judged(queues: QuerySet[Queue], status: LagStatus) -> QuerySet[Queue]:
    """Those that are as a whole so: a partition is, and none is worse. All are well of which something is sampled and
    nothing is worse: who looks for partitions that are well looks at nearly all there are."""
    worse = [other for other in LagStatus if other.badness > status.badness]
    worse_off = LagCurrent.objects.filter(still_sampled(), status__in=worse).values("queue")
    if status == LagStatus.OK:
        return _sampled(queues).exclude(pk__in=worse_off)
    return queues_with_status(queues, status).exclude(pk__in=worse_off)


def _sampled(queues: QuerySet[Queue]) -> QuerySet[Queue]:
    return queues.filter(Exists(LagCurrent.objects.filter(still_sampled(), queue=OuterRef("pk"))))


def count_by_status(queues: QuerySet[Queue]) -> dict[str, int]:
    """How many of the queues are as a whole so. Those of which nothing is sampled are not counted."""
    ids = queues.order_by().values("pk")
    troubled = LagCurrent.objects.filter(still_sampled(), status__in=TROUBLED, queue__in=ids).order_by()
    badness = {status.badness: status.value for status in LagStatus}
    counts = Counter(badness[worst] for _, worst in troubled.values_list("queue").annotate(worst=Max(BADNESS)))
    sampled = _sampled(queues).count()
    return {**counts, LagStatus.OK.value: sampled - counts.total()}


def lag_totals(rows: QuerySet[LagCurrent]) -> LagTotals:
    """All of these together. Two queries."""
    unsampled = rows.exclude(still_sampled()).count()
    found = rows.filter(still_sampled()).aggregate(**_FIGURES)
    return LagTotals(**_figures(found), as_of=found["last_sampled"], unsampled=unsampled)


def queue_lags(queues: Iterable[Queue]) -> list[QueueLag]:
    """Of each of these, in their order. One query, however many they are: the figures come with each queue's worst. A
    queue of which nothing is sampled any more has those that it had, which are old."""
    listed = list(queues)
    every = LagCurrent.objects.filter(queue__in=[queue.pk for queue in listed]).order_by()
    rows = every.filter(still_sampled() | ~Q(queue__in=every.filter(still_sampled()).values("queue")))
    ranked = Window(
        RowNumber(),
        partition_by=F("queue"),
        order_by=[BADNESS.desc(), KNOWN_LAG_S.desc(), F("lag_messages").desc(), F("partition").asc()],
    )
    figures = {name: Window(figure, partition_by=F("queue")) for name, figure in _FIGURES.items()}
    worst = {row.queue_id: row for row in rows.annotate(rank=ranked, **figures).filter(rank=1)}
    return [_queue_lag(queue, worst.get(queue.pk)) for queue in listed]


def _queue_lag(queue: Queue, worst: LagCurrent | None) -> QueueLag:
    found = {} if worst is None else {name: getattr(worst, name) for name in _FIGURES}
    return QueueLag(**_figures(found), as_of=found.get("first_sampled"), queue=queue, worst=worst)


def _figures(found: Mapping[str, Any]) -> dict[str, Any]:
    """All but their time."""
    figures = {name: found.get(f"of_{name}") for name in (*_ADDED_UP, *_LONGEST)}
    if found.get("endless"):
        figures["drain_eta_s"] = None
    statuses = {status.value: found.get(f"are_{status}", 0) for status in LagStatus}
    return {**figures, "partitions": found.get("partitions", 0), "statuses": statuses}
