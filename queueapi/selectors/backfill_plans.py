"""What making summaries anew would do: of which days, of how many events, and what is missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import Final

from django.utils import timezone

from queueapi.change_plans import Change
from queueapi.choices import FINAL_OPERATION_STATES
from queueapi.config import config
from queueapi.errors import InvalidInput
from queueapi.event_files import EventFiles, StoredDay
from queueapi.models import Operation, PipelineStanding
from queueapi.selectors.pipeline import BACKFILL

# A day takes about as long as all its events took to come through Spark; more of them are another operation.
MOST_DAYS: Final = 100

UNDER_WAY: Final = "summaries are being made anew already; wait for that, or cancel it"


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """`days` is empty where the events are on another machine and cannot be seen from here."""

    summary: str
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]
    why_not: str
    days: tuple[StoredDay, ...]


def plan_backfill(first: date, last: date) -> BackfillPlan:
    """InvalidInput where `start_backfill` would raise it."""
    files = check_days(first, last)
    days = tuple(map(files.stored, days_between(first, last))) if files else ()
    why_not = UNDER_WAY if is_under_way() else ""
    summary = f"nothing would change: {why_not}" if why_not else backfill_summary(first, last)
    return BackfillPlan(summary, tuple(_changes(days)), tuple(_warnings(days)), why_not, days)


def check_days(first: date, last: date) -> EventFiles | None:
    """The events to make them anew of; None where those cannot be seen from here. InvalidInput where these days, or so
    many, cannot be made anew."""
    today = timezone.now().astimezone(UTC).date()
    # The oldest day that is kept may have lost its first hours.
    oldest = today - timedelta(days=config().event_retention_days - 1)
    if last < first:
        raise InvalidInput(f"{first} is after {last}; give the first day first")
    if last > today:
        raise InvalidInput(f"{last} is yet to come; today is {today}, by UTC")
    if first < oldest:
        raise InvalidInput(
            f"of {first} events are kept no more (SWITCHYARD_EVENT_RETENTION_DAYS); the first whole day is {oldest}"
        )
    if (length := (last - first).days + 1) > MOST_DAYS:
        raise InvalidInput(f"{length} days are too many for one operation; ask for {MOST_DAYS} at most, then for more")
    files = _files()
    if files and not any(map(files.has_any, days_between(first, last))):
        raise InvalidInput(
            f"no events are stored of {_span(first, last)}; the pipeline did not run, or nothing reported"
        )
    return files


def _files() -> EventFiles | None:
    """Those that the summaries are made of, or will be; None where they cannot be seen from here."""
    files = EventFiles(config())
    store_id = PipelineStanding.objects.values_list("store_id", flat=True).first()
    return files if not store_id or files.is_of(store_id) else None


def is_under_way() -> bool:
    return Operation.objects.filter(kind=BACKFILL).exclude(state__in=FINAL_OPERATION_STATES).exists()


def days_between(first: date, last: date) -> list[date]:
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def backfill_summary(first: date, last: date) -> str:
    return f"Make summaries anew of {_span(first, last)}"


def _span(first: date, last: date) -> str:
    return f"{first}" + (f" to {last}" if last > first else "")


def _changes(days: Sequence[StoredDay]) -> Iterator[Change]:
    for one in days:
        if one.total:
            made = f"made anew of {one.total:,} events in {one.files:,} files; what none of these tells of goes"
            yield Change(f"summaries of {one.day}", "as they are", made)


def _warnings(days: Sequence[StoredDay]) -> Iterator[str]:
    if not days:
        yield "the events are in a data folder that this machine does not share: how many there are is not known here"
    for one in days:
        if not one.total:
            yield f"of {one.day} no events are stored: its summaries stay as they are"
        if one.unreadable:
            yield (
                f"of {one.day} {one.unreadable} files cannot be read: what they held may be in the summaries now, and "
                "would not be in those made anew"
            )
