"""How the pipeline is, and what it did last."""

from dataclasses import dataclass
from typing import Final

from queueapi.models import Operation, PipelineRun, PipelineStanding
from queueapi.selectors.freshness import Freshness, pipeline_freshness
from queueapi.selectors.pipeline import BACKFILL

RUNS_SHOWN: Final = 20
_BACKFILLS: Final = 5


@dataclass(frozen=True, slots=True)
class PipelineState:
    """`standing` is None where it was never run; `runs` are its last batches, newest first."""

    standing: PipelineStanding | None
    freshness: Freshness
    runs: list[PipelineRun]


def pipeline_state() -> PipelineState:
    runs = PipelineRun.objects.order_by("-id")[:RUNS_SHOWN]
    return PipelineState(PipelineStanding.objects.first(), pipeline_freshness(), list(runs))


def newest_backfills() -> list[Operation]:
    """What was made anew last, or is being made, newest first."""
    return list(
        Operation.objects.filter(kind=BACKFILL).select_related("created_by").order_by("-created_at")[:_BACKFILLS]
    )
