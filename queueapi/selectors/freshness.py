"""How old the figures are that Spark computed."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Subquery
from django.utils import timezone

from queueapi.models import PipelineRun, PipelineStanding

STALE_AFTER = timedelta(seconds=60)


def is_stale(at: datetime) -> bool:
    return timezone.now() - at > STALE_AFTER


@dataclass(frozen=True, slots=True)
class Freshness:
    """`as_of` is the newest sample in the figures, `ran_at` when the pipeline last finished. None: it never did.
    `error` is why its last run failed, and what to do about it; empty where it did not."""

    as_of: datetime | None
    ran_at: datetime | None
    error: str = ""

    @property
    def is_known(self) -> bool:
        return self.as_of is not None

    @property
    def is_stale(self) -> bool:
        return self.as_of is not None and is_stale(self.as_of)

    @property
    def is_pipeline_running(self) -> bool:
        """False where batches have stopped. Where True and the figures are stale, samples are missing instead."""
        return self.ran_at is not None and not is_stale(self.ran_at)


def pipeline_freshness() -> Freshness:
    """One query, once it has run: pages ask it every few seconds."""
    standing = PipelineStanding.objects.order_by()
    succeeded, why = (Subquery(standing.values(field)[:1]) for field in ("succeeded_at", "error"))
    runs = PipelineRun.objects.annotate(succeeded=succeeded, why=why).order_by("-id")
    run = runs.values_list("newest_event_at", "finished_at", "succeeded", "why").first()
    if run is None:
        known = standing.first()
        return Freshness(None, known.succeeded_at, known.error) if known else Freshness(None, None)
    newest_event_at, finished_at, succeeded_at, error = run
    # A run that finds nothing new leaves no other trace.
    return Freshness(newest_event_at or finished_at, max(finished_at, succeeded_at or finished_at), error or "")
