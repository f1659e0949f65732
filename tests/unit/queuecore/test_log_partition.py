"""Reading one partition: in portions, by offset, by time, with and without its indexes, and where bytes are harmed."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecore.errors import CorruptLog, OffsetOutOfRange, UnknownTopic
from queuecore.messages import QueueMessage
from queuecore.providers.log.batch import Origin, encode_body
from queuecore.providers.log.closed import look_at
from queuecore.providers.log.files import index_path
from queuecore.providers.log.index import Index, IndexWriter
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.log.segment import HEAD_SIZE
from queuecore.providers.log.times import offset_for_time
from queuecore.providers.options import Compression
from tests.kill_points import KillPoint
from tests.log_partitions import PLACE, Partition, append, batch, texts
from tests.processes import Child
from tests.unit.queuecore.test_log_writer import die_rolling


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    with closing(Partition(tmp_path)) as partition:
        yield partition


@pytest.fixture
def twenty(tmp_path: Path) -> Iterator[Partition]:
    """Twenty batches of three records in seven segments."""
    with closing(Partition(tmp_path, segment_bytes=250)) as partition:
        writer = partition.writer()
        for start in range(0, 60, 3):
            append(writer, *[str(number) for number in range(start, start + 3)], at_ms=start)
        assert len(partition.segments()) == 7
        yield partition


# --- in portions


def test_a_log_can_be_read_from_any_offset_in_any_portion(twenty: Partition) -> None:
    for offset in range(61):
        for portion in (1, 2, 7, 100):
            wanted = list(range(offset, min(60, offset + portion)))
            assert [record.offset for record in twenty.read(offset, portion)] == wanted


def test_one_reader_may_go_on_jump_and_go_back(twenty: Partition) -> None:
    reader = twenty.reader()
    for offset, portion in [(0, 2), (2, 2), (4, 10), (14, 1), (50, 100), (60, 1), (3, 4), (7, 100), (59, 1), (0, 60)]:
        wanted = list(range(offset, min(60, offset + portion)))
        assert [record.offset for record in reader.read(offset, portion)] == wanted
        assert reader.next_offset == min(60, offset + portion) or not wanted


def test_a_reader_that_follows_sees_each_record_once_from_segment_to_segment(tmp_path: Path) -> None:
    with closing(Partition(tmp_path, segment_bytes=250)) as partition:
        writer = partition.writer()
        writer.recover()
        reader = partition.reader()
        seen: list[str] = []
        for number in range(50):
            assert reader.read(len(seen), 10) == []
            append(writer, f"{number} a", f"{number} b")
            seen += texts(reader.read(len(seen), 1))
            seen += texts(reader.read(len(seen), 10))
        assert seen == [f"{number} {which}" for number in range(50) for which in "ab"]


@pytest.mark.parametrize(("max_bytes", "wanted"), [(1, ["a" * 10]), (25, ["a" * 10, "b" * 10]), (30, list("abc"))])
def test_no_more_bytes_are_given_than_asked_for_but_one_record_at_least(
    partition: Partition, max_bytes: int, wanted: list[str]
) -> None:
    append(partition.writer(), "a" * 10, "b" * 10, "c" * 10, "d" * 10)
    records = partition.reader().read(0, 100, max_bytes)
    assert [record.data.decode()[0] for record in records] == [one[0] for one in wanted]


def test_bytes_are_counted_over_batches(partition: Partition) -> None:
    writer = partition.writer()
    for one in "abcdef":
        append(writer, one * 1000)
    reader = partition.reader()
    records = reader.read(0, 100, 3_500)
    assert [record.offset for record in records] == [0, 1, 2]
    assert [record.offset for record in reader.read(reader.next_offset, 100, 10)] == [3]


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_compressed_batches_are_read_like_any_other(partition: Partition, compression: Compression) -> None:
    writer = partition.writer()
    sent = [f"{number} {'x' * number}" for number in range(100)]
    for start in range(0, 100, 10):
        body = encode_body([QueueMessage(b"k", one.encode()) for one in sent[start : start + 10]], compression)
        writer.append(body, 0, sync=False)
    assert partition.data() == sent
    assert partition.data(55) == sent[55:]


# --- transactions


def test_a_reader_leaves_out_what_was_aborted_and_waits_where_nothing_is_decided(partition: Partition) -> None:
    writer = partition.writer()
    outcomes: dict[int, bool | None] = {1: True, 2: False, 3: None}
    for number, name in enumerate(["plain", "committed", "aborted", "open", "behind"]):
        append(writer, f"{name} a", f"{name} b", origin=Origin(transaction=number % 4))
    with closing(PartitionReader(partition.root, PLACE, outcomes.__getitem__)) as reader:
        assert texts(reader.read(0, 100)) == ["plain a", "plain b", "committed a", "committed b"]
        assert reader.next_offset == 6, "what is left out need not be looked at again"
        assert reader.read(6, 100) == []
        outcomes[3] = True
        assert texts(reader.read(6, 3)) == ["open a", "open b", "behind a"]
        assert texts(reader.read(3, 1)) == ["committed b"]
        assert texts(reader.read(4, 1)) == ["open a"]
        assert texts(reader.read(5, 1)) == ["open a"]
    assert len(partition.read()) == 10, "who reads uncommitted sees all"


# --- what is no longer there, and what is not there yet


def test_what_is_below_the_beginning_is_refused_and_the_beginning_told(twenty: Partition) -> None:
    reader = twenty.reader()
    reader.read(0, 2)
    twenty.writer().begin_at(4)
    assert (reader.beginning(), reader.end()) == (4, 60)
    for offset in (0, 2, 3):
        with pytest.raises(OffsetOutOfRange, match=r"topic\.0\[0\] begins at offset 4; .* removed by retention") as no:
            reader.read(offset, 1)
        assert no.value.fields["beginning"] == 4
    assert texts(reader.read(4, 2)) == ["4", "5"]


def test_segments_that_were_removed_are_told_the_same_way(twenty: Partition) -> None:
    reader = twenty.reader()
    for path in twenty.segments()[:2]:
        path.unlink()
    beginning = int(twenty.segments()[0].stem)
    assert reader.beginning() == beginning
    with pytest.raises(OffsetOutOfRange) as no:
        reader.read(beginning - 1, 1)
    assert no.value.fields["beginning"] == beginning
    assert [record.offset for record in reader.read(beginning, 1)] == [beginning]


def test_a_reader_does_not_remember_a_torn_tail(partition: Partition) -> None:
    living = partition.writer()
    append(living, "first")
    partition.add_bytes(batch(1, "a torn batch, longer than what comes instead")[:-1])
    with closing(PartitionReader(partition.root, PLACE)) as reader:
        assert texts(reader.read(0, 10)) == ["first"]
        append(living, "second")
        assert texts(reader.read(1, 10)) == ["second"]


def test_a_whole_batch_whose_writer_died_before_publishing_it_is_seen_once_it_is_published(
    partition: Partition,
) -> None:
    append(partition.writer(), "first")
    partition.add_bytes(batch(1, "written"))
    reader = partition.reader()
    assert texts(reader.read(0, 10)) == ["first"]
    partition.writer().recover()
    assert texts(reader.read(1, 10)) == ["written"]


def test_a_partition_without_a_folder_is_an_unknown_topic(partition: Partition) -> None:
    with pytest.raises(UnknownTopic, match="create it first"):
        partition.reader()
    assert not partition.folder.exists()


# --- harm


def test_harmed_bytes_are_never_given(partition: Partition) -> None:
    writer = partition.writer()
    for one in ("first", "secnd", "third"):
        append(writer, one)
    [segment] = partition.segments()
    whole = segment.read_bytes()
    size = (len(whole) - HEAD_SIZE) // 3
    for position in range(HEAD_SIZE + size, HEAD_SIZE + 2 * size):
        segment.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with closing(PartitionReader(partition.root, PLACE)) as reader:
            assert texts(reader.read(0, 10)) == ["first"], "what is sound is given"
            with pytest.raises(CorruptLog, match=r"offset 1 cannot be read\. Restore the file from a copy") as no:
                reader.read(1, 10)
        assert (no.value.fields["file"], no.value.fields["position"]) == (str(segment), HEAD_SIZE + size)


def test_a_file_that_ends_too_early_is_told(partition: Partition) -> None:
    append(partition.writer(), "first")
    append(partition.writer(), "second")
    [segment] = partition.segments()
    os.truncate(segment, HEAD_SIZE + len(batch(0, "first")))
    assert texts(partition.read(0, 2)) == ["first"]
    with pytest.raises(CorruptLog, match="ends before offset 1, which was stored") as no:
        partition.read(1, 2)
    assert no.value.fields == {"file": str(segment), "offset": 1}


# --- indexes


class Sizes:
    """A segment of two thousand batches, and how many bytes of it are read."""

    def __init__(self, partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
        writer = partition.writer()
        for number in range(2_000):
            append(writer, f"{number:06}", at_ms=10 * number)
        self.partition = partition
        self.size = partition.segments()[0].stat().st_size
        self._asked = 0
        pread = os.pread

        def counting(descriptor: int, length: int, position: int) -> bytes:
            raw = pread(descriptor, length, position)
            self._asked += len(raw)
            return raw

        monkeypatch.setattr(os, "pread", counting)
        monkeypatch.setattr("queuecore.providers.log.cursor.READ_CHUNK_BYTES", 0)

    def of(self, question: Callable[[PartitionReader], int], answer: int) -> int:
        with closing(PartitionReader(self.partition.root, PLACE)) as reader:
            self._asked = 0
            assert question(reader) == answer
        return self._asked


def test_an_index_makes_seeking_cheap_and_its_loss_makes_it_slow_and_nothing_else(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = Sizes(partition, monkeypatch)
    questions: list[Callable[[PartitionReader], int]] = [
        lambda reader: reader.read(1_900, 1)[0].offset,
        lambda reader: offset_for_time(partition.root, PLACE, reader, 18_995),
    ]
    for question in questions:
        assert sizes.of(question, 1_900) < 10_000
    index_path(partition.folder, 0).unlink()
    for question in questions:
        assert sizes.of(question, 1_900) > 0.5 * sizes.size


index_damage = st.sampled_from(
    ["missing", "empty", "half", "cut", "zeros", "noise", "flipped", "of another", "swapped"]
)


def damage(path: Path, how: str, chance: random.Random, of_another: bytes) -> None:
    raw = bytearray(path.read_bytes())
    if how == "missing":
        path.unlink()
        return
    if how == "flipped":
        for _ in range(chance.randint(1, 10)):
            raw[chance.randrange(len(raw))] ^= chance.randint(1, 255)
    elif how == "swapped":
        middle = chance.randrange(len(raw))
        raw = raw[middle:] + raw[:middle]
    changed = {
        "empty": b"",
        "half": raw[: len(raw) // 2],
        "cut": raw[: -chance.randint(1, 27)],
        "zeros": bytes(len(raw)),
        "noise": chance.randbytes(len(raw)),
        "of another": of_another,
    }
    path.write_bytes(changed.get(how, raw))


@pytest.fixture(scope="module")
def stamped(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Stamped"]:
    chance = random.Random(7)
    with closing(Partition(tmp_path_factory.mktemp("stamped"))) as partition:
        writer = partition.writer()
        times: list[int] = []
        for number in range(240):
            if number in {80, 160}:
                writer.roll()
            times += [1_000 + 10 * number + chance.randint(-300, 300)] * 2
            append(writer, "x" * 400, "y" * 400, at_ms=times[-1])
        yield Stamped(partition, times)


class Stamped:
    """Records in three segments whose times go up and down, each with several index entries."""

    def __init__(self, partition: Partition, times: list[int]) -> None:
        self.partition = partition
        self.times = times


@settings(max_examples=100)
@given(
    harm=st.dictionaries(st.sampled_from([0, 160, 320]), index_damage, max_size=3),
    seed=st.integers(0, 1_000),
    time_ms=st.integers(0, 4_000),
    offset=st.integers(0, 479),
)
def test_whatever_the_indexes_say_the_answers_are_right(
    stamped: Stamped, harm: dict[int, str], seed: int, time_ms: int, offset: int
) -> None:
    partition, times = stamped.partition, stamped.times
    paths = {base: index_path(partition.folder, base) for base in (0, 160, 320)}
    sound = {base: path.read_bytes() for base, path in paths.items()}
    try:
        for base, how in harm.items():
            damage(paths[base], how, random.Random(seed), sound[160])
        with closing(PartitionReader(partition.root, PLACE)) as reader:
            assert [record.offset for record in reader.read(offset, 3)] == list(range(offset, min(offset + 3, 480)))
            wanted = next((at for at, one in enumerate(times) if one >= time_ms), 480)
            assert offset_for_time(partition.root, PLACE, reader, time_ms) == wanted
        assert look_at(partition.folder, 0).latest_ms == max(times[:160])
    finally:
        for base, path in paths.items():
            path.write_bytes(sound[base])


def test_a_disk_that_takes_half_an_entry_leaves_the_next_in_step(tmp_path: Path) -> None:
    with closing(IndexWriter(tmp_path, 0)) as writer:
        writer.add(0, 16, -1)
        path = index_path(tmp_path, 0)
        path.write_bytes(path.read_bytes() + b"half of one")
        writer.add(5, 500, 30)
    index = Index.read(tmp_path, 0)
    assert len(index) == 2
    assert index.last() == (5, 500, 30)
    assert index.at_or_before(4) == (0, 16, -1)


# --- times


def test_an_offset_is_found_by_time(twenty: Partition) -> None:
    reader = twenty.reader()
    for time_ms in range(-1, 60):
        first = next((record.offset for record in twenty.read() if record.timestamp_ms >= time_ms), 60)
        assert offset_for_time(twenty.root, PLACE, reader, time_ms) == first


def test_a_record_below_the_beginning_is_not_found_by_time(partition: Partition) -> None:
    writer = partition.writer()
    for at_ms in (50, 10, 20):
        append(writer, "x", at_ms=at_ms)
    writer.begin_at(1)
    assert offset_for_time(partition.root, PLACE, partition.reader(), 15) == 2
    assert offset_for_time(partition.root, PLACE, partition.reader(), 40) == 3


@pytest.mark.parametrize("point", [KillPoint("note"), KillPoint("note", "after")], ids=str)
def test_a_writer_that_dies_rolling_does_not_hide_a_time(partition: Partition, point: KillPoint) -> None:
    """The index says that the segment is over, but no other follows."""
    append(partition.writer(), "first", at_ms=10)
    with Child(die_rolling, partition.root, point) as child:
        assert child.join() == -9
    reader = partition.reader()
    assert offset_for_time(partition.root, PLACE, reader, 5) == 0
    assert offset_for_time(partition.root, PLACE, reader, 20) == 1
    append(partition.writer(), "second", at_ms=20)
    assert offset_for_time(partition.root, PLACE, reader, 20) == 1


def test_an_empty_partition_has_no_times(partition: Partition) -> None:
    partition.writer().recover()
    assert offset_for_time(partition.root, PLACE, partition.reader(), 0) == 0
