"""How old the figures are that Spark computed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Subquery
from django.utils import timezone

from queueapi.models import PipelineRun, PipelineStanding

STALE_AFTER = timedelta(seconds=60)

_OF_RUN: Final = ("newest_event_at", "finished_at")
# By the names they have beside a run's, the standing's fields.
_OF_STANDING: Final = {"succeeded": "succeeded_at", "why": "error"}


def is_stale(at: datetime) -> bool:
    return timezone.now() - at > STALE_AFTER


@dataclass(frozen=True, slots=True)
class Freshness:
    """`as_of` is the newest sample in the figures, `ran_at` when the pipeline last finished. None: it never did.
    `error` is why its last run failed, and what to do about it; empty where it did not. `read_at` is when it last
    finished with something new."""

    as_of: datetime | None
    ran_at: datetime | None
    error: str = ""
    read_at: datetime | None = None

    @property
    def is_known(self) -> bool:
        return self.as_of is not None

    @property
    def is_stale(self) -> bool:
        return self.as_of is not None and is_stale(self.as_of)

    @property
    def is_pipeline_running(self) -> bool:
        """False where batches have stopped. Where True and the figures are stale, it lags, or samples are missing."""
        return self.ran_at is not None and not is_stale(self.ran_at)

    @property
    def is_pipeline_behind(self) -> bool:
        """Whether samples reach it, and what it makes of them comes late. Of stale figures."""
        return self.read_at is not None and not is_stale(self.read_at)


def pipeline_freshness() -> Freshness:
    """One query, once it has run: pages ask it every few seconds."""
    run = PipelineRun.objects.annotate(**_standing()).order_by("-id").values(*_OF_RUN, *_OF_STANDING).first()
    if run is None:
        known = PipelineStanding.objects.order_by().first()
        return Freshness(None, known.succeeded_at, known.error) if known else Freshness(None, None)
    return freshness_from(run)


def freshness_values() -> dict[str, Subquery]:
    """All that `freshness_from` wants, for a query that asks for other things as well."""
    newest = PipelineRun.objects.order_by("-id")
    return {**{name: Subquery(newest.values(name)[:1]) for name in _OF_RUN}, **_standing()}


def freshness_from(values: Mapping[str, Any]) -> Freshness:
    newest_event_at, finished_at, succeeded_at, why = (values[name] for name in (*_OF_RUN, *_OF_STANDING))
    if finished_at is None:
        return Freshness(None, succeeded_at, why or "")
    # A run that finds nothing new leaves no other trace.
    return Freshness(
        newest_event_at or finished_at, max(finished_at, succeeded_at or finished_at), why or "", finished_at
    )


def _standing() -> dict[str, Subquery]:
    standing = PipelineStanding.objects.order_by()
    return {name: Subquery(standing.values(field)[:1]) for name, field in _OF_STANDING.items()}
