"""Appending to one partition, and mending it after a crash."""

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path

from queuecore.errors import CorruptLog, ProviderUnavailable
from queuecore.messages import QueueMessage
from queuecore.providers.log.batch import HEADER, MAGIC, encode_batch, is_whole, parse_header
from queuecore.providers.log.files import (
    PublishedEnd,
    locked,
    make_durably,
    partition_dir,
    segment_bases,
    segment_path,
    sync_directory,
)
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

SEGMENT_BYTES = 16 * 1024 * 1024


class PartitionWriter:
    """Appends batches to one partition; several processes may each have one. For one thread.

    An append holds the partition's lock. The holder trusts only the part of the segment it has seen itself,
    `_size` bytes up to `_next_offset`: if the file or the published end differ from what it remembers, or a newer
    segment is there, another writer was here (and perhaps died here), and the rest is checked before anything is
    added.
    """

    def __init__(self, root: Path, partition: ProviderPartition, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._partition = partition
        self._directory = partition_dir(root, partition)
        make_durably(self._directory, below=root)
        self._segment_bytes = segment_bytes
        self._end = PublishedEnd(self._directory)
        self._descriptor = -1
        self._base = -1
        self._size = 0
        self._next_offset = 0

    def append(self, messages: Sequence[QueueMessage], timestamp_ms: int, *, sync: bool, retention_ms: int) -> int:
        """Store the messages as one batch and return the first one's offset. All of them or none is there."""
        with locked(self._directory / "append.lock"):
            if self._others_were_here():
                self._catch_up()
            if self._size >= self._segment_bytes:
                self._roll(retention_ms)
            base_offset = self._next_offset
            self._write(encode_batch(base_offset, timestamp_ms, messages), sync=sync)
            self._next_offset += len(messages)
            self._end.set(self._next_offset)
            return base_offset

    def recover(self) -> None:
        """Bring the file and the published end into agreement, as the first append would."""
        with locked(self._directory / "append.lock"):
            self._catch_up()

    def close(self) -> None:
        self._close_segment()
        self._end.close()

    def _others_were_here(self) -> bool:
        return (
            self._descriptor < 0
            or self._next_offset != self._end.get()
            or self._size != os.fstat(self._descriptor).st_size
            or self._was_rolled()
        )

    def _was_rolled(self) -> bool:
        """Whether a writer began a new segment and died before writing to it. Its name is the offset we are at."""
        return self._base != self._next_offset and segment_path(self._directory, self._next_offset).exists()

    def _catch_up(self) -> None:
        """Check what follows the part we know; cut a torn tail. Raises CorruptLog rather than cut records."""
        bases = segment_bases(self._directory)
        if self._descriptor < 0 or not bases or bases[-1] != self._base:
            self._open_segment(bases[-1] if bases else 0)
        self._size, self._next_offset = _last_whole_batch(self._descriptor, self._size, self._next_offset)
        torn = os.fstat(self._descriptor).st_size - self._size
        if torn:
            self._cut_tail(torn)
        self._end.set(self._next_offset)

    def _cut_tail(self, torn: int) -> None:
        if _holds_a_batch(os.pread(self._descriptor, torn, self._size)):
            raise CorruptLog(
                f"{segment_path(self._directory, self._base)}: bytes at position {self._size} do not match their "
                "checksum, but whole batches follow; nothing was changed. Restore the file from a copy"
            )
        logger.warning(
            "%s: cut a torn tail of %d bytes behind offset %d; its writer died before it was acknowledged",
            self._partition, torn, self._next_offset,
        )  # fmt: skip
        os.ftruncate(self._descriptor, self._size)

    def _write(self, batch: bytes, *, sync: bool) -> None:
        try:
            _write_fully(self._descriptor, batch)
            if sync:
                os.fdatasync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)
            raise ProviderUnavailable(
                f"cannot append to {self._partition} in {self._directory}: {error.strerror}; nothing of this "
                "batch was stored. Free space or mend the folder, then send again"
            ) from error
        self._size += len(batch)

    def _roll(self, retention_ms: int) -> None:
        os.fdatasync(self._descriptor)
        self._open_segment(self._next_offset)
        _remove_expired(self._directory, retention_ms)

    def _open_segment(self, base: int) -> None:
        self._close_segment()
        path = segment_path(self._directory, base)
        is_new = not path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        if is_new:
            sync_directory(self._directory)
        self._base, self._size, self._next_offset = base, 0, base

    def _close_segment(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _last_whole_batch(descriptor: int, position: int, next_offset: int) -> tuple[int, int]:
    """Position and offset behind the last whole batch that follows without a gap."""
    while header := parse_header(os.pread(descriptor, HEADER.size, position)):
        if header.base_offset != next_offset or not is_whole(header, os.pread(descriptor, header.size, position)):
            break
        position += header.size
        next_offset = header.end_offset
    return position, next_offset


def _holds_a_batch(raw: bytes) -> bool:
    start = raw.find(MAGIC)
    while start >= 0:
        header = parse_header(raw[start : start + HEADER.size])
        if header is not None and is_whole(header, raw[start : start + header.size]):
            return True
        start = raw.find(MAGIC, start + 1)
    return False


def _write_fully(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _remove_expired(directory: Path, retention_ms: int) -> None:
    """Remove closed segments whose last append is older than the retention. The active one always stays."""
    limit = time.time() - retention_ms / 1000
    for base in segment_bases(directory)[:-1]:
        path = segment_path(directory, base)
        if path.stat().st_mtime > limit:
            break
        path.unlink()
