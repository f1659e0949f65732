"""Writing one partition: several writers, dead writers, pages that cannot be relied on, segments that end."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecore.errors import CorruptLog, ForeignFile, UnknownTopic
from queuecore.providers.log import page as page_module
from queuecore.providers.log.batch import HEADER_SIZE
from queuecore.providers.log.files import index_path, segment_path
from queuecore.providers.log.segment import HEAD_SIZE, VERSION
from queuecore.providers.log.writer import PartitionWriter
from tests.kill_points import KillPoint
from tests.log_partitions import NOW_MS, PLACE, Partition, append, batch, contents
from tests.processes import Child

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    with closing(Partition(tmp_path)) as partition:
        yield partition


@pytest.fixture
def preads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read of a segment asked for."""
    asked: list[int] = []
    pread = os.pread

    def counting(descriptor: int, length: int, position: int) -> bytes:
        asked.append(length)
        return pread(descriptor, length, position)

    monkeypatch.setattr(os, "pread", counting)
    return asked


def kept(partition: Partition) -> dict[str, bytes]:
    """What must not change where something is refused. Indexes may: they are made anew at any time."""
    return {name: raw for name, raw in contents(partition.folder).items() if not name.endswith(".index")}


def restart_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "boot_id", lambda: b"after a restart.")


# --- several writers


def test_a_writer_goes_on_where_another_left_off_without_reading_what_it_wrote(
    partition: Partition, preads: list[int]
) -> None:
    one, other = partition.writer(), partition.writer()
    append(other, "of the other")
    append(other, "of the other")
    for number in range(500):
        append(one, str(number))
    preads.clear()
    assert append(other, "of the other") == 502
    assert preads == [], "a writer that was here before has only to look at the page"
    assert append(partition.writer(), "of a third") == 503
    assert preads == [HEAD_SIZE, HEADER_SIZE], (
        "a new one sees whether the file is ours, and how old its first record is"
    )


steps = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["append", "append", "append", "synced", "tear", "write and die", "roll", "reopen"]),
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(steps)
def test_writers_in_any_order_give_offsets_without_gaps(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    """Three writers of one partition with small segments, some of which die in the middle of an append."""
    with closing(Partition(tmp_path_factory.mktemp("log"), segment_bytes=400)) as partition:
        writers = [partition.writer() for _ in range(3)]
        sent: list[str] = []
        torn = False
        for turn, (who, step) in enumerate(steps):
            data = [f"{turn} one", f"{turn} two"]
            if step in {"append", "synced"}:
                assert append(writers[who], *data, sync=step == "synced") == len(sent)
                sent += data
                torn = False
            elif step == "reopen":
                writers[who] = partition.writer()
            elif step == "roll":
                writers[who].roll()
                torn = False
            elif sent and step == "tear":
                partition.add_bytes(batch(len(sent), "torn")[:-1])
                torn = True
            elif sent and not torn:
                partition.add_bytes(batch(len(sent), *data))
                sent += data
        partition.writer().recover()
        for offset in range(len(sent) + 1):
            assert partition.data(offset) == sent[offset:]


# --- writers that die


def die_appending(_: Connection, root: Path, point: KillPoint) -> None:
    with closing(PartitionWriter(root, PLACE)) as writer:
        point.arm()
        append(writer, "second", sync=True)


@pytest.mark.parametrize("known", [True, False], ids=["a live writer", "a new writer"])
@pytest.mark.parametrize(
    ("point", "stored"),
    [
        (KillPoint("write", "before"), False),
        (KillPoint("write", "half-way"), False),
        (KillPoint("write", "after"), True),
        (KillPoint("note", "before"), True),
        (KillPoint("note", "after"), True),
        (KillPoint("sync", "before"), True),
        (KillPoint("sync", "after"), True),
        (KillPoint("set synced", "before"), True),
        (KillPoint("publish", "before"), True),
        (KillPoint("publish", "after"), True),
    ],
    ids=lambda value: str(value) if isinstance(value, KillPoint) else "",
)
def test_a_batch_of_a_dead_writer_is_there_whole_or_not_at_all(
    partition: Partition, point: KillPoint, stored: bool, known: bool
) -> None:
    living = partition.writer()
    append(living, "first")
    tailing = partition.reader()
    tailing.read(0, 10)
    with Child(die_appending, partition.root, point) as child:
        assert child.join() == -9, "it should have died there"
    assert tailing.read(1, 10) == [] or stored, "nothing is seen that is not stored"

    expected = ["first", *(["second"] if stored else []), "third"]
    assert append(living if known else partition.writer(), "third") == len(expected) - 1
    assert partition.data() == expected
    assert [record.data.decode() for record in tailing.read(1, 10)] == expected[1:]


def die_rolling(_: Connection, root: Path, point: KillPoint) -> None:
    with closing(PartitionWriter(root, PLACE)) as writer:
        writer.recover()
        point.arm()
        writer.roll()


@pytest.mark.parametrize("known", [True, False], ids=["a live writer", "a new writer"])
@pytest.mark.parametrize(
    ("point", "segments"),
    [
        (KillPoint("sync", "before"), 1),
        (KillPoint("sync", "after"), 1),
        (KillPoint("index", "after"), 1),
        (KillPoint("note", "before"), 1),
        (KillPoint("note", "after"), 1),  # the page names a segment that is not there
        (KillPoint("rename", "before"), 1),  # an unfinished file is left over
        (KillPoint("rename", "after"), 2),
        (KillPoint("sync the folder", "after"), 2),
    ],
    ids=lambda value: str(value) if isinstance(value, KillPoint) else "",
)
def test_a_writer_that_dies_rolling_leaves_a_log_that_goes_on(
    partition: Partition, point: KillPoint, segments: int, known: bool
) -> None:
    living = partition.writer()
    append(living, "first", at_ms=10)
    with Child(die_rolling, partition.root, point) as child:
        assert child.join() == -9, "it should have died there"
    assert len(partition.segments()) == segments
    assert partition.data() == ["first"]
    with closing(PartitionWriter(partition.root, PLACE)) as writer:
        writer.recover()  # changes nothing, however often

    writer = living if known else partition.writer()
    assert append(writer, "second", at_ms=20) == 1
    assert append(partition.writer(), "third", at_ms=30) == 2
    partition.writer().roll()
    assert append(living, "fourth", at_ms=40) == 3
    assert len(partition.segments()) == segments + 1
    assert partition.data() == ["first", "second", "third", "fourth"]
    assert [partition.data(offset)[0] for offset in range(4)] == ["first", "second", "third", "fourth"]


@pytest.mark.parametrize("left", [1, 4, 40, 75, 76, 80, -1], ids=lambda left: f"{left} bytes")
def test_a_torn_tail_is_cut_at_the_last_whole_batch_and_said(
    partition: Partition, caplog: pytest.LogCaptureFixture, left: int
) -> None:
    append(partition.writer(), "first", "second")
    torn = batch(2, "never acknowledged")[:left]
    partition.add_bytes(torn)
    with caplog.at_level(logging.WARNING):
        assert append(partition.writer(), "third") == 2
    assert f"cut a torn tail of {len(torn)} bytes behind offset 2" in caplog.text
    assert str(partition.segments()[-1]) in caplog.text
    assert partition.data() == ["first", "second", "third"]


def test_several_whole_batches_before_a_torn_one_are_kept(partition: Partition) -> None:
    living = partition.writer()
    append(living, "first")
    partition.add_bytes(batch(1, "second") + batch(2, "third") + batch(3, "torn")[:-1])
    assert append(living, "fourth") == 3
    assert partition.data() == ["first", "second", "third", "fourth"]


def test_a_torn_message_that_holds_a_whole_batch_is_torn_all_the_same(partition: Partition) -> None:
    """Someone may send a copy of a segment as a message."""
    append(partition.writer(), "first")
    raw, inside = batch(1, "x" * 500), batch(1, "inside")
    partition.add_bytes(raw[:100] + inside + raw[100 + len(inside) : -1])
    assert append(partition.writer(), "second") == 1
    assert partition.data() == ["first", "second"]


def test_corruption_with_whole_batches_behind_it_is_never_cut(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = partition.writer()
    for one in ("first", "secnd", "third"):
        append(writer, one)
    [segment] = partition.segments()
    raw = bytearray(segment.read_bytes())
    size = (len(raw) - HEAD_SIZE) // 3
    raw[HEAD_SIZE + size + size // 2] ^= 0xFF
    segment.write_bytes(raw)
    restart_the_machine(monkeypatch)  # so that the next writer has to look at all of it
    before = kept(partition)
    with pytest.raises(CorruptLog, match=rf"position {HEAD_SIZE + size} .*nothing was changed.*Restore the file") as no:
        partition.writer().recover()
    assert no.value.fields == {"file": str(segment), "position": HEAD_SIZE + size}
    with pytest.raises(CorruptLog):
        append(partition.writer(), "fourth")
    assert kept(partition) == before


def test_a_batch_out_of_its_place_is_corruption_too(partition: Partition) -> None:
    append(partition.writer(), "first")
    partition.add_bytes(batch(7, "from elsewhere"))
    with pytest.raises(CorruptLog):
        partition.writer().recover()


# --- pages that cannot be relied on


def harm_notes(partition: Partition) -> None:
    state = partition.folder / "state"
    raw = bytearray(state.read_bytes())
    raw[60] ^= 1
    state.write_bytes(raw)


def remove_page(partition: Partition) -> None:
    (partition.folder / "state").unlink()


def empty_page(partition: Partition) -> None:
    (partition.folder / "state").write_bytes(b"")


def promise_too_much(partition: Partition) -> None:
    harm_notes(partition)
    with closing(page_module.PartitionPage(partition.folder)) as page:
        page.publish(1_000)
        page.set_synced(1_000)


@pytest.mark.parametrize("harm", [harm_notes, remove_page, empty_page, promise_too_much])
@pytest.mark.parametrize("who", ["writer", "reader"])
def test_a_page_that_cannot_be_relied_on_is_made_anew_from_the_files(
    partition: Partition, harm: Callable[[Partition], None], who: str
) -> None:
    with closing(Partition(partition.root)) as before:
        writer = before.writer()
        append(writer, "first")
        writer.roll()
        append(writer, "second")
        append(writer, "third")
    harm(partition)
    if who == "writer":
        partition.writer().recover()
    assert partition.reader().end() == 3
    assert partition.page().synced == 0, "nobody knows what is on disk"
    assert partition.data() == ["first", "second", "third"]
    assert append(partition.writer(), "fourth", sync=True) == 3
    assert partition.page().synced == 4


@pytest.mark.parametrize("known", [True, False], ids=["a live writer", "a new writer"])
def test_an_index_is_made_anew_with_its_page(partition: Partition, known: bool) -> None:
    living = partition.writer()
    for number in range(300):
        append(living, f"{number} {'x' * 100}")
    index = index_path(partition.folder, 0)
    before = index.read_bytes()
    harm_notes(partition)
    (living if known else partition.writer()).recover()
    assert len(before) > 100
    assert index.read_bytes() == before


@pytest.mark.parametrize("who", ["writer", "reader"])
def test_after_a_power_cut_the_log_ends_where_the_files_do(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, who: str
) -> None:
    with closing(Partition(partition.root)) as before:
        writer = before.writer()
        append(writer, "on disk", sync=True)
        size = before.segments()[-1].stat().st_size
        append(writer, "not on disk")
        append(writer, "nor this")
        assert before.reader().end() == 3
    os.truncate(partition.segments()[-1], size + 30)
    restart_the_machine(monkeypatch)
    if who == "writer":
        partition.writer().recover()
    reader = partition.reader()
    assert (reader.beginning(), reader.end()) == (0, 1)
    assert "cut a torn tail of 30 bytes behind offset 1" in caplog.text
    assert partition.data() == ["on disk"]
    assert append(partition.writer(), "afterwards") == 1
    assert [record.data for record in reader.read(0, 10)] == [b"on disk", b"afterwards"]


def test_records_that_were_deleted_stay_so_after_a_power_cut(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is below the beginning has to be on disk, or new records would get offsets that count as deleted."""
    synced: list[int] = []
    fdatasync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (synced.append(os.fstat(fd).st_size), fdatasync(fd)))
    with closing(Partition(partition.root)) as before:
        append(before.writer(), "one", "two", "three")
        before.writer().begin_at(2)
        assert synced == [before.segments()[-1].stat().st_size]
    restart_the_machine(monkeypatch)
    reader = partition.reader()
    assert (reader.beginning(), reader.end()) == (2, 3)
    assert append(partition.writer(), "four") == 3
    assert partition.data(2) == ["three", "four"]


def test_an_emptied_folder_does_not_number_again_what_was_read(partition: Partition) -> None:
    with closing(Partition(partition.root)) as before:
        append(before.writer(), "one", "two")
        for path in before.segments():
            path.unlink()
    assert append(partition.writer(), "three") == 2
    assert partition.reader().beginning() == 2


# --- the ends of segments


def test_a_segment_ends_when_it_is_large_enough(tmp_path: Path) -> None:
    with closing(Partition(tmp_path, segment_bytes=300)) as partition:
        writers = [partition.writer(), partition.writer()]
        sent = [f"message {number}" for number in range(100)]
        assert [append(writers[number % 2], one) for number, one in enumerate(sent)] == list(range(100))
        sizes = [path.stat().st_size for path in partition.segments()]
        assert len(sizes) == 25
        assert all(300 <= size < 300 + len(batch(0, "message 99")) for size in sizes[:-1])
        assert partition.data() == sent


def test_a_segment_ends_when_its_first_record_is_old_enough(partition: Partition) -> None:
    writer = PartitionWriter(partition.root, PLACE, segment_ms=DAY_MS)
    with closing(writer):
        append(writer, "first", at_ms=NOW_MS)
        append(writer, "same day", at_ms=NOW_MS + DAY_MS - 1)
        append(writer, "next day", at_ms=NOW_MS + DAY_MS)
        append(writer, "the day after", at_ms=NOW_MS + 2 * DAY_MS)
    with closing(PartitionWriter(partition.root, PLACE, segment_ms=DAY_MS)) as another:
        append(another, "later still", at_ms=NOW_MS + 3 * DAY_MS - 1)
        append(another, "and more", at_ms=NOW_MS + 3 * DAY_MS)
    assert [int(path.stem) for path in partition.segments()] == [0, 2, 3, 5]


def test_an_empty_segment_is_never_ended(tmp_path: Path) -> None:
    """The next would have its name: who has the old file open would write where nobody reads."""
    with closing(Partition(tmp_path, segment_bytes=1)) as partition:
        one, other = partition.writer(), partition.writer()
        one.recover()
        other.recover()
        inode = partition.segments()[0].stat().st_ino
        one.roll()
        append(one, "first")
        assert partition.segments()[0].stat().st_ino == inode
        assert append(other, "second") == 1
        assert partition.data() == ["first", "second"]


def test_what_an_unfinished_segment_holds_is_not_looked_at(partition: Partition) -> None:
    append(partition.writer(), "first")
    unfinished = Path(f"{segment_path(partition.folder, 1)}.new")
    unfinished.write_bytes(b"left over")
    assert partition.data() == ["first"]
    partition.writer().roll()
    assert not unfinished.exists()
    assert append(partition.writer(), "second") == 1
    assert partition.data() == ["first", "second"]


# --- what is not ours


def test_a_removed_partition_is_refused(partition: Partition) -> None:
    writer, reader = partition.writer(), partition.reader()
    append(writer, "first")
    partition.writer().mark_removed()
    for refused in (lambda: append(writer, "second"), writer.roll, writer.recover, lambda: writer.begin_at(0)):
        with pytest.raises(UnknownTopic, match=r"'topic\.0' was deleted; create it first"):
            refused()
    with pytest.raises(UnknownTopic, match=r"'topic\.0' was deleted; create it first"):
        reader.read(0, 1)


def foreign(raw: bytes) -> bytes:
    return b"SQLite format 3\0" + raw[HEAD_SIZE:]


def from_the_future(raw: bytes) -> bytes:
    return raw[:8] + (VERSION + 1).to_bytes(4, "little") + raw[12:]


def short(raw: bytes) -> bytes:
    return raw[:10]


def empty(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (foreign, r"not those of a Switchyard segment; nothing was changed\. Move the file away"),
        (short, r"not those of a Switchyard segment; nothing was changed\. Move the file away"),
        (empty, r"not those of a Switchyard segment; nothing was changed\. Move the file away"),
        (
            from_the_future,
            r"version 2 of the log's format, this is version 1; nothing was changed\. Use the Switchyard",
        ),
    ],
)
@pytest.mark.parametrize("is_known", [True, False], ids=["the page is fine", "the page is gone"])
def test_a_segment_that_is_not_ours_is_refused_and_left_as_it_is(
    partition: Partition, change: Callable[[bytes], bytes], why: str, is_known: bool
) -> None:
    with closing(Partition(partition.root)) as earlier:
        append(earlier.writer(), "first")
        append(earlier.writer(), "second")
    [segment] = partition.segments()
    segment.write_bytes(change(segment.read_bytes()))
    if not is_known:
        harm_notes(partition)
    before = contents(partition.folder)
    for refused in (partition.writer().recover, lambda: append(partition.writer(), "third"), partition.data):
        with pytest.raises(ForeignFile, match=why) as no:
            refused()
        assert no.value.fields["file"] == str(segment)
        assert str(segment) in str(no.value)
    assert contents(partition.folder) == before


def test_files_that_are_not_named_like_a_segment_do_not_matter(partition: Partition) -> None:
    append(partition.writer(), "first")
    for name in ("nohup.log", "00000000000000000000 (copy).log", "5.log", "0000000000000000000x.log"):
        (partition.folder / name).write_text("not ours")
    assert append(partition.writer(), "second") == 1
    assert partition.data() == ["first", "second"]
