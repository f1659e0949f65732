"""Keeping the store of events small: old days go, small files become large ones."""

from dataclasses import dataclass

from django.utils import timezone

from queueapi.config import config
from workers.spark.batches import is_stored
from workers.spark.compaction import compact, settle_compaction
from workers.spark.locking import pipeline_lock
from workers.spark.pipeline import event_store
from workers.spark.store import oldest_kept
from workers.spark.summaries import WINDOW_S


@dataclass(frozen=True, slots=True)
class Upkeep:
    forgotten_days: int
    merged_files: int

    def __str__(self) -> str:
        return f"{self.merged_files} files merged, {self.forgotten_days} days of events removed"


def keep_up_store() -> Upkeep:
    """PipelineBusy where another process runs the pipeline."""
    installation, now = config(), timezone.now()
    with pipeline_lock(installation):
        store = event_store(installation)
        store.settle(is_stored)
        settle_compaction(store)
        forgotten = store.forget(oldest_kept(now, installation.event_retention_days))
        # What runs still read stays as it is: merging it again and again would cost more than it saves.
        merged = compact(store, int((now.timestamp() - 2 * WINDOW_S) * 1000))
    return Upkeep(forgotten, merged)
