"""Reading one partition."""

import os
from pathlib import Path

from queuecore.errors import CorruptLog, OffsetOutOfRange
from queuecore.messages import Record
from queuecore.providers.log.batch import HEADER, BatchHeader, decode_records, is_whole, parse_header
from queuecore.providers.log.files import PublishedEnd, partition_dir, segment_bases, segment_path
from queuecore.topics import ProviderPartition

READ_CHUNK_BYTES = 1024 * 1024


class PartitionReader:
    """Reads up to the published end, from a position it remembers. For one thread."""

    def __init__(self, root: Path, partition: ProviderPartition) -> None:
        self._partition = partition
        self._directory = partition_dir(root, partition)
        self._end = PublishedEnd(self._directory)
        self._descriptor = -1
        self._base = -1
        self._position = 0
        self._next_offset = -1
        self._chunk = b""
        self._chunk_position = 0
        # What was published when the chunk was read. Bytes behind it may have been a batch that was never finished
        # and is rewritten since.
        self._chunk_end = 0

    def beginning(self) -> int:
        bases = segment_bases(self._directory)
        return bases[0] if bases else 0

    def end(self) -> int:
        return self._end.get()

    def read(self, offset: int, max_records: int) -> list[Record]:
        """Records from `offset` on, at most `max_records`; empty at the end. OffsetOutOfRange below the
        beginning, CorruptLog where the bytes do not match their checksum."""
        end = self.end()
        if offset >= end:
            return []
        if self._descriptor < 0 or offset != self._next_offset:
            self._seek(offset)
        records: list[Record] = []
        while self._next_offset < end and len(records) < max_records:
            header, raw = self._batch()
            wanted = max(0, offset - header.base_offset)
            taken = list(decode_records(header, raw, self._partition.topic, self._partition.partition))[wanted:]
            taken = taken[: max_records - len(records)]
            records += taken
            self._advance(header, taken[-1].offset + 1 if taken else header.end_offset)
        return records

    def close(self) -> None:
        self._close_segment()
        self._end.close()

    def _advance(self, header: BatchHeader, next_offset: int) -> None:
        """Go on at `next_offset`; a batch that was taken only in part is looked at again."""
        self._next_offset = next_offset
        if next_offset == header.end_offset:
            self._position += header.size

    def _seek(self, offset: int) -> None:
        bases = segment_bases(self._directory)
        while bases and bases[0] <= offset:
            try:
                self._open(max(base for base in bases if base <= offset))
            except FileNotFoundError:  # retention was faster: look again at what is left
                bases = segment_bases(self._directory)
            else:
                return
        beginning = bases[0] if bases else self.end()
        raise OffsetOutOfRange(
            f"{self._partition} begins at offset {beginning}; {offset} has been removed by retention",
            beginning=beginning,
        )

    def _open(self, base: int) -> None:
        self._close_segment()
        self._descriptor = os.open(segment_path(self._directory, base), os.O_RDONLY | os.O_CLOEXEC)
        self._base, self._position, self._next_offset = base, 0, base
        self._chunk = b""

    def _batch(self) -> tuple[BatchHeader, bytes]:
        """The batch at the current position, going over to the next segment where this one ends."""
        if self._next_offset >= self._chunk_end:
            self._chunk = b""
        raw = self._bytes(HEADER.size)
        if not raw:
            finished = self._base
            self._seek(self._next_offset)
            raw = b"" if self._base == finished else self._bytes(HEADER.size)
        header = parse_header(raw)
        if header is None or not is_whole(header, body := self._bytes(header.size)):
            raise CorruptLog(
                f"{segment_path(self._directory, self._base)}: bytes at position {self._position} do not match "
                f"their checksum; offset {self._next_offset} cannot be read. Restore the file from a copy"
            )
        return header, body

    def _bytes(self, length: int) -> bytes:
        start = self._position - self._chunk_position
        if not 0 <= start <= len(self._chunk) - length:
            self._chunk_end = self.end()
            self._chunk = os.pread(self._descriptor, max(length, READ_CHUNK_BYTES), self._position)
            self._chunk_position, start = self._position, 0
        return self._chunk[start : start + length]

    def _close_segment(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
