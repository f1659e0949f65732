"""What the tests of the log's cleaning, compaction and inspection share."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from queuecore.messages import QueueMessage, Record
from queuecore.providers.log.batch import ANONYMOUS, Origin, encode_body
from queuecore.providers.log.files import partition_dir, segment_bases, segment_path
from queuecore.providers.log.reader import Outcome, PartitionReader, everything
from queuecore.providers.log.writer import PartitionWriter
from queuecore.providers.options import Compression
from queuecore.testing.clock import ManualClock
from queuecore.topics import ProviderPartition

PLACE = ProviderPartition("topic", 0)


def plain(*data: str) -> list[QueueMessage]:
    return [QueueMessage(None, one.encode()) for one in data]


def keyed(*pairs: str) -> list[QueueMessage]:
    """`a=1` is a message with key and data, `a` a tombstone."""
    found = [pair.partition("=") for pair in pairs]
    return [
        QueueMessage(key.encode(), data.encode()) if equals else QueueMessage.tombstone(key.encode())
        for key, equals, data in found
    ]


class Partition:
    """A partition in a folder of its own, with a clock that is moved by hand."""

    def __init__(self, root: Path, clock: ManualClock | None = None) -> None:
        self.root = root
        self.folder = partition_dir(root, PLACE)
        self.clock = clock or ManualClock()
        self.writer = PartitionWriter(root, PLACE)
        self.writer.recover()

    def append(
        self, messages: list[QueueMessage], origin: Origin = ANONYMOUS, compression: Compression = "none"
    ) -> int:
        """One batch, now."""
        return self.writer.append(encode_body(messages, compression), self.clock.now_ms(), sync=False, origin=origin)

    def segment(self, *batches: list[QueueMessage], compression: Compression = "none") -> int:
        """A closed segment of these batches; its first offset."""
        bases = [self.append(batch, compression=compression) for batch in batches]
        self.writer.roll()
        return bases[0]

    def read(self, offset: int | None = None, outcome: Outcome = everything) -> list[Record]:
        """What a new reader finds, from the beginning unless an offset is given."""
        return read(self.root, offset, outcome)

    def data(self, offset: int | None = None) -> list[str]:
        return [record.data.decode() for record in self.read(offset)]

    def bases(self) -> list[int]:
        return segment_bases(self.folder)

    def path(self, base: int) -> Path:
        return segment_path(self.folder, base)

    def files(self) -> dict[str, bytes]:
        """Everything in the folder but the page, whose bell rings."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.name != "state"}

    def close(self) -> None:
        self.writer.close()


def read(root: Path, offset: int | None = None, outcome: Outcome = everything) -> list[Record]:
    with closing(PartitionReader(root, PLACE, outcome)) as reader:
        return reader.read(reader.beginning() if offset is None else offset, 1_000_000)


class Steps:
    """Copies of a folder, one after each change to the files in it: what a kill at that point leaves."""

    CHANGES = ("rename", "unlink", "mkdir", "rmdir", "write", "writev", "ftruncate")

    def __init__(self, folder: Path, copies: Path) -> None:
        self._folder = folder
        self._copies = copies
        self._is_copying = False
        self.taken: list[Path] = []

    @contextmanager
    def recorded(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in self.CHANGES:
                patch.setattr(os, name, self._followed_by_a_copy(getattr(os, name)))
            yield

    def _followed_by_a_copy(self, call: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            answer = call(*args, **kwargs)
            if not self._is_copying:
                self._is_copying = True
                copy = self._copies / f"{len(self.taken):03d} {call.__name__}"
                shutil.copytree(self._folder, copy)
                self.taken.append(copy)
                self._is_copying = False
            return answer

        return wrapped
