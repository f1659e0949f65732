"""Which batches are stored, and how far that is. A batch takes effect in one transaction: its summaries, its row, and
the offsets behind it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import transaction
from django.utils import timezone

from queueapi.models import PipelineRun, PipelineStanding
from workers.spark.errors import PipelineFailed
from workers.spark.reports import Offsets, Report
from workers.spark.sinks import Row, Sink

RUNS_KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class Batch:
    """Which batch it is. Spark counts a query's batches from 0, in the query's checkpoint folder.

    provider   whose offsets it has
    store      of the store that has its events
    query      new when the checkpoint is: else a count that starts again would be taken for batches that are stored
    positions  where the provider's events that are stored ended when it was begun
    """

    provider: str
    store: str
    query: str
    batch_id: int
    started_at: datetime
    positions: Offsets

    @property
    def name(self) -> str:
        """As a folder is called."""
        return f"{self.query}.{self.batch_id}"


def is_stored(name: str) -> bool:
    """Whether the batch of this name is."""
    query, _, number = name.rpartition(".")
    return PipelineRun.objects.filter(query=query, batch_id=int(number)).exists()


def known_positions(provider: str) -> Offsets:
    """Where the events that are in the summaries end, by partition. Empty: none are."""
    runs = PipelineRun.objects.filter(query__startswith=provider).order_by("-id")
    found: Offsets | None = runs.values_list("offsets", flat=True).first()
    return found or {}


def check_store(store: str) -> None:
    """PipelineFailed where the summaries in this database are made of another store's events: of two installations with
    one database, each would make minutes anew of its own part of the events."""
    known = PipelineStanding.objects.values_list("store_id", flat=True).first()
    if known and known != store:
        raise PipelineFailed(
            f"the summaries in this database are made of another data folder's events (store {known}, here is {store});"
            " run one pipeline for each database. If this folder has taken the other's place, run "
            "manage.py adopt_event_store"
        )


def store_batch(batch: Batch, report: Report, summaries: Iterable[tuple[Sink, list[Row]]]) -> int:
    """Store the batch, all or nothing; how many rows of summaries it has. Where it is stored already: no effect.

    PipelineFailed where another store's batches are stored, or others have stored events of this provider since it was
    begun."""
    with transaction.atomic():
        # Whoever stores a batch holds this row, so that positions do not move while they are compared.
        PipelineStanding.objects.select_for_update().get_or_create(defaults={"ran_at": batch.started_at})
        if is_stored(batch.name):
            return 0
        check_store(batch.store)
        if known_positions(batch.provider) != batch.positions:
            raise PipelineFailed("another pipeline has stored events meanwhile; run one for each database")
        PipelineStanding.objects.exclude(store_id=batch.store).update(store_id=batch.store)
        rows = sum(sink.write(made) for sink, made in summaries)
        finished_at = timezone.now()
        PipelineRun.objects.create(
            query=batch.query,
            batch_id=batch.batch_id,
            events=report.events,
            unusable=report.unusable_events,
            rows=rows,
            offsets=batch.positions | report.offsets,
            newest_event_at=report.newest_at(finished_at),
            started_at=batch.started_at,
            finished_at=finished_at,
        )
        _forget_old_runs()
    return rows


def _forget_old_runs() -> None:
    oldest_kept = PipelineRun.objects.order_by("-id").values_list("id", flat=True)[RUNS_KEPT - 1 : RUNS_KEPT].first()
    if oldest_kept is not None:
        PipelineRun.objects.filter(id__lt=oldest_kept).delete()
