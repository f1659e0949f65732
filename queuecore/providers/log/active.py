"""The segment that is appended to, with its index."""

import fcntl
import logging
import os
from pathlib import Path

from queuecore.errors import CorruptLog
from queuecore.providers.log.batch import MAGIC, BatchHeader, is_whole, parse_header
from queuecore.providers.log.files import write_fully
from queuecore.providers.log.index import INDEX_EVERY_BYTES, IndexWriter
from queuecore.providers.log.page import Notes
from queuecore.providers.log.segment import HEAD_SIZE, Segment

logger = logging.getLogger(__name__)

_COPY_BYTES = 1024 * 1024
NO_TIME = -1


def notes_of_empty(base: int) -> Notes:
    return Notes(base, HEAD_SIZE, base, NO_TIME, 0)


class ActiveSegment:
    """`notes` say how far it is known to be whole. For the holder of the append lock."""

    def __init__(self, directory: Path, segment: Segment) -> None:
        self._segment = segment
        try:
            self._index = IndexWriter(directory, segment.base)
        except BaseException:
            segment.close()
            raise
        self._first_ms: int | None = None
        self.notes = notes_of_empty(segment.base)

    @property
    def base(self) -> int:
        return self._segment.base

    @property
    def size(self) -> int:
        """How long the file is, whatever the notes say."""
        return self._segment.size

    def is_old(self, now_ms: int, limit_ms: int) -> bool:
        """Whether its first record is older than the limit. Not for an empty one."""
        if self._first_ms is None:
            first = self._segment.header_at(HEAD_SIZE)
            self._first_ms = now_ms if first is None else first.timestamp
        return now_ms - self._first_ms >= limit_ms

    def write(self, header: BatchHeader, body: bytes) -> None:
        """Append the batch, or raise OSError and leave nothing of it."""
        try:
            write_fully(self._segment.descriptor, header.pack(), body)
        except OSError:
            os.ftruncate(self._segment.descriptor, self.notes.size)
            raise
        self._advance(header)

    def sync(self) -> None:
        """Wait until all of it is on disk. Where that fails, `write_again` is to follow."""
        os.fdatasync(self._segment.descriptor)

    def sync_or_write_again(self) -> None:
        try:
            self.sync()
        except OSError:
            self.write_again()
            raise

    def write_again(self) -> None:
        """What the disk failed to take, the kernel counts as written all the same. Hand over all of it once more, or
        the next wait for the disk, whoever waits, would succeed for nothing."""
        descriptor = self._segment.descriptor
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~os.O_APPEND)
        try:
            for position in range(HEAD_SIZE, self.size, _COPY_BYTES):
                os.pwrite(descriptor, os.pread(descriptor, _COPY_BYTES, position), position)
        finally:
            fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)

    def finish(self) -> None:
        """Nothing more will be appended: all of it on disk, and the index complete."""
        self.sync_or_write_again()
        self._index.add(self.notes.next_offset, self.notes.size, self.notes.latest)

    def start_over(self) -> None:
        """Rely on nothing but the file itself."""
        self._index.clear()
        self.notes = notes_of_empty(self.base)

    def check_tail(self, durable_to: int) -> None:
        """Go over the batches that follow the notes, and cut off what is not whole at the end. CorruptLog, with
        nothing changed, where whole batches follow it, or where it was on disk already: that is no torn tail."""
        while header := self._segment.whole_header_at(self.notes.size):
            if header.base_offset != self.notes.next_offset:
                break
            self._advance(header)
        if torn := self.size - self.notes.size:
            if self.notes.next_offset < durable_to:
                raise self._segment.harm(self.notes.size, self.notes.next_offset)
            self._cut_tail(torn)

    def close(self) -> None:
        self._segment.close()
        self._index.close()

    def _advance(self, header: BatchHeader) -> None:
        """Take note of the batch that follows, and give it an index entry when the last one is far enough behind."""
        base, size, _, latest, indexed = self.notes
        if size >= indexed:
            self._index.add(header.base_offset, size, latest)
            indexed = size + INDEX_EVERY_BYTES
        self.notes = Notes(base, size + header.size, header.end_offset, max(latest, header.timestamp), indexed)

    def _cut_tail(self, torn: int) -> None:
        path, position = self._segment.path, self.notes.size
        header = self._segment.header_at(position)
        # A batch whose own end is missing is torn, whatever its messages hold.
        is_torn = header is not None and header.size > torn
        if not is_torn and _holds_a_batch(os.pread(self._segment.descriptor, torn, position)):
            raise CorruptLog(
                f"{path}: bytes at position {position} do not match their checksum, but whole batches follow; nothing "
                "was changed. Restore the file from a copy",
                file=str(path),
                position=position,
            )
        logger.warning(
            "%s: cut a torn tail of %d bytes behind offset %d; its writer died before it was acknowledged",
            path, torn, self.notes.next_offset,
        )  # fmt: skip
        os.ftruncate(self._segment.descriptor, position)


def _holds_a_batch(raw: bytes) -> bool:
    start = raw.find(MAGIC)
    while start >= 0:
        header = parse_header(raw, start)
        if header is not None and is_whole(header, raw, start):
            return True
        start = raw.find(MAGIC, start + 1)
    return False
