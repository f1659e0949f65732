"""One partition of the log: segments, torn tails, corruption, several writers."""

import logging
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecore.errors import CorruptLog, OffsetOutOfRange
from queuecore.messages import QueueMessage, Record
from queuecore.providers.base import DAY_MS
from queuecore.providers.log.batch import encode_batch
from queuecore.providers.log.files import partition_dir, segment_bases, segment_path
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition

PLACE = ProviderPartition("topic", 0)


def messages(*data: str) -> list[QueueMessage]:
    return [QueueMessage(None, one.encode()) for one in data]


class Partition:
    """A partition in a folder of its own, written in segments so small that each takes only a few batches."""

    def __init__(self, root: Path, segment_bytes: int = 200) -> None:
        self.root = root
        self.folder = partition_dir(root, PLACE)
        self._segment_bytes = segment_bytes
        self._writers: list[PartitionWriter] = []

    def writer(self) -> PartitionWriter:
        """Another writer, as another process would have it."""
        writer = PartitionWriter(self.root, PLACE, self._segment_bytes)
        self._writers.append(writer)
        return writer

    def read(self, offset: int = 0, max_records: int = 1_000_000) -> list[Record]:
        with closing(PartitionReader(self.root, PLACE)) as reader:
            return reader.read(offset, max_records)

    def data(self, offset: int = 0) -> list[str]:
        return [record.data.decode() for record in self.read(offset)]

    def segments(self) -> list[Path]:
        return [segment_path(self.folder, base) for base in segment_bases(self.folder)]

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    with closing(Partition(tmp_path)) as partition:
        yield partition


def append(writer: PartitionWriter, *data: str, retention_ms: int = DAY_MS) -> int:
    return writer.append(messages(*data), 1_700_000_000_000, sync=False, retention_ms=retention_ms)


# --- segments


def test_a_log_goes_on_over_many_segments(partition: Partition) -> None:
    writer = partition.writer()
    sent = [f"message {number}" for number in range(100)]
    assert [append(writer, one) for one in sent] == list(range(100))
    assert len(partition.segments()) > 10
    assert partition.data() == sent


def test_a_log_can_be_read_from_any_offset_in_any_portion(partition: Partition) -> None:
    writer = partition.writer()
    for start in range(0, 60, 3):
        append(writer, *[str(number) for number in range(start, start + 3)])
    for offset in range(61):
        for portion in (1, 2, 7, 100):
            wanted = list(range(offset, min(60, offset + portion)))
            assert [record.offset for record in partition.read(offset, portion)] == wanted


def test_one_reader_may_go_on_jump_and_go_back(partition: Partition) -> None:
    writer = partition.writer()
    for start in range(0, 60, 3):
        append(writer, *[str(number) for number in range(start, start + 3)])
    with closing(PartitionReader(partition.root, PLACE)) as reader:
        for offset, portion in [(0, 2), (2, 2), (4, 10), (14, 1), (50, 100), (60, 1), (3, 4), (7, 100)]:
            wanted = list(range(offset, min(60, offset + portion)))
            assert [record.offset for record in reader.read(offset, portion)] == wanted


def test_only_closed_segments_are_removed_and_only_when_they_are_old(partition: Partition) -> None:
    writer = partition.writer()
    for number in range(30):
        append(writer, str(number))
    old, kept = partition.segments()[:2], partition.segments()[2:]
    for path in (*old, kept[-1]):
        os.utime(path, (0, 0))
    while partition.segments()[-1] == kept[-1]:
        append(writer, "more")
    assert partition.segments()[:-1] == kept

    beginning = int(kept[0].stem)
    assert [record.offset for record in partition.read(beginning, 3)] == [beginning, beginning + 1, beginning + 2]
    with pytest.raises(OffsetOutOfRange) as refused:
        partition.read(beginning - 1)
    assert refused.value.fields["beginning"] == beginning


def test_the_segment_in_use_stays_however_old(partition: Partition) -> None:
    writer = partition.writer()
    append(writer, "x" * 300)
    append(writer, "y", retention_ms=0)
    os.utime(partition.segments()[-1], (0, 0))
    append(writer, "z", retention_ms=0)
    assert partition.data(1) == ["y", "z"]


# --- after a crash


@pytest.mark.parametrize("left", [1, 4, 20, 24, 30, -1], ids=lambda left: f"{left} bytes")
def test_a_torn_tail_is_cut_at_the_last_whole_batch_and_said(
    partition: Partition, caplog: pytest.LogCaptureFixture, left: int
) -> None:
    append(partition.writer(), "first", "second")
    whole = partition.segments()[-1].read_bytes()
    torn = encode_batch(2, 0, messages("never acknowledged"))[:left]
    partition.segments()[-1].write_bytes(whole + torn)
    with caplog.at_level(logging.WARNING):
        assert append(partition.writer(), "third") == 2
    assert f"cut a torn tail of {len(torn)} bytes behind offset 2" in caplog.text
    assert partition.data() == ["first", "second", "third"]


def test_a_whole_batch_whose_writer_died_before_publishing_it_is_kept(partition: Partition) -> None:
    append(partition.writer(), "first")
    with partition.segments()[-1].open("ab") as segment:
        segment.write(encode_batch(1, 0, messages("written")))
    assert partition.data() == ["first"]
    partition.writer().recover()
    assert partition.data() == ["first", "written"]


def test_a_live_writer_notices_what_a_dead_one_left(partition: Partition) -> None:
    living = partition.writer()
    append(living, "first")
    with partition.segments()[-1].open("ab") as segment:
        segment.write(encode_batch(1, 0, messages("torn"))[:-1])
    assert append(living, "second") == 1
    assert partition.data() == ["first", "second"]


def test_a_reader_does_not_remember_a_torn_tail(partition: Partition) -> None:
    living = partition.writer()
    append(living, "first")
    with partition.segments()[-1].open("ab") as segment:
        segment.write(encode_batch(1, 0, messages("a torn batch, longer than what comes instead"))[:-1])
    with closing(PartitionReader(partition.root, PLACE)) as reader:
        assert [record.data for record in reader.read(0, 10)] == [b"first"]
        append(living, "second")
        assert [record.data for record in reader.read(1, 10)] == [b"second"]


@pytest.mark.parametrize("known", [True, False], ids=["a live writer", "a new writer"])
def test_a_writer_that_rolled_and_died_leaves_an_empty_segment(partition: Partition, known: bool) -> None:
    living = partition.writer()
    append(living, "first")
    segment_path(partition.folder, 1).touch()
    writer = living if known else partition.writer()
    assert append(writer, "second") == 1
    assert [path.stat().st_size > 0 for path in partition.segments()] == [True, True]
    assert partition.data() == ["first", "second"]
    partition.writer().recover()
    assert partition.data() == ["first", "second"]


# --- corruption


def corrupt(partition: Partition, batch_index: int) -> dict[Path, bytes]:
    """Flip a byte of one batch of equal ones; the files as they are then."""
    path = partition.segments()[-1]
    raw = bytearray(path.read_bytes())
    size = len(raw) // 3
    raw[batch_index * size + size // 2] ^= 0xFF
    path.write_bytes(raw)
    return {path: path.read_bytes() for path in partition.folder.iterdir()}


def test_corruption_with_whole_batches_behind_it_is_never_cut(tmp_path: Path) -> None:
    with closing(Partition(tmp_path, segment_bytes=10_000)) as partition:
        writer = partition.writer()
        for one in ("first", "secnd", "third"):
            append(writer, one)
        before = corrupt(partition, 1)
        with pytest.raises(CorruptLog, match=r"position \d+ .* nothing was changed"):
            partition.writer().recover()
        with pytest.raises(CorruptLog):
            append(partition.writer(), "fourth")
        assert {path: path.read_bytes() for path in partition.folder.iterdir()} == before

        assert [record.data for record in partition.read(0, 1)] == [b"first"]
        with pytest.raises(CorruptLog, match="offset 1 cannot be read"):
            partition.read(0)


def test_a_batch_out_of_its_place_is_corruption_too(tmp_path: Path) -> None:
    with closing(Partition(tmp_path, segment_bytes=10_000)) as partition:
        append(partition.writer(), "first")
        with partition.segments()[-1].open("ab") as segment:
            segment.write(encode_batch(7, 0, messages("from elsewhere")))
        with pytest.raises(CorruptLog):
            partition.writer().recover()


# --- several writers

steps = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["append", "append", "append", "tear", "roll", "reopen"])), max_size=30
)


@settings(max_examples=60)
@given(steps)
def test_writers_in_any_order_give_offsets_without_gaps(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    """Three writers of one partition, some of which die in the middle of an append or a roll."""
    with closing(Partition(tmp_path_factory.mktemp("log"))) as partition:
        writers = [partition.writer() for _ in range(3)]
        sent: list[str] = []
        for turn, (who, step) in enumerate(steps):
            segments = partition.segments()
            if step == "append":
                assert append(writers[who], f"{turn} one", f"{turn} two") == len(sent)
                sent += [f"{turn} one", f"{turn} two"]
            elif step == "reopen":
                writers[who] = partition.writer()
            elif step == "tear" and segments:
                with segments[-1].open("ab") as segment:
                    segment.write(encode_batch(len(sent), 0, messages("torn"))[:-1])
            elif step == "roll" and segments and _is_whole_segment(segments[-1], partition, len(sent)):
                segment_path(partition.folder, len(sent)).touch()
        for offset in range(len(sent) + 1):
            if sent:
                assert partition.data(offset) == sent[offset:]


def _is_whole_segment(path: Path, partition: Partition, end: int) -> bool:
    """A writer rolls only behind a segment it found whole, so that is the only time it can die of it."""
    return not path.read_bytes().endswith(encode_batch(end, 0, messages("torn"))[:-1])
