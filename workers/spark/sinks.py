"""Where the rows of summaries go. Each sink writes one table, inside its caller's transaction, and leaves out rows of
queues that are gone.

    Newest       a row replaces what is stored where it is newer
    NewestOfAll  the same, where the rows of a queue are made together: those that are not among the newest go
    Whole        a row replaces what is stored: it is made of everything there is of its time
    Added        a row's counts are added to what is stored; the transaction of the batch makes that happen once
    RolledUp     rows of minutes replace what is stored, and so do those of the hours and days that they make
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from operator import itemgetter
from typing import Any, Final, Protocol
from uuid import UUID

from django.db.models import DateTimeField, Exists, Manager, Model, OuterRef, QuerySet
from django.utils import timezone

from queueapi.config import config
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
    Queue,
    QueueSkew,
    RequestCurrent,
    RequestDay,
    RequestHour,
    RequestStats,
    TenantUsageDay,
)
from queuecore.metrics import PROCESSING_BOUNDS_MS
from queuecore.requests import LAG_BOUNDS_MS
from workers.spark.ids import NOBODY
from workers.spark.longer_stretches import Histogram, Together
from workers.spark.transforms import processing, requests

_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Row = Mapping[str, Any]
Key = tuple[Any, ...]


class Sink(Protocol):
    def write(self, rows: Iterable[Row]) -> int:
        """How many rows it wrote."""

    def renew(self, rows: Iterable[Row], day: date) -> int:
        """The same of rows that are made of everything there is of the day: what is stored of it beside them goes."""


@dataclass(frozen=True, slots=True)
class Whole:
    model: type[Model]
    key: tuple[str, ...]

    def write(self, rows: Iterable[Row]) -> int:
        return _upsert(self.model, self.key, list(_of_somebody(rows)))

    def clear(self, day: date) -> None:
        _of_day(self.model, "at", day).delete()


@dataclass(frozen=True, slots=True)
class Newest:
    """`since` is a column that says since when another, `state`, is as it is: it stays while that does."""

    model: type[Model]
    key: tuple[str, ...]
    state: str = ""
    since: str = ""

    def write(self, rows: Iterable[Row]) -> int:
        stored = self._stored()
        newer = [row for row in _of_somebody(rows) if self._is_newer(row, stored.get(_key(row, self.key)))]
        newer.sort(key=itemgetter("as_of"))
        return _upsert(self.model, self.key, [self._with_since(row, stored) for row in newer])

    def renew(self, rows: Iterable[Row], day: date) -> int:  # noqa: ARG002 - what is stored is of now, and of no day
        return self.write(rows)

    def _stored(self) -> dict[Key, Row]:
        columns = [name for name in (*self.key, "as_of", self.state, self.since) if name]
        found = _rows_of(self.model).order_by().values(*columns)
        return {_key(row, self.key): row for row in found}

    def _is_newer(self, row: Row, stored: Row | None) -> bool:
        return stored is None or row["as_of"] > stored["as_of"]

    def _with_since(self, row: Row, stored: Mapping[Key, Row]) -> Row:
        if self.state not in row:
            return row
        before = stored.get(_key(row, self.key))
        is_as_before = before is not None and before[self.state] == row[self.state] and before[self.since]
        return {**row, self.since: before[self.since] if before and is_as_before else row["as_of"]}


@dataclass(frozen=True, slots=True)
class NewestOfAll:
    """All rows of a queue are of one time. Who is told of no more has nothing, and no row."""

    model: type[Model]
    key: tuple[str, ...]

    def write(self, rows: Iterable[Row]) -> int:
        fresh = list(_of_somebody(rows))
        written = Newest(self.model, self.key).write(fresh)
        newer = _rows_of(self.model).filter(queue_id=OuterRef("queue_id"), as_of__gt=OuterRef("as_of"))
        of_queues = _rows_of(self.model).filter(queue_id__in={row["queue_id"] for row in fresh})
        of_queues.filter(Exists(newer)).delete()
        return written

    def renew(self, rows: Iterable[Row], day: date) -> int:  # noqa: ARG002 - what is stored is of now, and of no day
        return self.write(rows)


@dataclass(frozen=True, slots=True)
class Added:
    """`time` is that of the key's columns which says of when a row is; `others` is a column that others write."""

    model: type[Model]
    key: tuple[str, ...]
    time: str
    others: str = ""

    def write(self, rows: Iterable[Row]) -> int:
        # In one order: others who upsert the same rows would else wait for this one, and this one for them.
        fresh = sorted(_of_somebody(rows), key=lambda row: _key(row, self.key))
        sums = self._stored({row[self.time] for row in fresh})
        for row in fresh:
            key = _key(row, self.key)
            sums[key] = self._sum(row, sums.get(key))
        return _upsert(self.model, self.key, [sums[_key(row, self.key)] for row in fresh])

    def renew(self, rows: Iterable[Row], day: date) -> int:
        self._clear(day)
        return self.write(rows)

    def _clear(self, day: date) -> None:
        """What others wrote stays, with nothing counted beside it."""
        found = _of_day(self.model, self.time, day)
        if not self.others:
            found.delete()
            return
        # In one order, as above.
        list(found.select_for_update().order_by(*self.key).values_list("pk"))
        found.filter(**{f"{self.others}__isnull": True}).delete()
        found.update(**dict.fromkeys(self._counted(), 0))

    def _counted(self) -> list[str]:
        fields = self.model._meta.concrete_fields  # noqa: SLF001 - Django's own word for what is public
        return [one.name for one in fields if not one.primary_key and one.name not in (*self.key, self.others)]

    def _stored(self, times: set[Any]) -> dict[Key, Row]:
        found = _rows_of(self.model).filter(**{f"{self.time}__in": times}).order_by().values()
        return {_key(row, self.key): row for row in found}

    def _sum(self, row: Row, stored: Row | None) -> Row:
        if stored is None:
            return row
        return {name: value if name in self.key else value + stored[name] for name, value in row.items()}


@dataclass(frozen=True, slots=True)
class RolledUp:
    """Minutes, and in the same transaction what they make of the hours and days that they are of: longer stretches are
    made of the rows of shorter ones, which are all there.

    So they are for as long as minutes are kept. A minute from before that leaves longer stretches as they are, unless
    the rows have all of its day.
    """

    minutes: Whole
    hours: Whole
    days: Whole
    together: Together

    def write(self, rows: Iterable[Row]) -> int:
        fresh = list(_of_somebody(rows))
        oldest = timezone.now() - timedelta(days=config().minute_retention_days)
        return self.minutes.write(fresh) + self._roll_up([row for row in fresh if _start(row["at"], _DAY) > oldest])

    def renew(self, rows: Iterable[Row], day: date) -> int:
        fresh = list(_of_somebody(rows))
        for sink in (self.minutes, self.hours, self.days):
            sink.clear(day)
        return self.minutes.write(fresh) + self._roll_up(fresh)

    def _roll_up(self, touched: list[Row]) -> int:
        hours = self._make(self.minutes, self.hours, _HOUR, touched)
        return hours + self._make(self.hours, self.days, _DAY, touched)

    def _make(self, shorter: Whole, longer: Whole, length: timedelta, touched: list[Row]) -> int:
        owner = self.together.key[0]
        of_theirs = _rows_of(shorter.model).filter(**{f"{owner}__in": {row[owner] for row in touched}})
        written = 0
        for start in {_start(row["at"], length) for row in touched}:
            made = self.together.rows(of_theirs.filter(at__gte=start, at__lt=start + length))
            written += longer.write({**row, "at": start} for row in made)
        return written


def _start(at: datetime, length: timedelta) -> datetime:
    return at - (at - _EPOCH) % length


def _of_day(model: type[Model], column: str, day: date) -> QuerySet[Model]:
    """By UTC."""
    if isinstance(model._meta.get_field(column), DateTimeField):  # noqa: SLF001 - Django's own word for what is public
        start = datetime.combine(day, time(), UTC)
        return _rows_of(model).filter(**{f"{column}__gte": start, f"{column}__lt": start + _DAY})
    return _rows_of(model).filter(**{column: day})


def _key(row: Row, names: tuple[str, ...]) -> Key:
    return tuple(row[name] for name in names)


def _of_somebody(rows: Iterable[Row]) -> Iterator[Row]:
    """With ids as ids; without rows of queues that are gone, or of no tenant."""
    found = [_with_ids(row) for row in rows if row.get("tenant_id") not in NOBODY]
    wanted = {row["queue_id"] for row in found if "queue_id" in row}
    queues = set(Queue.objects.filter(id__in=wanted).values_list("id", flat=True)) if wanted else set()
    return (row for row in found if "queue_id" not in row or row["queue_id"] in queues)


def _with_ids(row: Row) -> Row:
    ids = {name: UUID(row[name]) for name in ("queue_id", "tenant_id") if isinstance(row.get(name), str)}
    return {**row, **ids}


def _upsert(model: type[Model], key: tuple[str, ...], rows: list[Row]) -> int:
    """Of several rows of one key the last is stored. PostgreSQL would refuse them, and with them every run."""
    last = {_key(row, key): row for row in rows}
    if last:
        _rows_of(model).bulk_create(
            (model(**row) for row in last.values()),
            update_conflicts=True,
            unique_fields=[_field(name) for name in key],
            update_fields=[_field(name) for name in rows[0] if name not in key],
        )
    return len(last)


def _rows_of(model: type[Model]) -> Manager[Model]:
    return model._default_manager  # noqa: SLF001 - Django's documented way to a model that is not known beforehand


def _field(column: str) -> str:
    return "queue" if column == "queue_id" else column


_PER_PARTITION = ("queue_id", "partition")
_PER_QUEUE = ("queue_id", "at")
_PER_TOPIC = (*requests.KEY, "at")

LAG_CURRENT: Final = Newest(LagCurrent, _PER_PARTITION, state="status", since="status_since")
LAG_HISTORY: Final = RolledUp(
    Whole(LagMinute, _PER_QUEUE),
    Whole(LagHour, _PER_QUEUE),
    Whole(LagDay, _PER_QUEUE),
    Together(
        key=("queue_id",),
        most=("lag_messages", "lag_seconds"),
        counted=("produced", "consumed", "samples"),
        worst="status",
    ),
)
REQUEST_CURRENT: Final = Newest(RequestCurrent, requests.KEY)
REQUEST_HISTORY: Final = RolledUp(
    Whole(RequestStats, _PER_TOPIC),
    Whole(RequestHour, _PER_TOPIC),
    Whole(RequestDay, _PER_TOPIC),
    Together(
        key=requests.KEY,
        most=requests.LEVELS,
        counted=requests.COUNTS,
        histogram=Histogram("lag_buckets", LAG_BOUNDS_MS, "lag_p{}_ms"),
    ),
)
PROCESSING_HISTORY: Final = RolledUp(
    Whole(ProcessingMinute, _PER_QUEUE),
    Whole(ProcessingHour, _PER_QUEUE),
    Whole(ProcessingDay, _PER_QUEUE),
    Together(
        key=("queue_id",),
        most=(),
        counted=processing.COUNTS,
        histogram=Histogram("buckets", PROCESSING_BOUNDS_MS, "p{}_ms"),
    ),
)
LETTER_TREND: Final = Added(DeadLetterTrend, ("queue_id", "fingerprint", "at"), time="at")
PARTITION_HEAT: Final = NewestOfAll(PartitionHeat, _PER_PARTITION)
QUEUE_SKEW: Final = Newest(QueueSkew, ("queue_id",))
TENANT_USAGE: Final = Added(TenantUsageDay, ("tenant_id", "day"), time="day", others="stored_bytes")
