"""Looking at the log's files: every damaged byte is found, and nothing is touched."""

import os
import random
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from queuecore.errors import CorruptLog, ForeignFile, ProviderUnavailable
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.log.batch import HEADER_SIZE, MAGIC, Origin, encode_body
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.database import Database
from queuecore.providers.log.dumping import dump_records
from queuecore.providers.log.files import index_path
from queuecore.providers.log.inspection import inspect_partition
from queuecore.providers.log.reader import PartitionReader, everything
from queuecore.providers.log.reports import PartitionReport
from queuecore.providers.log.salvage import Damage
from queuecore.providers.log.segment import HEAD_SIZE
from queuecore.providers.log.snapshot import catalog_snapshot
from queuecore.providers.options import Compression
from tests.unit.queuecore.log_kit import PLACE, Partition, keyed, plain

KEY = UUID("00000000-0000-0000-0000-00000000002a")


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    with closing(Partition(tmp_path / "log")) as partition:
        yield partition


def inspect(partition: Partition, outcomes: dict[int, bool] | None = None) -> PartitionReport:
    return inspect_partition(partition.root, PLACE, (outcomes or {}).get)


def flip(path: Path, position: int, mask: int = 0xFF) -> None:
    raw = bytearray(path.read_bytes())
    raw[position] ^= mask
    path.write_bytes(raw)


def end_of_batches(path: Path) -> list[int]:
    """Positions of the batches' ends."""
    raw = path.read_bytes()
    return [*[at for at in range(HEAD_SIZE + 1, len(raw)) if raw.startswith(MAGIC, at)], len(raw)]


# --- what there is


def test_a_sound_partition_is_described(partition: Partition) -> None:
    start_ms = partition.clock.now_ms()
    partition.append(plain("one", "two"), Origin(producer=7, epoch=1, sequence=0))
    partition.clock.advance(1)
    partition.append(plain("three"), Origin(producer=7, epoch=1, sequence=2), compression="zstd")
    partition.writer.roll()
    partition.append(plain("four"), Origin(transaction=5))
    partition.append(plain("five"), Origin(producer=8, transaction=6))
    partition.append(plain("six", "seven"), Origin(transaction=5))
    partition.writer.begin_at(1)
    report = inspect(partition, {5: True})

    first, second = report.segments
    assert (first.base, first.end_offset, first.batches, first.records) == (0, 3, 2, 3)
    assert (first.first_ms, first.last_ms, first.compression) == (start_ms, start_ms + 1_000, ["none", "zstd"])
    assert first.size_bytes == partition.path(0).stat().st_size
    assert (first.index_entries, first.index_disagreeing) == (2, [])
    assert (second.base, second.end_offset, second.batches, second.records) == (3, 7, 3, 4)

    producers = {one.producer: (one.epoch, one.last_sequence, one.offset) for one in report.producers.values()}
    assert producers == {7: (1, 2, 2), 8: (0, 0, 4)}
    transactions = {one.number: (one.outcome, one.first_offset, one.batches) for one in report.transactions.values()}
    assert transactions == {5: ("committed", 3, 2), 6: ("open", 4, 1)}
    assert report.page is not None
    assert (report.page.end, report.page.beginning) == (7, 1)
    assert report.page.notes is not None
    assert (report.page.notes.base, report.page.notes.size) == (3, second.size_bytes)
    assert (report.damage, report.remarks) == ([], [])


def test_an_index_that_does_not_agree_is_no_damage(partition: Partition) -> None:
    partition.segment(*[plain("x" * 5_000) for _ in range(4)])
    flip(index_path(partition.folder, 0), 28 + 3)
    report = inspect(partition)
    assert (report.segments[0].index_entries, report.segments[0].index_disagreeing) == (5, [1])
    assert report.damage == []


def test_notes_of_another_start_of_the_machine_are_not_valid(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition.append(plain("one"))
    monkeypatch.setattr("queuecore.providers.log.page.boot_id", lambda: bytes(16))
    report = inspect(partition)
    assert report.page is not None
    assert report.page.notes is None
    assert report.damage == []


def test_a_partition_without_a_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ProviderUnavailable, match=r"topic\[0\] has no folder: .*/topic/0 is missing"):
        inspect_partition(tmp_path, PLACE, everything)


# --- what is damaged


def damaged_files(partition: Partition, compression: Compression) -> None:
    for batch in (plain("first", "second"), keyed("a=third"), [QueueMessage(KEY, b"fourth", {"name": b"value"})]):
        partition.append(batch, compression=compression)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "active"])
@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_every_flipped_byte_is_found_and_no_reader_gets_altered_data(
    partition: Partition, compression: Compression, closed: bool
) -> None:
    damaged_files(partition, compression)
    if closed:
        partition.writer.roll()
        partition.append(plain("fifth"))
    before = partition.read()
    path = partition.path(0)
    sound = path.read_bytes()
    ends = end_of_batches(path)
    for position in range(len(sound)):
        flip(path, position, random.Random(position).randint(1, 255))
        [damage] = inspect(partition).damage
        assert damage.file == str(path)
        assert damage.position <= position < damage.end
        assert damage.end in (HEAD_SIZE, *ends), "what follows is read on"
        check_readers(partition, before)
        path.write_bytes(sound)
    assert inspect(partition).damage == []


def check_readers(partition: Partition, before: list[Any]) -> None:
    """From wherever they begin, they get what was stored, or an error; and an error in the end."""
    for start in range(len(before)):
        try:
            with closing(PartitionReader(partition.root, PLACE)) as reader:
                position = start
                while records := reader.read(position, 1):
                    assert records == [before[position]]
                    position += 1
        except (CorruptLog, ForeignFile):
            continue
        assert position == len(before), "silently less than there is"
        assert start > 0


def test_damage_in_several_places_is_found_in_one_go(partition: Partition) -> None:
    for _ in range(2):
        partition.segment(*[plain(f"message {number}") for number in range(10)])
    size = (partition.path(0).stat().st_size - HEAD_SIZE) // 10
    for base, batch in ((0, 2), (0, 3), (0, 7), (10, 9)):
        flip(partition.path(base), HEAD_SIZE + batch * size + HEADER_SIZE + 3)
    flip(partition.path(10), 9)
    report = inspect(partition)
    assert [(Path(one.file).name[:20].lstrip("0"), one.position, one.length) for one in report.damage] == [
        ("", HEAD_SIZE + 2 * size, size),
        ("", HEAD_SIZE + 3 * size, size),
        ("", HEAD_SIZE + 7 * size, size),
        ("10", 0, HEAD_SIZE),
        ("10", HEAD_SIZE + 9 * size, size),
    ]
    assert "offsets 2 to 2 cannot be read" in report.damage[0].problem
    assert [one.records for one in report.segments] == [7, 9, 0]


def test_a_message_that_looks_like_a_batch_is_not_taken_for_one(partition: Partition) -> None:
    body = encode_body(plain("forged"))
    forged = body.header(1, 1, 0, Origin()).pack() + body.body
    partition.append([QueueMessage(None, b"x" * 10 + forged)])
    partition.append(plain("real"))
    flip(partition.path(0), HEAD_SIZE + HEADER_SIZE + 6)
    found = list(dump_records(partition.root, PLACE, everything))
    assert [one["data"] for one in found if not isinstance(one, Damage)] == ["real"]


def test_a_batch_that_was_here_before_is_not_taken_for_the_next(partition: Partition) -> None:
    """Someone sends what is in a segment, and the batch that holds it loses its header."""
    partition.append(plain("first"))
    partition.append([QueueMessage(None, partition.path(0).read_bytes())])
    partition.append(plain("third"))
    flip(partition.path(0), end_of_batches(partition.path(0))[0] + 20)
    found = list(dump_records(partition.root, PLACE, everything))
    assert ["damage" if isinstance(one, Damage) else one["data"] for one in found] == ["first", "damage", "third"]


def test_a_missing_segment_is_found(partition: Partition) -> None:
    for number in range(3):
        partition.segment(plain(str(number)))
    partition.path(1).unlink()
    [damage] = inspect(partition).damage
    assert damage.file == str(partition.path(0))
    assert "offsets 1 to 1 are missing between this file and 00000000000000000002.log" in damage.problem


def test_a_truncated_segment_is_found(partition: Partition) -> None:
    partition.append(plain("one"))
    partition.append(plain("two"))
    path = partition.path(0)
    path.write_bytes(path.read_bytes()[: end_of_batches(path)[0]])
    [damage] = inspect(partition).damage
    assert damage.problem == "offsets 1 to 1 were stored and are gone"


def test_an_unfinished_batch_at_the_end_is_no_damage(partition: Partition) -> None:
    partition.append(plain("one"))
    body = encode_body(plain("two"))
    half = (body.header(1, 1, 0, Origin()).pack() + body.body)[:-1]
    with partition.path(0).open("ab") as file:
        file.write(half)
    report = inspect(partition)
    assert report.damage == []
    assert len(report.remarks) == 1
    assert f"{len(half)} bytes at position" in report.remarks[0]
    assert [one["data"] for one in dump_records(partition.root, PLACE, everything) if not isinstance(one, Damage)] == [
        "one"
    ]


def test_what_was_never_on_disk_when_the_machine_went_down_is_no_damage(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = encode_body(plain("safe"))
    partition.writer.append(body, partition.clock.now_ms(), sync=True)
    partition.append(plain("lost"))
    path = partition.path(0)
    sound = path.read_bytes()
    path.write_bytes(sound[: end_of_batches(path)[0]])
    monkeypatch.setattr("queuecore.providers.log.page.boot_id", lambda: bytes(16))
    report = inspect(partition)
    assert (report.damage, report.remarks) == ([], ["offsets 1 to 1 were not on disk when the machine went down"])
    path.write_bytes(sound[:HEAD_SIZE])
    [damage] = inspect(partition).damage
    assert damage.problem == "offsets 0 to 1 were stored and are gone"


# --- the records


def test_records_are_dumped_as_they_are(partition: Partition) -> None:
    now_ms = partition.clock.now_ms()
    partition.append(
        [QueueMessage(KEY, b"text\n", {"ts": b"\0\1"}), QueueMessage(b"k", b"\xff"), QueueMessage(None, b"")]
    )
    partition.append([QueueMessage(b"\0", "\N{SNOWMAN}".encode())], Origin(transaction=9))
    assert list(dump_records(partition.root, PLACE, lambda _: False)) == [
        {
            "partition": 0, "offset": 0, "timestamp_ms": now_ms, "key": {"uuid": str(KEY)},
            "headers": {"ts": {"base64": "AAE="}}, "data": "text\n",
        },
        {
            "partition": 0, "offset": 1, "timestamp_ms": now_ms, "key": "k", "headers": {}, "data": {"base64": "/w=="},
        },
        {"partition": 0, "offset": 2, "timestamp_ms": now_ms, "key": None, "headers": {}, "data": ""},
        {
            "partition": 0, "offset": 3, "timestamp_ms": now_ms, "key": {"base64": "AA=="}, "headers": {},
            "data": "\N{SNOWMAN}", "transaction": {"number": 9, "outcome": "aborted"},
        },
    ]  # fmt: skip


def test_a_dump_begins_where_it_is_asked_to(partition: Partition) -> None:
    for start in range(0, 12, 4):
        partition.segment(plain(*[str(number) for number in range(start, start + 2)]), plain(str(start + 2), "x"))
    partition.writer.begin_at(1)
    for first in range(13):
        found = [one["offset"] for one in dump_records(partition.root, PLACE, everything, first)]
        assert found == list(range(max(1, first), 12))


def test_a_dump_goes_on_behind_damage_and_says_where_it_is(partition: Partition) -> None:
    partition.segment(*[plain(str(number)) for number in range(4)])
    size = (partition.path(0).stat().st_size - HEAD_SIZE) // 4
    flip(partition.path(0), HEAD_SIZE + size + 20)

    def dumped(first: int) -> list[object]:
        found = dump_records(partition.root, PLACE, everything, first)
        return [one.position if isinstance(one, Damage) else one["data"] for one in found]

    assert dumped(0) == ["0", HEAD_SIZE + size, "2", "3"]
    assert dumped(1) == [HEAD_SIZE + size, "2", "3"]
    assert dumped(2) == ["2", "3"]


# --- nothing is touched


def test_nothing_is_opened_for_writing(tmp_path: Path, opened_for_writing: list[str]) -> None:
    root = tmp_path / "log"
    with closing(Partition(root)) as partition, closing(Database(root)) as database:
        Catalog(database).create_topics([TopicSpec(PLACE.topic)])
        damaged_files(partition, "none")
        before = listing(root)
        opened_for_writing.clear()
        with catalog_snapshot(root) as snapshot:
            assert list(Catalog(snapshot).topics()) == [PLACE.topic]
            inspect(partition)
            list(dump_records(root, PLACE, everything))
        assert [path for path in opened_for_writing if path.startswith(str(root))] == []
        assert listing(root) == before


_watched: list[list[str]] = []


def _watch(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook stays for the life of the process; it looks only while a test asks it to."""
    if event == "open" and _watched and isinstance(args[0], str | bytes | os.PathLike):
        mode, flags = args[1], args[2]
        if (isinstance(mode, str) and set(mode) & set("wax+")) or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            _watched[-1].append(os.fsdecode(args[0]))


@pytest.fixture
def opened_for_writing() -> Iterator[list[str]]:
    """Paths of what this process opened to write to."""
    if not hasattr(sys, "_switchyard_watch"):
        sys._switchyard_watch = True  # type: ignore[attr-defined]
        sys.addaudithook(_watch)
    _watched.append([])
    yield _watched[-1]
    _watched.pop()


def listing(root: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")}


# --- the catalog


def test_a_snapshot_has_what_is_only_in_the_write_ahead_log_yet(tmp_path: Path) -> None:
    with closing(Database(tmp_path)) as database:
        Catalog(database).create_topics([TopicSpec("one")])
        assert (tmp_path / "catalog.sqlite3-wal").stat().st_size
        before = listing(tmp_path)
        with catalog_snapshot(tmp_path) as snapshot:
            assert list(Catalog(snapshot).topics()) == ["one"]
        assert listing(tmp_path) == before


def test_a_snapshot_leaves_the_locks_of_this_process_alone(tmp_path: Path) -> None:
    """The system drops a process's locks on a file when the process closes that file, however often it is open."""
    with closing(Database(tmp_path)) as database:
        Catalog(database).create_topics([TopicSpec("one")])
        with database.writing() as db:
            db.execute("delete from topic")
            locks = locks_on(tmp_path)
            assert locks
            with catalog_snapshot(tmp_path):
                pass
            assert locks_on(tmp_path) == locks


def locks_on(folder: Path) -> set[str]:
    inodes = {f":{path.stat().st_ino}" for path in folder.iterdir()}
    lines = Path("/proc/locks").read_text().splitlines()
    return {line.split(":", 1)[1] for line in lines if any(f"{inode} " in line for inode in inodes)}


def test_where_there_is_no_log_it_says_so(tmp_path: Path) -> None:
    with (
        pytest.raises(ProviderUnavailable, match=r"there is no log under .*: .*catalog.sqlite3 is missing"),
        catalog_snapshot(tmp_path),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_catalog_is_named(tmp_path: Path) -> None:
    with closing(Database(tmp_path)) as database:
        Catalog(database).create_topics([TopicSpec(f"topic {number}") for number in range(500)])
    path = tmp_path / "catalog.sqlite3"
    raw = bytearray(path.read_bytes())
    raw[4096:] = os.urandom(len(raw) - 4096)
    path.write_bytes(raw)
    with pytest.raises(CorruptLog, match=f"the catalog {path} is damaged: .*; restore it"), catalog_snapshot(tmp_path):
        pass


def test_something_else_in_the_place_of_the_catalog_is_named(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite3"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(ForeignFile, match=str(path)), catalog_snapshot(tmp_path):
        pass
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table something_else (id integer)")
    with pytest.raises(ForeignFile, match=str(path)), catalog_snapshot(tmp_path):
        pass
