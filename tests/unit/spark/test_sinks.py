"""What rows of summaries leave in their tables, on either database."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone

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
    Tenant,
    TenantUsageDay,
)
from queuecore.metrics import PROCESSING_BOUNDS_MS
from workers.spark import sinks
from workers.spark.sinks import Added, Newest, NewestOfAll, RolledUp, Row, Whole
from workers.spark.transforms.buckets import percentile_of

pytestmark = pytest.mark.usefixtures("database")

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
KEYED = (Whole, Added, Newest, NewestOfAll)


@pytest.fixture
def queue() -> Queue:
    tenant = Tenant.objects.create(name="Acme")
    return Queue.objects.create(tenant=tenant, name="Main", topic="tb_main", handler="count")


def lag(queue: Queue, **changes: Any) -> Row:
    row = {
        "queue_id": str(queue.id),
        "partition": 0,
        "topic": "tb_main.0",
        "consumer_group": "main-consumer-0",
        "end_offset": 100,
        "committed_offset": 40,
        "lag_messages": 60,
        "produced_per_s": 10.0,
        "consumed_per_s": None,
        "as_of": NOON,
    }
    return row | changes


def test_a_newer_row_replaces_the_one_of_its_partition(queue: Queue) -> None:
    assert sinks.LAG_CURRENT.write([lag(queue), lag(queue, partition=1)]) == 2
    later = NOON + timedelta(seconds=10)
    assert sinks.LAG_CURRENT.write([lag(queue, lag_messages=7, as_of=later)]) == 1
    assert list(LagCurrent.objects.values_list("partition", "lag_messages")) == [(0, 7), (1, 60)]


@pytest.mark.parametrize("seconds", [0, -5])
def test_what_is_stored_is_not_replaced_by_what_is_not_newer(queue: Queue, seconds: int) -> None:
    sinks.LAG_CURRENT.write([lag(queue)])
    as_of = NOON + timedelta(seconds=seconds)
    assert sinks.LAG_CURRENT.write([lag(queue, lag_messages=999, as_of=as_of)]) == 0
    assert LagCurrent.objects.get().lag_messages == 60


def test_a_status_is_told_since_it_is_so(queue: Queue) -> None:
    told = []
    for minute, status in enumerate(("ok", "ok", "stop", "stop", "ok")):
        as_of = NOON + timedelta(minutes=minute)
        sinks.LAG_CURRENT.write([lag(queue, status=status, reason=status, as_of=as_of)])
        since = LagCurrent.objects.get().status_since
        assert since is not None
        told.append((since - NOON) // timedelta(minutes=1))
    assert told == [0, 0, 2, 2, 4]


def test_rows_of_queues_that_are_gone_are_left_out(queue: Queue) -> None:
    assert sinks.LAG_CURRENT.write([lag(queue, queue_id=str(uuid4())), lag(queue)]) == 1
    assert LagCurrent.objects.get().queue_id == queue.id


def test_a_minute_is_replaced_by_what_is_made_of_all_of_it(queue: Queue) -> None:
    minute = {
        "queue_id": str(queue.id),
        "at": NOON,
        "lag_messages": 5,
        "lag_seconds": None,
        "produced": 9,
        "samples": 3,
    }
    sinks.LAG_HISTORY.write([minute])
    sinks.LAG_HISTORY.write([minute | {"produced": 12, "samples": 4}])
    assert list(LagMinute.objects.values_list("produced", "samples", "lag_seconds")) == [(12, 4, None)]


def minute(queue: Queue, at: datetime, **changes: Any) -> Row:
    row = {"queue_id": str(queue.id), "at": at, "lag_messages": 5, "lag_seconds": None, "produced": 10, "consumed": 9}
    return row | {"status": "ok", "samples": 1} | changes


def test_hours_and_days_are_made_of_their_minutes_at_once(queue: Queue) -> None:
    day = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    sinks.LAG_HISTORY.write(
        [
            minute(queue, day, lag_messages=40, status="stop"),
            minute(queue, day + timedelta(minutes=59), lag_seconds=2.5, status="warn"),
            minute(queue, day + timedelta(minutes=60)),
        ]
    )
    sinks.LAG_HISTORY.write([minute(queue, day + timedelta(minutes=60), produced=30)])
    columns = ("at", "lag_messages", "lag_seconds", "produced", "consumed", "status", "samples")
    assert list(LagHour.objects.values_list(*columns)) == [
        (day, 40, 2.5, 20, 18, "stop", 2),
        (day + timedelta(hours=1), 5, None, 30, 9, "ok", 1),
    ]
    assert list(LagDay.objects.values_list(*columns)) == [(day, 40, 2.5, 50, 27, "stop", 3)]


def test_a_minute_whose_neighbours_are_gone_leaves_its_hour_as_it_is(queue: Queue) -> None:
    long_ago = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(days=5)
    LagHour.objects.create(queue=queue, at=long_ago, lag_messages=1, produced=600)
    sinks.LAG_HISTORY.write([minute(queue, long_ago)])
    assert list(LagHour.objects.values_list("produced", flat=True)) == [600]
    sinks.LAG_HISTORY.renew([minute(queue, long_ago)], long_ago.date())
    assert list(LagHour.objects.values_list("produced", flat=True)) == [10]


def today_at(**when: int) -> datetime:
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(**when)


def processed(queue: Queue, at: datetime, buckets: list[int], **changes: Any) -> Row:
    """With percentiles that no others are made of."""
    told = {"handled": 10, "failed": 1, "p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0, "buckets": buckets}
    return {"queue_id": str(queue.id), "at": at} | told | changes


def test_percentiles_of_hours_and_days_are_those_of_all_attempts(queue: Queue) -> None:
    """A quiet minute of slow packs beside a busy one of quick packs: no average of both says how the hour was."""
    quick, slow, later = counted(**{"1": 900}), counted(**{"9": 100}), counted(**{"3": 50})
    sinks.PROCESSING_HISTORY.write(
        [
            processed(queue, today_at(), quick),
            processed(queue, today_at(minutes=59), slow),
            processed(queue, today_at(hours=1), later, handled=5),
            processed(queue, today_at(hours=1, minutes=1), [1, 2], p50_ms=None),
        ]
    )
    hours, [day] = list(ProcessingHour.objects.all()), ProcessingDay.objects.all()
    assert [(row.at, row.handled, row.failed) for row in (*hours, day)] == [
        (today_at(), 20, 2),
        (today_at(hours=1), 15, 2),
        (today_at(), 35, 4),
    ]
    together = [counted(**{"1": 900, "9": 100}), later, counted(**{"1": 900, "3": 50, "9": 100})]
    for row, buckets in zip((*hours, day), together, strict=True):
        assert row.buckets == buckets
        of_all = tuple(percentile_of(buckets, PROCESSING_BOUNDS_MS, one) for one in (50, 95, 99))
        assert (row.p50_ms, row.p95_ms, row.p99_ms) == of_all


def counted(**buckets: int) -> list[int]:
    """By the number of the bucket."""
    return [buckets.get(str(number), 0) for number in range(len(PROCESSING_BOUNDS_MS) + 1)]


def test_a_minute_that_is_made_anew_is_once_in_its_hour_and_day(queue: Queue) -> None:
    for handled in (10, 10, 30):
        sinks.PROCESSING_HISTORY.write([processed(queue, today_at(minutes=5), counted(), handled=handled)])
    rows = [model.objects.get() for model in (ProcessingMinute, ProcessingHour, ProcessingDay)]
    assert [(row.handled, row.p50_ms) for row in rows] == [(30, 1.0), (30, None), (30, None)]


def test_requests_are_by_service_and_topic() -> None:
    row = {"service_id": "transport-1", "request_topic": "t.requests", "pending": 4, "lag_buckets": [1, 2]}
    sinks.REQUEST_CURRENT.write([row | {"as_of": NOON}, row | {"service_id": "transport-2", "as_of": NOON}])
    sinks.REQUEST_HISTORY.write([row | {"at": NOON}])
    sinks.REQUEST_HISTORY.write([row | {"at": NOON, "pending": 9}])
    assert RequestCurrent.objects.count() == 2
    assert list(RequestStats.objects.values_list("pending", "lag_buckets")) == [(9, [1, 2])]


def test_hours_and_days_of_requests_have_the_most_that_was_pending() -> None:
    def asked(at: datetime, topic: str, pending: int, **changes: Any) -> Row:
        named = {"service_id": "core-1", "request_topic": topic, "at": at, "pending": pending}
        return named | {"sent": 10, "timed_out": 1, "lag_buckets": [0, 4] + [0] * 14} | changes

    sinks.REQUEST_HISTORY.write([asked(today_at(), "a", 70), asked(today_at(), "b", 1)])
    sinks.REQUEST_HISTORY.write([asked(today_at(minutes=1), "a", 5), asked(today_at(hours=2), "a", 9)])
    columns = ("request_topic", "at", "pending", "sent", "timed_out", "lag_p50_ms")
    assert list(RequestHour.objects.values_list(*columns)) == [
        ("a", today_at(), 70, 20, 2, 1.5),
        ("a", today_at(hours=2), 9, 10, 1, 1.5),
        ("b", today_at(), 1, 10, 1, 1.5),
    ]
    assert list(RequestDay.objects.values_list(*columns)) == [
        ("a", today_at(), 70, 30, 3, 1.5),
        ("b", today_at(), 1, 10, 1, 1.5),
    ]


def test_heat_and_skew_are_the_newest(queue: Queue) -> None:
    heat = {"queue_id": str(queue.id), "partition": 0, "messages": 5, "share": 0.5, "as_of": NOON}
    sinks.PARTITION_HEAT.write([heat | {"entities": [{"key": "00", "messages": 3}], "tenants": []}])
    skew = {"queue_id": str(queue.id), "skew": 1.5, "entities_seen": 3, "what_if": [], "as_of": NOON}
    sinks.QUEUE_SKEW.write([skew])
    sinks.QUEUE_SKEW.write([skew | {"skew": 9.0, "as_of": NOON - timedelta(seconds=1)}])
    assert PartitionHeat.objects.get().entities == [{"key": "00", "messages": 3}]
    assert QueueSkew.objects.get().skew == 1.5


def test_a_partition_that_fell_silent_is_hot_no_more(queue: Queue) -> None:
    def heat(minute: int, **shares: float) -> list[Row]:
        as_of = NOON + timedelta(minutes=minute)
        told = {"queue_id": str(queue.id), "as_of": as_of, "messages": 1}
        return [
            told | {"partition": int(name[1:]), "share": share, "is_hot": share > 0.5} for name, share in shares.items()
        ]

    def shares() -> list[tuple[int, float, bool]]:
        return list(PartitionHeat.objects.values_list("partition", "share", "is_hot"))

    sinks.PARTITION_HEAT.write(heat(0, p0=0.9, p1=0.1))
    sinks.PARTITION_HEAT.write(heat(5, p0=0.4, p1=0.6))
    assert shares() == [(0, 0.4, False), (1, 0.6, True)]
    sinks.PARTITION_HEAT.write(heat(15, p1=1.0))
    assert shares() == [(1, 1.0, True)]
    sinks.PARTITION_HEAT.write(heat(10, p0=0.9, p2=0.1))
    assert shares() == [(1, 1.0, True)], "what is late changes nothing"


def test_letters_are_added_up(queue: Queue) -> None:
    row = {"queue_id": str(queue.id), "fingerprint": "f" * 16, "at": NOON, "letters": 3}
    sinks.LETTER_TREND.write([row])
    sinks.LETTER_TREND.write([row | {"letters": 4}, row | {"at": NOON + timedelta(hours=1)}])
    assert list(DeadLetterTrend.objects.values_list("letters", flat=True)) == [7, 3]


def test_usage_is_added_up_and_leaves_alone_what_others_write() -> None:
    tenant = uuid4()
    row = {"tenant_id": str(tenant), "day": date(2026, 1, 2), "sent": 3, "sent_bytes": 30, "handled": 2}
    sinks.TENANT_USAGE.write([row])
    TenantUsageDay.objects.update(stored_bytes=500)
    assert sinks.TENANT_USAGE.write([row, row | {"tenant_id": "other"}, row | {"tenant_id": ""}]) == 1
    found = TenantUsageDay.objects.values_list("tenant_id", "sent", "sent_bytes", "handled", "stored_bytes")
    assert list(found) == [(tenant, 6, 60, 4, 500)]


def test_what_is_added_up_is_replaced_where_it_is_made_of_everything() -> None:
    """Of a tenant of which no event tells any more there is only what it has stored."""
    right, wrong, storing = (str(uuid4()) for _ in range(3))
    day, day_after = date(2026, 1, 2), date(2026, 1, 3)
    rows = [{"tenant_id": tenant, "day": day, "sent": 3, "sent_bytes": 30} for tenant in (right, wrong, storing)]
    sinks.TENANT_USAGE.write([*rows, rows[1] | {"day": day_after}])
    TenantUsageDay.objects.filter(tenant_id__in=(right, storing), day=day).update(stored_bytes=500)
    with transaction.atomic():
        sinks.TENANT_USAGE.renew([rows[0] | {"sent": 4}], day)
    found = TenantUsageDay.objects.values_list("tenant_id", "day", "sent", "sent_bytes", "stored_bytes")
    assert {(str(tenant), *told) for tenant, *told in found} == {
        (right, day, 4, 30, 500),
        (storing, day, 0, 0, 500),
        (wrong, day_after, 3, 30, None),
    }


def test_letters_of_an_error_that_there_is_no_more_go(queue: Queue) -> None:
    midnight = datetime(2026, 1, 2, tzinfo=UTC)
    hours = [midnight + timedelta(hours=hour) for hour in (-1, 0, 23, 24)]
    row = {"queue_id": str(queue.id), "letters": 3}
    sinks.LETTER_TREND.write([row | {"fingerprint": "wrong", "at": at} for at in hours])
    sinks.LETTER_TREND.renew([row | {"fingerprint": "right", "at": midnight}], midnight.date())
    found = list(DeadLetterTrend.objects.order_by("at").values_list("fingerprint", "at"))
    assert found == [("wrong", hours[0]), ("right", midnight), ("wrong", hours[3])]


def test_a_day_made_anew_has_what_was_made_alone(queue: Queue) -> None:
    other = Queue.objects.create(tenant=queue.tenant, name="Other", topic="tb_other", handler="count")
    day, day_after = today_at(), today_at(days=1)
    minutes = [today_at(minutes=number) for number in (-1, 0, 1439, 1440)]
    sinks.LAG_HISTORY.write([minute(each, at) for each in (queue, other) for at in minutes])
    sinks.LAG_HISTORY.renew([minute(queue, day, produced=70)], day.date())
    for model, found in (
        (LagMinute, [(minutes[0], 10), (day, 70), (day_after, 10)]),
        (LagHour, [(today_at(hours=-1), 10), (day, 70), (day_after, 10)]),
        (LagDay, [(today_at(days=-1), 10), (day, 70), (day_after, 10)]),
    ):
        assert list(model.objects.filter(queue=queue).values_list("at", "produced")) == found
        assert set(model.objects.filter(queue=other).values_list("at", flat=True)) == {found[0][0], found[2][0]}


ROLLED_UP = [one for one in vars(sinks).values() if isinstance(one, RolledUp)]
EVERY = [
    *(one for one in vars(sinks).values() if isinstance(one, KEYED)),
    *(table for one in ROLLED_UP for table in (one.minutes, one.hours, one.days)),
]


def test_a_sink_s_key_is_unique_in_its_table() -> None:
    for sink in EVERY:
        table = sink.model._meta
        keys = {tuple(constraint.fields) for constraint in table.constraints if hasattr(constraint, "fields")}
        keys |= {(field.name,) for field in table.fields if field.unique}
        assert tuple("queue" if name == "queue_id" else name for name in sink.key) in keys, table.label


def test_several_rows_of_one_key_are_one(queue: Queue) -> None:
    """PostgreSQL writes no row twice in one go."""
    newest = lag(queue, lag_messages=7, as_of=NOON + timedelta(seconds=1))
    assert sinks.LAG_CURRENT.write([newest, lag(queue), lag(queue, partition=1)]) == 2
    assert list(LagCurrent.objects.values_list("partition", "lag_messages")) == [(0, 7), (1, 60)]

    sinks.LAG_HISTORY.write([minute(queue, today_at()), minute(queue, today_at(), produced=30)])
    assert [model.objects.get().produced for model in (LagMinute, LagHour, LagDay)] == [30] * 3

    letters = {"queue_id": str(queue.id), "fingerprint": "f" * 16, "at": NOON, "letters": 3}
    for _ in range(2):
        assert sinks.LETTER_TREND.write([letters, letters | {"letters": 4}]) == 1
    assert DeadLetterTrend.objects.get().letters == 14


def test_no_rows_are_nothing() -> None:
    assert sinks.TENANT_USAGE.write([]) == sinks.LAG_CURRENT.write([]) == sinks.LAG_HISTORY.write([]) == 0
