"""How figures were over time: stretches between two moments, never more of them than a chart can show."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.db.models import QuerySet

from queueapi.models import (
    DeadLetterGroup,
    DeadLetterTrend,
    LagDay,
    LagHour,
    LagMinute,
    ProcessingDay,
    ProcessingHour,
    ProcessingMinute,
    Queue,
)

MOST_POINTS: Final = 1_500


class Resolution(StrEnum):
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    @property
    def stretch(self) -> timedelta:
        return _STRETCHES[self]

    @property
    def longest(self) -> timedelta:
        """The time that so many points are of."""
        return self.stretch * MOST_POINTS

    def begin(self, at: datetime) -> datetime:
        """When the stretch begins that this moment is in, by UTC."""
        whole = {"second": 0, "microsecond": 0}
        if self != Resolution.MINUTE:
            whole["minute"] = 0
        if self == Resolution.DAY:
            whole["hour"] = 0
        return at.replace(**whole)  # type: ignore[arg-type] # none of them is the zone


_STRETCHES: Final = {
    Resolution.MINUTE: timedelta(minutes=1),
    Resolution.HOUR: timedelta(hours=1),
    Resolution.DAY: timedelta(days=1),
}
# Up to which time each is chosen: some hundred points show what happened.
_CHOSEN: Final = {Resolution.MINUTE: timedelta(hours=6), Resolution.HOUR: timedelta(days=14)}
_LAG: Final[Mapping[Resolution, Any]] = {
    Resolution.MINUTE: LagMinute,
    Resolution.HOUR: LagHour,
    Resolution.DAY: LagDay,
}
_PROCESSING: Final[Mapping[Resolution, Any]] = {
    Resolution.MINUTE: ProcessingMinute,
    Resolution.HOUR: ProcessingHour,
    Resolution.DAY: ProcessingDay,
}


def fitting_resolution(length: timedelta) -> Resolution:
    """Of a history of that length, where nobody says which."""
    return next((one for one, longest in _CHOSEN.items() if length <= longest), Resolution.DAY)


def lag_history(queue: Queue, resolution: Resolution) -> QuerySet[Any]:
    rows: QuerySet[Any] = _LAG[resolution].objects.filter(queue=queue).order_by("at")
    return rows


def processing_history(queue: Queue, resolution: Resolution) -> QuerySet[Any]:
    rows: QuerySet[Any] = _PROCESSING[resolution].objects.filter(queue=queue).order_by("at").defer("buckets")
    return rows


def letter_history(group: DeadLetterGroup) -> QuerySet[DeadLetterTrend]:
    rows = DeadLetterTrend.objects.filter(queue=group.queue_id, fingerprint=group.fingerprint)
    return rows.order_by("at")
