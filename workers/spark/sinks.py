"""Where summaries go. The driver writes them, in the transaction that also says which batch they are of."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from queueapi.models.queue import Queue
from queueapi.models.summary import LagCurrent, PipelineRun

RUNS_KEPT = 1000

_NEVER = datetime.min.replace(tzinfo=UTC)
_MEASURES = [
    "topic",
    "consumer_group",
    "end_offset",
    "committed_offset",
    "lag_messages",
    "produced_per_s",
    "consumed_per_s",
    "as_of",
]


@dataclass(frozen=True, slots=True)
class LagRow:
    """One row of `transforms.current_lag`."""

    queue_id: UUID
    partition: int
    topic: str | None
    consumer_group: str | None
    end_offset: int
    committed_offset: int | None
    lag_messages: int
    produced_per_s: float | None
    consumed_per_s: float | None
    as_of: datetime
    samples: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Which batch it is. Spark counts a query's batches from 0, in the query's checkpoint folder.

    `query` must therefore be new when the checkpoint is: else a count that starts again would be taken for
    batches that are already stored.
    """

    query: str
    batch_id: int
    started_at: datetime


def store_batch(batch: Batch, rows: Iterable[LagRow]) -> bool:
    """Store the batch's summaries, all or nothing. False, and no effect, where it is stored already."""
    rows = list(rows)
    with transaction.atomic():
        _, created = PipelineRun.objects.get_or_create(
            query=batch.query,
            batch_id=batch.batch_id,
            defaults={
                "events": sum(row.samples for row in rows),
                "newest_event_at": max((row.as_of for row in rows), default=None),
                "started_at": batch.started_at,
                "finished_at": timezone.now(),
            },
        )
        if created:
            _store_lag(rows)
            _forget_old_runs()
    return created


def known_samples() -> list[dict[str, object]]:
    """What is stored of each partition, in the form of `transforms.KNOWN_SCHEMA`."""
    return [
        {
            "at": row.as_of,
            "queue_id": str(row.queue_id),
            "partition": row.partition,
            "end_offset": row.end_offset,
            "committed_offset": row.committed_offset,
        }
        for row in LagCurrent.objects.order_by()
    ]


def _store_lag(rows: list[LagRow]) -> None:
    """Rows of queues that are gone are dropped, as are those no newer than what is stored."""
    queues = set(Queue.objects.filter(id__in={row.queue_id for row in rows}).values_list("id", flat=True))
    stored = {
        (queue, partition): as_of
        for queue, partition, as_of in LagCurrent.objects.values_list("queue_id", "partition", "as_of").order_by()
    }
    LagCurrent.objects.bulk_create(
        (
            LagCurrent(**{name: getattr(row, name) for name in ("queue_id", "partition", *_MEASURES)})
            for row in rows
            if row.queue_id in queues and row.as_of > stored.get((row.queue_id, row.partition), _NEVER)
        ),
        update_conflicts=True,
        unique_fields=["queue", "partition"],
        update_fields=_MEASURES,
    )


def _forget_old_runs() -> None:
    oldest_kept = PipelineRun.objects.order_by("-id").values_list("id", flat=True)[RUNS_KEPT - 1 : RUNS_KEPT].first()
    if oldest_kept is not None:
        PipelineRun.objects.filter(id__lt=oldest_kept).delete()
