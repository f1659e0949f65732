"""Requests of all service instances together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, Max, QuerySet, Sum

from queueapi.models import RequestCurrent, RequestDay, RequestHour, RequestStats
from queueapi.selectors.freshness import STALE_AFTER
from queueapi.selectors.histories import Resolution
from queuecore.requests import LAG_BOUNDS_MS

_COUNTED: Final = (
    *("pending", "pending_memory_bytes", "sent", "answered", "failed", "timed_out", "not_stored", "cancelled"),
    *("refused", "late", "orphans"),
)
_HISTORIES: Final[Mapping[Resolution, Any]] = {
    Resolution.MINUTE: RequestStats,
    Resolution.HOUR: RequestHour,
    Resolution.DAY: RequestDay,
}


@dataclass(frozen=True, slots=True)
class RequestTotals:
    """services   how many report, each for the topics it asks
    counts        of all of them together, by the names that each has
    as_of         the newest sample. Who has not been heard of for a minute before is gone, and counts no more
    """

    services: int
    counts: dict[str, int]
    oldest_pending_ms: int
    slowest_p99_ms: float | None
    as_of: datetime | None


def request_totals() -> RequestTotals:
    """As of the newest sample."""
    return request_totals_as_of(RequestCurrent.objects.aggregate(as_of=Max("as_of"))["as_of"])


def request_totals_as_of(as_of: datetime | None) -> RequestTotals:
    """For who knows when the newest of all samples was; None: there are none yet."""
    rows = RequestCurrent.objects.filter(as_of__gte=as_of - STALE_AFTER) if as_of else RequestCurrent.objects.none()
    sums: dict[str, Any] = {name: Sum(name, default=0) for name in _COUNTED}
    found = rows.aggregate(
        services=Count("service_id", distinct=True),
        oldest=Max("oldest_pending_ms", default=0),
        slowest=Max("lag_p99_ms"),
        newest=Max("as_of"),
        **sums,
    )
    counts = {name: found[name] for name in _COUNTED}
    return RequestTotals(found["services"], counts, found["oldest"], found["slowest"], found["newest"])


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """By the bounds of `queuecore.requests.LAG_BOUNDS_MS`, up to each and longer.

    answers   how many answers of the minute before took so long
    ages      how many of those that are pending wait so long
    untold    how many are pending of which nobody tells how long
    """

    answers: list[int]
    ages: list[int]
    untold: int


def request_times(as_of: datetime | None) -> RequestTimes:
    """Of all services together."""
    rows = RequestCurrent.objects.filter(as_of__gte=as_of - STALE_AFTER) if as_of else RequestCurrent.objects.none()
    found = list(rows.order_by().values_list("lag_buckets", "age_buckets", "pending"))
    untold = sum(pending for _, ages, pending in found if not ages)
    return RequestTimes(_summed(answers for answers, _, _ in found), _summed(ages for _, ages, _ in found), untold)


def _summed(rows: Iterable[list[int]]) -> list[int]:
    counts = [0] * (len(LAG_BOUNDS_MS) + 1)
    for buckets in rows:
        for index, count in enumerate(buckets[: len(counts)]):
            counts[index] += count
    return counts


def request_history(resolution: Resolution) -> QuerySet[Any]:
    """By service instance and topic."""
    rows: QuerySet[Any] = _HISTORIES[resolution].objects.all()
    return rows


def all_requests(begin: datetime, end: datetime, resolution: Resolution) -> QuerySet[Any, Any]:
    """By stretch, all services together: when it began, what was pending at most, what timed out, and the slowest p99
    in ms."""
    rows = request_history(resolution).filter(at__gte=begin, at__lt=end).order_by("at")
    figures = {"all_pending": Sum("pending"), "all_timed_out": Sum("timed_out"), "slowest": Max("lag_p99_ms")}
    together: QuerySet[Any, Any] = rows.values("at").annotate(**figures).values_list("at", *figures)
    return together
