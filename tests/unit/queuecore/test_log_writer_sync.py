"""Waiting for the disk: together where that is possible, and never for nothing."""

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from queuecore.errors import ProviderUnavailable
from queuecore.providers.log.batch import Origin
from queuecore.providers.log.writer import PartitionWriter
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.log_partitions import PLACE, Partition, append
from tests.processes import Child


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    with closing(Partition(tmp_path)) as partition:
        yield partition


class Disk:
    """What would be left after a power cut: what was written before the last successful wait, and not dropped by a
    failed one, as Linux does it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits = 0
        self.fails = False
        self.holds: set[int] = set()
        self._written: set[int] = set()
        self._calls = os.writev, os.pwrite, os.fdatasync
        monkeypatch.setattr(os, "writev", self._writev)
        monkeypatch.setattr(os, "pwrite", self._pwrite)
        monkeypatch.setattr(os, "fdatasync", self._fdatasync)

    def _writev(self, descriptor: int, parts: list[bytes]) -> int:
        start = os.fstat(descriptor).st_size
        count = self._calls[0](descriptor, parts)
        self._note(descriptor, start, count)
        return count

    def _pwrite(self, descriptor: int, raw: bytes, position: int) -> int:
        count = self._calls[1](descriptor, raw, position)
        self._note(descriptor, position, count)
        return count

    def _fdatasync(self, descriptor: int) -> None:
        self.waits += 1
        written, self._written = self._written, set()
        if self.fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.holds |= written
        self._calls[2](descriptor)

    def _note(self, descriptor: int, start: int, count: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().suffix == ".log":
            self._written.update(range(start, start + count))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


# --- sharing


def append_on_a_slow_disk(parent: Connection, root: Path) -> None:
    """Tell of every wait for the disk, and let the parent say when the first one is over."""
    fdatasync = os.fdatasync

    def slow(descriptor: int) -> None:
        parent.send("waits")
        assert parent.poll(DEADLINE_S)
        parent.recv()
        fdatasync(descriptor)

    with closing(PartitionWriter(root, PLACE)) as writer:
        parent.recv()
        os.fdatasync = slow
        parent.send(append(writer, f"of {os.getpid()}", sync=True))


def test_writers_that_wait_together_share_one_wait(partition: Partition) -> None:
    """The first waits for the disk; the others come meanwhile, and one wait is enough for all of them."""
    partition.writer().recover()
    page = partition.page()
    with Child(append_on_a_slow_disk, partition.root) as first:
        others = [Child(append_on_a_slow_disk, partition.root) for _ in range(4)]
        try:
            first.say("go")
            assert first.hear() == "waits"
            for child in others:
                child.say("go")
            wait_until(lambda: (noted := page.notes()) is not None and noted.next_offset == 5)
            assert partition.reader().end() == 0, "nothing is seen before it is on disk"
            first.say("the disk is done")
            assert first.hear() == 0
            assert partition.reader().end() == 1

            for child in others:
                child.say("the disk is done, should you wait for it")
            heard = [said for child in others for said in child.hear_all()]
            assert heard.count("waits") == 1
            assert sorted(said for said in heard if said != "waits") == [1, 2, 3, 4]
        finally:
            for child in others:
                child.kill()
    assert (page.synced, page.end) == (5, 5)
    assert len(partition.data()) == 5


def test_what_another_writer_brought_to_disk_is_not_waited_for(partition: Partition, disk: Disk) -> None:
    one, other = partition.writer(), partition.writer()
    append(one, "first")
    append(other, "second", sync=True)
    assert disk.waits == 1
    one.sync(1)
    assert disk.waits == 1


def test_who_ends_a_segment_has_waited_for_it(partition: Partition, disk: Disk) -> None:
    one, other = partition.writer(), partition.writer()
    append(one, "first")
    other.roll()
    assert disk.waits == 1
    one.sync(1)
    assert disk.waits == 1
    append(other, "second")
    append(one, "third")
    one.sync(3)
    assert disk.waits == 2


def test_a_writer_that_was_opened_only_to_wait_does(partition: Partition, disk: Disk) -> None:
    append(partition.writer(), "first")
    partition.writer().sync(1)
    assert disk.waits == 1
    assert partition.page().synced == 1


# --- a disk that fails


def test_what_the_disk_did_not_confirm_is_not_seen_and_not_acknowledged(partition: Partition, disk: Disk) -> None:
    writer = partition.writer()
    append(writer, "first", sync=True)
    disk.fails = True
    with pytest.raises(ProviderUnavailable, match=r"did not confirm that offset 1 is stored: .*; mend the disk") as no:
        append(writer, "second", sync=True)
    assert str(partition.folder) in str(no.value)
    assert partition.data() == ["first"]
    assert partition.page().synced == 1


@pytest.mark.parametrize("who", ["the same writer", "another writer"])
def test_a_wait_after_a_failed_one_is_not_for_nothing(partition: Partition, disk: Disk, who: str) -> None:
    """Linux forgets what it could not write: waiting once more would succeed, with nothing on disk."""
    writer, other = partition.writer(), partition.writer()
    append(other, "first")
    disk.fails = True
    mine = Origin(7, 0, 0)
    with pytest.raises(ProviderUnavailable):
        append(writer, "second", sync=True, origin=mine)
    disk.fails = False
    if who == "another writer":
        append(other, "third", sync=True)
    assert append(writer, "second", sync=True, origin=mine) == 1
    size = partition.segments()[-1].stat().st_size
    assert disk.holds >= set(range(16, size)), "acknowledged, but lost in a power cut"
    assert partition.data()[:2] == ["first", "second"]
    assert append(writer, "fourth", origin=Origin(7, 0, 1)) == len(partition.data()) - 1, "it appends as before"


def test_a_segment_is_not_ended_before_it_is_on_disk(partition: Partition, disk: Disk) -> None:
    writer = partition.writer()
    append(writer, "first")
    disk.fails = True
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        writer.roll()
    assert len(partition.segments()) == 1
    disk.fails = False
    writer.roll()
    [closed, _] = partition.segments()
    assert disk.holds == set(range(16, closed.stat().st_size))
    assert append(writer, "second", sync=True) == 1
    assert partition.data() == ["first", "second"]


def test_records_are_not_deleted_before_the_rest_is_on_disk(partition: Partition, disk: Disk) -> None:
    writer = partition.writer()
    append(writer, "first", "second")
    disk.fails = True
    with pytest.raises(ProviderUnavailable, match="mend the disk"):
        writer.begin_at(1)
    assert partition.reader().beginning() == 0
    disk.fails = False
    writer.begin_at(1)
    assert disk.holds == set(range(16, partition.segments()[-1].stat().st_size))
    assert partition.data(1) == ["second"]
