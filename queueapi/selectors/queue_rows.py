"""Queues as lists show them: how far each lags and why, its open letters, and what of it is paused."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import FloatField, Max, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from queueapi.models import DeadLetterGroup, LagCurrent, Pause, Queue
from queueapi.models.lag import IS_TROUBLED, KNOWN_LAG_S
from queueapi.selectors.lag import BADNESS, QueueLag, queue_lags, still_sampled

# A status weighs more than any lag.
_STATUS_WEIGHT: Final = 1e12
# Partitions that are looked at to find the worst queues: of one queue very many may be.
_LOOKED_AT: Final = 5_000
_AT_A_TIME: Final = 100
_SECONDS: Final = Coalesce("lag_seconds", Value(0.0))


@dataclass(frozen=True, slots=True)
class QueueRow:
    queue: Queue
    lag: QueueLag
    open_letters: int
    pauses: list[Pause]

    @property
    def is_paused(self) -> bool:
        """All of it, on somebody's word."""
        return any(pause.is_of_everything for pause in self.pauses)


def queues_measured(by: str) -> QuerySet[Queue]:
    """All of them; annotated with what they are to be ordered by, where that is a measure and no field. One measure
    alone: each is a look at every partition there is."""
    queues = Queue.objects.select_related("tenant")
    return queues.annotate(**{by: _measure(by)}) if by in MEASURES else queues


def _letters() -> Subquery:
    groups = DeadLetterGroup.objects.filter(queue=OuterRef("pk")).order_by().values("queue")
    return Subquery(groups.annotate(number=Sum("open_letters")).values("number"))


_OVER_PARTITIONS: Final[dict[str, Any]] = {
    "worst_status": Max(BADNESS * Value(_STATUS_WEIGHT) + _SECONDS, output_field=FloatField()),
    "total_lag": Sum("lag_messages"),
    "longest_lag_s": Max("lag_seconds"),
    "total_produced": Sum("produced_per_s"),
    "total_consumed": Sum("consumed_per_s"),
}
MEASURES: Final = (*_OVER_PARTITIONS, "letters")


def _measure(name: str) -> Any:
    if name == "letters":
        return Coalesce(_letters(), 0)
    samples = LagCurrent.objects.filter(still_sampled(), queue=OuterRef("pk")).order_by().values("queue")
    return Subquery(samples.annotate(measured=_OVER_PARTITIONS[name]).values("measured"))


def queue_rows(queues: Iterable[Queue]) -> list[QueueRow]:
    """These, in their order. Four queries, however many they are."""
    lags = queue_lags(queues)
    ids = [lag.queue.pk for lag in lags]
    letters = open_letters_of(ids)
    pauses: defaultdict[UUID, list[Pause]] = defaultdict(list)
    for pause in Pause.objects.filter(queue__in=ids).select_related("tenant"):
        pauses[pause.queue_id].append(pause)
    return [QueueRow(lag.queue, lag, letters.get(lag.queue.pk, 0), pauses[lag.queue.pk]) for lag in lags]


def open_letters_of(queues: Iterable[UUID]) -> dict[UUID, int]:
    """By queue; those without any may be missing."""
    groups = DeadLetterGroup.objects.filter(queue__in=list(queues)).order_by()
    return dict(groups.values_list("queue").annotate(number=Sum("open_letters")))


def worst_queues(most: int) -> list[Queue]:
    """Those that do worst, as far as a look at the first partitions tells: all that are in trouble before any that is
    not, those that are furthest behind in seconds first, and none that nothing waits in."""
    rows = LagCurrent.objects.filter(still_sampled(), lag_messages__gt=0).select_related("queue__tenant")
    worst = rows.order_by(IS_TROUBLED.desc(), KNOWN_LAG_S.desc(), "-id")[:_LOOKED_AT]
    found: dict[UUID, Queue] = {}
    # One query, in the order of an index, which is not read on when there are enough.
    for row in worst.iterator(chunk_size=_AT_A_TIME):
        found.setdefault(row.queue_id, row.queue)
        if len(found) >= most:
            break
    return list(found.values())
