"""Queues with what is known about them: lag, rates, open dead letters."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, Min, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from queueapi.models import DeadLetterGroup, LagCurrent, Queue
from queueapi.selectors.freshness import is_stale

# Fewer messages than this are the ordinary ups and downs between two samples.
NOTABLE_LAG = 100
SOON = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Flow:
    """What comes in, what goes out, and what waits between them. None: not sampled yet."""

    lag_messages: int | None
    produced_per_s: float | None
    consumed_per_s: float | None
    as_of: datetime | None

    @property
    def surplus_per_s(self) -> float | None:
        """How much faster messages are consumed than produced; negative where the lag grows."""
        if self.produced_per_s is None or self.consumed_per_s is None:
            return None
        return self.consumed_per_s - self.produced_per_s

    @property
    def drains_in(self) -> timedelta | None:
        if not self.lag_messages or not self.surplus_per_s or self.surplus_per_s <= 0:
            return None
        # A crawl is no promise: beyond a year it does not drain.
        seconds = self.lag_messages / self.surplus_per_s
        return timedelta(seconds=seconds) if seconds < timedelta(days=365).total_seconds() else None

    @property
    def is_growing(self) -> bool:
        return bool(self.lag_messages) and (self.surplus_per_s or 0) < 0

    @property
    def is_behind(self) -> bool:
        """Enough waits to be worth a look, and it will not be gone soon."""
        if (self.lag_messages or 0) < NOTABLE_LAG:
            return False
        return self.drains_in is None or self.drains_in > SOON

    @property
    def is_stale(self) -> bool:
        return self.as_of is not None and is_stale(self.as_of)


@dataclass(frozen=True, slots=True)
class QueueFigures:
    queue: Queue
    flow: Flow
    open_letters: int


def queues_with_figures() -> QuerySet[Queue]:
    """Queues annotated for sorting and paging in the database; `figures_of` turns rows into values."""
    groups = DeadLetterGroup.objects.filter(queue=OuterRef("pk")).order_by().values("queue")
    return Queue.objects.select_related("tenant", "operation", "successor").annotate(
        total_lag=_over_partitions(Sum("lag_messages")),
        total_produced=_over_partitions(Sum("produced_per_s")),
        total_consumed=_over_partitions(Sum("consumed_per_s")),
        oldest_sample=_over_partitions(Min("as_of")),
        open_letters=Coalesce(Subquery(groups.annotate(number=Sum("open_letters")).values("number")), 0),
    )


def figures_of(queues: Iterable[Any]) -> list[QueueFigures]:
    return [
        QueueFigures(
            queue,
            Flow(queue.total_lag, queue.total_produced, queue.total_consumed, queue.oldest_sample),
            queue.open_letters,
        )
        for queue in queues
    ]


def partition_flows(queue: Queue) -> list[tuple[LagCurrent, Flow]]:
    samples = LagCurrent.objects.filter(queue=queue).order_by("partition")
    return [(row, Flow(row.lag_messages, row.produced_per_s, row.consumed_per_s, row.as_of)) for row in samples]


def total_lag() -> Flow:
    """All queues together. `as_of` is the newest sample."""
    total = LagCurrent.objects.aggregate(
        lag=Sum("lag_messages"), produced=Sum("produced_per_s"), consumed=Sum("consumed_per_s"), as_of=Max("as_of")
    )
    return Flow(total["lag"], total["produced"], total["consumed"], total["as_of"])


def _over_partitions(aggregate: Any) -> Subquery:
    samples = LagCurrent.objects.filter(queue=OuterRef("pk")).order_by().values("queue")
    return Subquery(samples.annotate(value=aggregate).values("value"))
