"""How old the figures are that Spark computed."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from queueapi.models import PipelineRun

STALE_AFTER = timedelta(seconds=60)


def is_stale(at: datetime) -> bool:
    return timezone.now() - at > STALE_AFTER


@dataclass(frozen=True, slots=True)
class Freshness:
    """`as_of` is the newest sample in the figures, `ran_at` when the pipeline last finished. None: it never did."""

    as_of: datetime | None
    ran_at: datetime | None

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
    run = PipelineRun.objects.order_by("-id").first()
    return Freshness(run.newest_event_at or run.finished_at, run.finished_at) if run else Freshness(None, None)
