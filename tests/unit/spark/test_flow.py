"""What service instances ask, what consumers do, for whom and how evenly: from frames to frames."""

from collections import Counter
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from queueapi.models import (
    DeadLetterTrend,
    PartitionHeat,
    ProcessingMinute,
    Queue,
    QueueSkew,
    RequestCurrent,
    RequestStats,
    Tenant,
)
from queuecore.hashing import HASH_FUNCTIONS, Entity, partition_of
from queuecore.metrics import PROCESSING_BOUNDS_MS
from queuecore.requests import LAG_BOUNDS_MS
from tests.unit.spark.frames import (
    QUEUE,
    REQUESTS,
    START,
    Files,
    Row,
    at,
    buckets,
    consumed,
    entity,
    frame,
    requests,
    rows,
    sent,
    tenant,
)
from workers.spark import parts as part_files
from workers.spark import writing
from workers.spark.part_files import NO_FILES, EventFiles
from workers.spark.parts import PARTS
from workers.spark.schemas import CONSUMED_SAMPLES, KINDS, SENT_SAMPLES, Kind
from workers.spark.summaries import named_letter_topics
from workers.spark.transforms import heat, processing, usage
from workers.spark.transforms import samples as samples_of
from workers.spark.transforms.buckets import percentile_of, with_percentiles
from workers.spark.transforms.heat import HeatOptions, heat_counts, partition_heat, queue_skew
from workers.spark.transforms.minutes import together
from workers.spark.transforms.processing import letter_trend, processing_minutes
from workers.spark.transforms.requests import request_current, request_minutes
from workers.spark.transforms.samples import SampleFiles, read_once
from workers.spark.transforms.usage import tenant_usage
from workers.spark.transforms.what_if import skew, what_if

ACME = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
BOLT = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"


def columns(model: type[Any]) -> set[str]:
    return {one.attname for one in model._meta.concrete_fields} - {"id"}


def test_percentiles(spark: SparkSession) -> None:
    """Evenly within a bucket; no further than the last bound; nothing where nothing was counted."""
    bounds = (10.0, 20.0, 50.0)
    counts = [[0, 100, 0, 0], [50, 0, 50, 0], [0, 0, 0, 7], [0, 0, 0, 0], [99, 0, 0, 1]]
    counted = spark.createDataFrame(pa.table({"buckets": counts}))
    found = with_percentiles(counted, "buckets", bounds, "p{}").drop("buckets")
    assert [tuple(row.values()) for row in rows(found)] == [
        pytest.approx((15.0, 19.5, 19.9)),
        pytest.approx((10.0, 47.0, 49.4)),
        (50.0, 50.0, 50.0),
        (None, None, None),
        pytest.approx((10 * 50 / 99, 10 * 95 / 99, 10.0)),
    ]
    at_hand = [tuple(percentile_of(one, bounds, percent) for percent in (50, 95, 99)) for one in counts]
    assert at_hand == [tuple(row.values()) for row in rows(found)]


class TestRequests:
    def test_now(self, spark: SparkSession) -> None:
        """What is pending at the newest sample, and the counts of the minute before it; each sample once."""
        long_ago = requests(0, sent=1000)
        before = requests(50, [3], sent=5, pending=90, timed_out=2)
        newest = requests(100, [3, 3, 400], sent=7, pending=4, pending_limit=10_000, timed_out=1, orphans=1)
        other = requests(100, sent=1, service_id="web-2")
        silent = requests(0, sent=1, service_id="web-3")
        window = frame(spark, REQUESTS, [long_ago, before, silent])
        found = rows(request_current(together(frame(spark, REQUESTS, [newest, newest, other]), window)))
        assert {row["service_id"] for row in found} == {"web-1", "web-2"}
        row = next(one for one in found if one["service_id"] == "web-1")
        assert set(row) == columns(RequestCurrent)
        assert (row["as_of"], row["pending"], row["pending_limit"]) == (at(100), 4, 10_000)
        assert (row["sent"], row["timed_out"], row["orphans"]) == (12, 3, 1)
        assert sum(row["lag_buckets"]) == 4
        assert (row["lag_p50_ms"], row["lag_p99_ms"]) == (pytest.approx(4.0), pytest.approx(488.0))

    def test_ages_are_those_of_the_newest_sample(self, spark: SparkSession) -> None:
        """None are told where that is of a version before there were any, or has other bounds."""
        ages = buckets(LAG_BOUNDS_MS, [3, 700, 90_000])
        batch = [
            requests(0, pending=1, age_buckets=buckets(LAG_BOUNDS_MS, [1])),
            requests(10, pending=3, age_buckets=ages),
            requests(0, pending=3, age_buckets=ages, service_id="web-2"),
            requests(10, pending=3, age_buckets=[], service_id="web-2"),
            requests(10, pending=3, age_buckets=None, service_id="web-3"),
            requests(10, pending=3, lag_bounds_ms=[1], age_buckets=[2, 1], service_id="web-4"),
        ]
        found = rows(request_current(together(frame(spark, REQUESTS, batch), frame(spark, REQUESTS, []))))
        told = {row["service_id"]: row["age_buckets"] for row in found}
        assert told == {"web-1": ages, "web-2": [], "web-3": [], "web-4": []}

    def test_by_the_minute(self, spark: SparkSession) -> None:
        """Whole, though the batch has but its end; and of other versions' bounds nobody makes percentiles."""
        window = [requests(-10, sent=9), requests(10, [3], sent=1, pending=70, timed_out=60)]
        batch = [
            requests(20, sent=2, pending=5, timed_out=50),
            requests(70, sent=4, lag_bounds_ms=[1], lag_buckets=[5, 5]),
        ]
        made = request_minutes(together(frame(spark, REQUESTS, batch), frame(spark, REQUESTS, window)))
        found = sorted(rows(made), key=lambda one: one["at"])
        assert set(found[0]) == columns(RequestStats)
        assert [(row["at"], row["sent"], row["pending"]) for row in found] == [(START, 3, 70), (at(60), 4, 0)]
        assert [(row["timed_out"], row["lag_p50_ms"]) for row in found] == [(110, pytest.approx(3.5)), (0, None)]


class TestProcessing:
    def test_by_the_minute(self, parts: DataFrame, files: Files) -> None:
        window = [consumed(0, [1.5], handled=10, retried=1), consumed(5, handled=1, partition=1)]
        batch = [consumed(30, [1.5, 1.5, 70.0], handled=30, failed=2, dead_lettered=1, polled=33, polled_bytes=3300)]
        (row,) = rows(
            processing_minutes(
                parts, SampleFiles(files(CONSUMED_SAMPLES, [*batch, *batch]), files(CONSUMED_SAMPLES, window))
            )
        )
        assert set(row) == columns(ProcessingMinute)
        assert (row["queue_id"], row["at"]) == (QUEUE, START)
        assert (row["handled"], row["failed"], row["retried"], row["dead_lettered"]) == (41, 2, 1, 1)
        assert (row["p50_ms"], row["p99_ms"]) == (pytest.approx(1 + 2 / 3), pytest.approx(98.0))
        assert sum(row["buckets"]) == 4

    def test_letters_by_error_and_hour(self, parts: DataFrame, files: Files) -> None:
        def letters(*counts: tuple[str, int]) -> list[Row]:
            return [{"fingerprint": name, "tenant_id": ACME, "letters": number} for name, number in counts]

        first = consumed(0, letters=letters(("f1", 2), ("f2", 1)))
        samples = [first, first, consumed(10, letters=letters(("f1", 3))), consumed(3600, letters=letters(("f1", 1)))]
        found = rows(letter_trend(parts, SampleFiles(files(CONSUMED_SAMPLES, samples))))
        assert set(found[0]) == columns(DeadLetterTrend)
        hour = START.replace(minute=0)
        assert {(row["fingerprint"], (row["at"] - hour).seconds, row["letters"]) for row in found} == {
            ("f1", 0, 5), ("f2", 0, 1), ("f1", 3600, 1),
        }  # fmt: skip


def test_usage_by_tenant_and_day(parts: DataFrame, files: Files) -> None:
    """To be added to what is known. What names no tenant is nobody's."""
    twice = consumed(0, tenants=[tenant(ACME, 10, 1000, errors=1, dead_letters=1), tenant("", 99), tenant("other", 99)])
    handled = [twice, twice, consumed(86_400, tenants=[tenant(ACME.upper(), 1, 1)])]
    letters = [sent(0, topic=topic, tenants=[tenant(ACME, 1, 99)]) for topic in ("tb_main.dlq", "graveyard")]
    stored = [sent(0, tenants=[tenant(ACME, 12, 1200), tenant(BOLT, 3, 30)]), *letters]
    found = rows(
        tenant_usage(
            parts,
            SampleFiles(files(CONSUMED_SAMPLES, handled)),
            SampleFiles(files(SENT_SAMPLES, stored)),
            {"graveyard"},
        )
    )
    figures = ("sent", "sent_bytes", "handled", "handled_bytes", "errors", "dead_letters")
    assert {(row["tenant_id"], row["day"].day): tuple(row[name] for name in figures) for row in found} == {
        (ACME, 2): (12, 1200, 10, 1000, 1, 1),
        (ACME, 3): (0, 0, 1, 1, 0, 0),
        (BOLT, 2): (3, 30, 0, 0, 0, 0),
    }


@pytest.mark.django_db
def test_dead_letters_go_to_topics_that_queues_name() -> None:
    acme = Tenant.objects.create(name="Acme")
    for name, dlq_topic in (("Main", ""), ("Slow", "graveyard"), ("Old", "graveyard")):
        Queue.objects.create(tenant=acme, name=name, topic=name.lower(), handler="count", dlq_topic=dlq_topic)
    assert named_letter_topics() == {"graveyard", "graveyard.payloads"}


class TestHeat:
    DEVICE = UUID("cccccccc-cccc-4ccc-8ccc-cccccccccccc")

    def samples(self) -> tuple[list[Row], list[Row]]:
        busy = consumed(
            60,
            polled=3000,
            entities=[entity(self.DEVICE, 2500, ACME), entity(b"meter 7", 200), entity(b"\x00\xff", 300)],
            tenants=[tenant(BOLT, 500), tenant(ACME, 2500)],
        )
        calm = consumed(30, polled=500, partition=1, entities=[entity(self.DEVICE, 1)])
        elsewhere = consumed(30, polled=500, queue_id=BOLT)
        return [busy, busy], [calm, elsewhere]

    def test_partitions(self, parts: DataFrame, files: Files) -> None:
        batch, window = self.samples()
        options = HeatOptions(partitions={QUEUE: 4}, named=2)
        counts = heat_counts(parts, SampleFiles(files(CONSUMED_SAMPLES, batch), files(CONSUMED_SAMPLES, window)))
        found = {row["partition"]: row for row in rows(partition_heat(counts, options))}
        assert set(found) == {0, 1}, "of the other queue the batch tells nothing"
        hot = found[0]
        assert set(hot) == columns(PartitionHeat)
        assert (hot["messages"], hot["share"], hot["is_hot"]) == (3000, pytest.approx(3000 / 3500), True)
        assert hot["entities"] == [
            {"key": str(self.DEVICE), "is_uuid": True, "tenant_id": ACME, "messages": 2500},
            {"key": "0x00ff", "is_uuid": False, "tenant_id": "", "messages": 300},
        ]
        assert hot["tenants"] == [{"tenant_id": ACME, "messages": 2500}, {"tenant_id": BOLT, "messages": 500}]
        assert (found[1]["is_hot"], found[1]["as_of"], hot["as_of"]) == (False, at(60), at(60))

    def test_skew(self, parts: DataFrame, files: Files) -> None:
        batch, window = self.samples()
        (row,) = rows(
            queue_skew(heat_counts(parts, SampleFiles(files(CONSUMED_SAMPLES, batch), files(CONSUMED_SAMPLES, window))))
        )
        assert set(row) == columns(QueueSkew)
        assert (row["queue_id"], row["skew"]) == (QUEUE, pytest.approx(2 * 3000 / 3500))
        assert (row["entities_seen"], row["as_of"]) == (3, at(60))
        assert {one["partitions"] for one in row["what_if"]} == {1, 2, 4, 8}

    @pytest.mark.parametrize("laid_out", [1, 2, 1000])
    def test_what_if_is_of_the_entities_with_the_most(self, laid_out: int, parts: DataFrame, files: Files) -> None:
        """In batch and window, and by how the queue is now."""
        batch, window = self.samples()
        counts = heat_counts(parts, SampleFiles(files(CONSUMED_SAMPLES, batch), files(CONSUMED_SAMPLES, window)))
        options = HeatOptions(entities=laid_out, partitions={QUEUE: 12}, hash_function="sha256")
        (row,) = rows(queue_skew(counts, options))
        most = [(self.DEVICE, 2501), (b"\x00\xff", 300), (b"meter 7", 200)]
        assert row["what_if"] == what_if(dict(most[:laid_out]), 12, "sha256")


class TestWhatIf:
    def test_the_present_moves_nothing(self) -> None:
        messages = {f"device-{number}".encode(): 10 for number in range(200)}
        by_choice = {(one["partitions"], one["hash_function"]): one for one in what_if(messages, 10, "murmur3_128")}
        assert set(by_choice) == {
            (count, name) for count in (5, 10, 20, 40) for name in ("murmur3_128", "murmur3_32", "sha256", "fnv1a")
        }
        now = by_choice[10, "murmur3_128"]
        full = [0] * 10
        for key, count in messages.items():
            full[partition_of(key, 10)] += count
        assert (now["skew"], now["moved"]) == (pytest.approx(skew(full, 10), abs=1e-4), 0.0)
        assert by_choice[20, "murmur3_128"]["moved"] == pytest.approx(0.5, abs=0.15), "doubling moves about half"

    @pytest.mark.parametrize("present", HASH_FUNCTIONS)
    def test_another_choice_is_what_publishing_would_make_of_it(self, present: str) -> None:
        messages: dict[Entity, int] = {b"device-%d" % number: number % 7 + 1 for number in range(100)}
        messages |= {UUID(int=number << 64 | number): 3 * number for number in range(1, 30)}
        found = what_if(messages, 6, present)
        choices = [(one["partitions"], one["hash_function"]) for one in found]
        assert sorted(choices) == sorted(product((3, 6, 12, 24), HASH_FUNCTIONS))
        assert found == [self.plainly(messages, (6, present), choice) for choice in choices]

    def plainly(self, messages: dict[Entity, int], present: tuple[int, str], choice: tuple[int, str]) -> dict[str, Any]:
        full, moved = Counter[int](), 0
        for key, count in messages.items():
            before, after = (partition_of(key, number, HASH_FUNCTIONS[name]) for number, name in (present, choice))
            full[after] += count
            moved += count if after != before else 0
        even = sum(messages.values()) / choice[0]
        return {
            "partitions": choice[0],
            "hash_function": choice[1],
            "skew": pytest.approx(max(full.values()) / even, abs=1e-4),
            "moved": pytest.approx(moved / sum(messages.values()), abs=1e-4),
        }

    def test_one_entity_stays_one_partition(self) -> None:
        """No count and no hash spreads it: that is for the queue's owner to know."""
        found = what_if({b"all of it": 100}, 8, "murmur3_128")
        assert all(one["skew"] == one["partitions"] for one in found)

    def test_nothing_seen(self) -> None:
        assert what_if({}, 8, "murmur3_128") == []

    def test_even(self) -> None:
        assert (skew([5, 5], 2), skew([], 4), skew([0, 0], 2)) == (1.0, 1.0, 1.0)


def test_buckets_of_the_tests_are_those_of_the_runtime() -> None:
    assert buckets((10, 20), [10, 11, 21, 1]) == [2, 1, 1], "a bound belongs to its bucket"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_tells_events_apart_are_columns_of_theirs(kind: Kind) -> None:
    assert set(kind.identity) < set(kind.arrow.names)
    assert not any(pa.types.is_list(kind.arrow.field(name).type) for name in kind.identity)


class TestOnce:
    def test_what_was_delivered_twice(self, files: Files) -> None:
        """Alike in all that is no list; and what the batch has is new, though the window has it too."""
        first, second = consumed(0, handled=1), consumed(0, handled=1, group="another")
        batch, window = files(CONSUMED_SAMPLES, [first, second, first]), files(CONSUMED_SAMPLES, [first, consumed(5)])
        found = whole(read_once(SampleFiles(batch, window), CONSUMED_SAMPLES, ["group", "handled"], range(PARTS)))
        told = zip(*(found[name].to_pylist() for name in ("at", "group", "handled", "is_new")), strict=True)
        assert sorted(told) == [
            (at(0), "another", 1, True),
            (at(0), "main-consumer-0", 1, True),
            (at(5), "main-consumer-0", 0, False),
        ]

    def test_nothing_is_read_but_what_is_wanted(self, files: Files) -> None:
        samples = files(CONSUMED_SAMPLES, [consumed(0, tenants=[tenant(ACME, 7, 70)]), consumed(1)])
        wanted = ("handled", "tenants.messages", "tenants.bytes")
        found = whole(read_once(SampleFiles(samples), CONSUMED_SAMPLES, wanted, range(PARTS)))
        assert set(found.column_names) == {"at", "queue_id", "partition", "handled", "tenants", "is_new"}
        assert found["tenants"].to_pylist() == [[{"messages": 7, "bytes": 70}], []]

    def test_what_was_counted_before_is_left_out(self, files: Files) -> None:
        """Not what is only like it: another group's, of the same moment."""
        first, other = consumed(0, handled=1), consumed(0, handled=1, group="another")
        batch, counted = files(CONSUMED_SAMPLES, [first, other, consumed(5)]), files(CONSUMED_SAMPLES, [first, first])
        found = whole(read_once(SampleFiles(batch, counted=counted), CONSUMED_SAMPLES, ["group"], range(PARTS)))
        told = zip(*(found[name].to_pylist() for name in ("at", "group", "is_new")), strict=True)
        assert sorted(told) == [(at(0), "another", True), (at(5), "main-consumer-0", True)]

    def test_nothing(self, parts: DataFrame) -> None:
        nothing = SampleFiles(NO_FILES)
        assert rows(processing_minutes(parts, nothing)) == []
        assert rows(letter_trend(parts, nothing)) == []
        assert rows(tenant_usage(parts, nothing, nothing)) == []
        assert rows(partition_heat(heat_counts(parts, nothing))) == []


class TestPieces:
    """However little is looked at together: a group of rows, part by part, and sums that are grouped each time."""

    @pytest.fixture
    def samples(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[Kind, SampleFiles]:
        """In the batch, in the window, and counted before; in files that have parts, and in those that have none."""
        made: dict[Kind, SampleFiles] = {}
        for kind, make in ((CONSUMED_SAMPLES, self.consumed), (SENT_SAMPLES, self.sent)):
            everything = [make(number) for number in range(90)]
            places = (everything[30:70], everything[45:90], everything[:50])
            found = []
            for number, (smallest, some) in enumerate(zip((0, 1 << 30, 0), places, strict=True)):
                monkeypatch.setattr(writing, "PARTED_BYTES", smallest)
                writer = writing.EventWriter(path := tmp_path / f"{kind.name}-{number}.parquet", kind)
                for one in (some[:20], some[20:], some[:3]):
                    writer.add(pa.Table.from_pylist(one, kind.arrow))
                writer.close()
                found.append(EventFiles((str(path),)))
            made[kind] = SampleFiles(*found)
        return made

    def consumed(self, number: int) -> Row:
        letters = [{"fingerprint": f"f{number % 3}", "tenant_id": ACME, "letters": number}]
        return consumed(
            number,
            [1.5, float(number)],
            partition=number * 7 % 60,
            handled=number,
            polled=1,
            tenants=[tenant(ACME, number, 10), tenant(BOLT, 1)],
            entities=[entity(b"%d" % (number % 5), 1, ACME), entity(b"all", 2)],
            letters=letters,
        )

    def sent(self, number: int) -> Row:
        return sent(number, partition=number % 60, tenants=[tenant(ACME, 1, number)])

    def sums(self, samples: dict[Kind, SampleFiles], parts: set[int]) -> list[list[Row]]:
        of_consumers, of_producers = samples[CONSUMED_SAMPLES], samples[SENT_SAMPLES]
        counts = (
            usage._count(of_consumers, of_producers, [], parts),
            heat._count(of_consumers, parts),
            processing._count_minutes(of_consumers, parts),
            processing._count_letters(of_consumers, parts),
        )
        return [sorted((row for one in count for row in one.to_pylist()), key=str) for count in counts]

    def test_sums_are_the_same(self, samples: dict[Kind, SampleFiles], monkeypatch: pytest.MonkeyPatch) -> None:
        everywhere = set(range(PARTS))
        at_once = self.sums(samples, everywhere)
        assert len(list(read_once(samples[CONSUMED_SAMPLES], CONSUMED_SAMPLES, ["handled"], everywhere))) == 1
        for module, name in ((part_files, "PIECE_BYTES"), (samples_of, "PIECE_BYTES"), (samples_of, "MUCH_BYTES")):
            monkeypatch.setattr(module, name, 0)
        monkeypatch.setattr(samples_of, "_FEW_ROWS", 0)
        pieces = list(read_once(samples[CONSUMED_SAMPLES], CONSUMED_SAMPLES, ["handled"], everywhere))
        assert len(pieces) > 5
        # What was counted before is left out, and so is what is there again.
        assert sorted(one for piece in pieces for one in piece["handled"].to_pylist()) == list(range(50, 90))
        assert self.sums(samples, everywhere) == at_once
        assert all(at_once)


def whole(pieces: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(pieces)


def test_other_versions_bounds_are_left_out(parts: DataFrame, files: Files) -> None:
    others = [
        consumed(0, handled=1, processing_bounds_ms=[1.0], processing_buckets=[5, 5]),
        consumed(1, handled=1, processing_bounds_ms=[], processing_buckets=[]),
        consumed(2, handled=1, processing_bounds_ms=[bound + 1 for bound in PROCESSING_BOUNDS_MS]),
    ]
    (row,) = rows(processing_minutes(parts, SampleFiles(files(CONSUMED_SAMPLES, others))))
    assert (row["handled"], sum(row["buckets"]), row["p50_ms"]) == (3, 0, None)
    (row,) = rows(processing_minutes(parts, SampleFiles(files(CONSUMED_SAMPLES, [*others, consumed(3, [1.5])]))))
    assert (row["handled"], sum(row["buckets"]), row["p50_ms"]) == (3, 1, 1.5)
