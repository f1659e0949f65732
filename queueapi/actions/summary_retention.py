"""Old summaries go: minutes first, days last, so that a year of history stays small."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Model

from queueapi.config import Config
from queueapi.models import (
    DeadLetterTrend,
    LagCurrent,
    LagDay,
    LagHour,
    LagMinute,
    PartitionHeat,
    ProcessingDay,
    ProcessingHour,
    ProcessingMinute,
    QueueSkew,
    RequestCurrent,
    RequestDay,
    RequestHour,
    RequestStats,
    TenantUsageDay,
)

# Rows that go in one statement: nobody waits for long.
CHUNK: Final = 5_000
# A service instance that has not told anything for so long is gone.
SILENT_AFTER: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Kept:
    """How long rows of a table are kept, by the column that says of when they are."""

    model: type[Model]
    column: str
    period: timedelta


def kept(settings: Config) -> list[Kept]:
    minutes = timedelta(days=settings.minute_retention_days)
    hours = timedelta(days=settings.hour_retention_days)
    days = timedelta(days=settings.day_retention_days)
    return [
        *(Kept(model, "at", minutes) for model in (LagMinute, RequestStats, ProcessingMinute)),
        *(Kept(model, "at", hours) for model in (LagHour, RequestHour, ProcessingHour, DeadLetterTrend)),
        *(Kept(model, "at", days) for model in (LagDay, RequestDay, ProcessingDay)),
        Kept(TenantUsageDay, "day", days),
        # What is of now goes with the last minute that it was of: nothing renews it.
        *(Kept(model, "as_of", minutes) for model in (LagCurrent, PartitionHeat, QueueSkew)),
        Kept(RequestCurrent, "as_of", SILENT_AFTER),
    ]


def purge_summaries(settings: Config, now: datetime, chunk: int = CHUNK) -> int:
    """How many rows went."""
    return sum(_purge(one, now, chunk) for one in kept(settings))


def _purge(one: Kept, now: datetime, chunk: int) -> int:
    before = now - one.period
    limit = before.date() if one.column == "day" else before
    old = one.model._default_manager.filter(**{f"{one.column}__lt": limit}).order_by()  # noqa: SLF001
    removed = 0
    while ids := list(old.values_list("pk", flat=True)[:chunk]):
        removed += one.model._default_manager.filter(pk__in=ids).delete()[0]  # noqa: SLF001
    return removed
