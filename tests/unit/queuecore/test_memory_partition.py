"""One partition in memory, against a plain list."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.errors import OffsetOutOfRange
from queuecore.messages import TOMBSTONE
from queuecore.providers.base import DAY_MS, FOR_EVER, Cleanup, TopicSpec
from queuecore.providers.memory.partition import TOMBSTONE_RETENTION_MS, MemoryPartition
from queuecore.providers.memory.segment import SEGMENT_RECORDS
from queuecore.topics import ProviderPartition

PLACE = ProviderPartition("t", 3)


def make(capacity: int = 10_000, cleanup: Cleanup = "delete", **spec: int) -> MemoryPartition:
    return MemoryPartition(PLACE, TopicSpec("t", cleanup=cleanup, **spec), capacity)


def put(partition: MemoryPartition, *data: bytes, key: bytes | None = None, now_ms: int = 0) -> int:
    return partition.append([(key, one, {}) for one in data], [len(one) for one in data], now_ms)


def bury(partition: MemoryPartition, key: bytes, now_ms: int = 0) -> int:
    return partition.append([(key, b"", {TOMBSTONE: b""})], [1], now_ms)


def offsets(partition: MemoryPartition) -> list[int]:
    return [record.offset for record in partition.read(partition.beginning, 100_000)]


def room(partition: MemoryPartition) -> int:
    """For messages with keys that are new."""
    return partition.fitting([(b"new-%d" % number, b"", {}) for number in range(20_000)])


def test_records_know_where_they_are_and_what_they_hold() -> None:
    partition = make()
    put(partition, b"0", b"1", key=b"k", now_ms=17)
    _, record = partition.read(0, 10)
    assert (record.topic, record.partition, record.offset, record.timestamp_ms) == ("t", 3, 1, 17)
    assert (record.key, record.headers, record.data) == (b"k", {}, b"1")


def test_a_partition_goes_on_over_its_segments() -> None:
    partition, count = make(), 2 * SEGMENT_RECORDS + 10
    put(partition, *[b"%d" % number for number in range(count)])
    records = partition.read(SEGMENT_RECORDS - 5, 10)
    assert [record.data for record in records] == [b"%d" % number for number in range(1_019, 1_029)]
    assert [record.offset for record in partition.read(0, count)] == list(range(count))


def test_what_is_trimmed_is_gone_and_gives_room() -> None:
    partition = make(capacity=3_000)
    put(partition, *[b"xx"] * 3_000)
    assert room(partition) == 0
    partition.trim(1_500)
    assert (partition.beginning, room(partition), partition.size_bytes) == (1_500, 1_500, 3_000)
    with pytest.raises(OffsetOutOfRange) as refused:
        partition.read(1_499, 1)
    assert refused.value.fields == {"beginning": 1_500, "end": 3_000}
    partition.trim(9_999)
    assert (partition.beginning, partition.end, room(partition)) == (3_000, 3_000, 3_000)
    assert put(partition, b"next") == 3_000
    assert [record.data for record in partition.read(3_000, 10)] == [b"next"]


def test_old_records_go() -> None:
    partition = make(retention_ms=1_000)
    for now_ms in (0, 600, 1_200):
        put(partition, b"x", now_ms=now_ms)
    partition.apply_retention(1_000)
    assert offsets(partition) == [0, 1, 2]
    partition.apply_retention(1_601)
    assert offsets(partition) == [2]


def test_more_bytes_than_the_topic_keeps_go() -> None:
    partition = make(retention_ms=FOR_EVER, retention_bytes=10)
    put(partition, b"12345", b"12345", b"123456", b"1")
    partition.apply_retention(0)
    assert (offsets(partition), partition.size_bytes) == ([1, 2, 3], 12)


def test_a_topic_that_is_only_compacted_keeps_what_is_old() -> None:
    partition = make(cleanup="compact", retention_ms=1, retention_bytes=1)
    put(partition, b"x", b"y", key=b"k")
    partition.apply_retention(10 * DAY_MS)
    assert offsets(partition) == [0, 1]


def test_compaction_keeps_the_last_of_each_key_at_its_offset() -> None:
    partition = make(cleanup="compact")
    for data in (b"0", b"1", b"2"):
        put(partition, data, key=b"a")
        put(partition, data, key=b"b")
    partition.forget(0, 0)
    assert [(record.key, record.data, record.offset) for record in partition.read(0, 10)] == [
        (b"a", b"2", 4),
        (b"b", b"2", 5),
    ]
    assert (partition.beginning, partition.end, room(partition)) == (0, 6, 9_998)
    assert [record.offset for record in partition.read(5, 10)] == [5]


def test_compaction_comes_by_itself_before_it_is_too_late() -> None:
    partition = make(capacity=5_000, cleanup="compact")
    for number in range(40):
        put(partition, *[b"%d" % number] * 250, key=b"%d" % (number % 4))
    records = partition.read(0, 10_000)
    assert len(records) < 5_000
    assert {record.data for record in records} >= {b"36", b"37", b"38", b"39"}


def test_a_tombstone_stays_for_a_day_or_until_all_have_seen_it() -> None:
    partition = make(cleanup="compact")
    put(partition, b"0", key=b"a")
    bury(partition, b"a", now_ms=5)
    put(partition, b"0", key=b"b")
    partition.forget(0, TOMBSTONE_RETENTION_MS)
    assert [record.is_tombstone for record in partition.read(0, 10)] == [True, False]
    partition.forget(2, TOMBSTONE_RETENTION_MS)
    assert offsets(partition) == [2]
    bury(partition, b"b", now_ms=5)
    partition.forget(0, TOMBSTONE_RETENTION_MS + 6)
    assert (offsets(partition), partition.end) == ([], 4)


def test_records_are_found_by_time_even_when_the_clock_went_back() -> None:
    partition = make()
    for now_ms in (10, 30, 20, 40):
        put(partition, b"x", now_ms=now_ms)
    assert [partition.first_at(time_ms) for time_ms in (0, 10, 11, 31, 41)] == [0, 0, 1, 3, 4]
    partition.trim(2)
    assert partition.first_at(0) == 2


@dataclass
class Model:
    kept: list[tuple[int, bytes]] = field(default_factory=list)
    beginning: int = 0
    end: int = 0


steps = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 1_500)),
    st.tuples(st.just("trim"), st.integers(0, 4_000)),
    st.tuples(st.just("compact"), st.just(0)),
)


@given(st.lists(steps, max_size=12), st.integers(0, 4_000), st.integers(1, 2_000), st.integers(1, 3_000))
def test_a_partition_reads_like_a_list(
    what: list[tuple[str, int]], offset: int, max_records: int, max_bytes: int
) -> None:
    partition, model = make(capacity=20_000, cleanup="compact,delete"), Model()
    for step, number in what:
        if step == "put":
            for at in range(model.end, model.end + number):
                model.kept.append((at, b"%d" % at))
            keys_and_data = [(b"%d" % (at % 700), b"%d" % at, {}) for at in range(model.end, model.end + number)]
            partition.append(keys_and_data, [len(data) for _, data, _ in keys_and_data], 0)
            model.end += number
        elif step == "trim":
            partition.trim(number)
            model.beginning = max(model.beginning, min(number, model.end))
            model.kept = [one for one in model.kept if one[0] >= model.beginning]
        else:
            partition.forget(0, 0)
        # Compaction comes by itself as well; which records it took is told by the last of each key.
        there = {record.offset for record in partition.read(partition.beginning, 1_000_000)}
        last = {at % 700: at for at, _ in model.kept}
        assert set(last.values()) <= there <= {at for at, _ in model.kept}
        model.kept = [one for one in model.kept if one[0] in there]
    assert (partition.beginning, partition.end) == (model.beginning, model.end)
    assert room(partition) == 20_000 - len({at % 700 for at, _ in model.kept})
    assert partition.size_bytes == sum(len(data) for _, data in model.kept)
    offset = max(offset, model.beginning)
    expected = [one for one in model.kept if one[0] >= offset][:max_records]
    assert [(one.offset, one.data) for one in partition.read(offset, max_records)] == expected
    fitting = [
        one for number, one in enumerate(expected) if sum(len(data) for _, data in expected[: number + 1]) <= max_bytes
    ]
    limited = [(one.offset, one.data) for one in partition.read(offset, max_records, max_bytes)]
    assert limited == (fitting or expected[:1])
