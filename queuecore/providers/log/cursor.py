"""Going over a partition's batches, from segment to segment."""

import os
from bisect import bisect_right
from pathlib import Path

from queuecore.errors import CorruptLog, OffsetOutOfRange
from queuecore.providers.log.batch import HEADER_SIZE, BatchHeader, is_whole, parse_header
from queuecore.providers.log.files import segment_bases, segment_path
from queuecore.providers.log.page import PartitionPage
from queuecore.providers.log.segment import HEAD_SIZE, Segment

READ_CHUNK_BYTES = 2 * 1024 * 1024


class BatchCursor:
    """Stands before a batch. `next_offset` is the lowest that the batch can begin with. For one thread.

    The caller goes no further than the published end: what is behind it may be half a batch.
    """

    def __init__(self, directory: Path, page: PartitionPage) -> None:
        self._directory = directory
        self._page = page
        self._segment: Segment | None = None
        self._position = 0
        self.next_offset = -1
        self._chunk = b""
        self._chunk_position = 0
        # What was published when the chunk was read. Bytes behind it may have been a batch that was never finished
        # and is rewritten since.
        self._chunk_end = 0

    def seek(self, offset: int) -> bool:
        """Go to the batch that holds this offset, or follows it where it is missing. False below the beginning."""
        while True:
            bases = segment_bases(self._directory)
            number = bisect_right(bases, offset)
            if not number:
                return False
            try:
                self._open(bases[number - 1])
            except FileNotFoundError:  # retention was faster: look again at what is left
                continue
            return self._find(offset)

    def seek_time(self, base: int, time_ms: int) -> None:
        """Go to a batch of this segment before which everything in it is older than that."""
        segment = self._open(base)
        position = segment.position_of_time(time_ms)
        header = segment.header_at(position)
        if header is not None:
            self._position, self.next_offset = position, header.base_offset

    def batch(self) -> tuple[BatchHeader, bytes, int]:
        """The batch here: its header, and bytes in which it begins at that position. CorruptLog where it is harmed,
        OffsetOutOfRange where retention took it away before the cursor came."""
        if self.next_offset >= self._chunk_end:
            self._chunk = b""
        segment = self._opened()
        if self._position >= segment.size:
            segment = self._go_on()
        start = self._load(segment, HEADER_SIZE)
        header = parse_header(self._chunk, start)
        if header is not None:
            start = self._load(segment, header.size)
        if header is None or not is_whole(header, self._chunk, start):
            raise segment.harm(self._position, self.next_offset)
        return header, self._chunk, start

    def skip(self, header: BatchHeader) -> None:
        """Go behind the batch that was here."""
        self._position += header.size
        self.next_offset = header.end_offset

    def close(self) -> None:
        if self._segment is not None:
            self._segment.close()
            self._segment = None

    def _find(self, offset: int) -> bool:
        segment = self._opened()
        self._position = segment.position_of(offset)
        for position, header in segment.headers(self._position):
            if header.base_offset >= self._page.end:
                break
            self._position, self.next_offset = position, header.base_offset
            if header.end_offset > offset:
                return True
            self.skip(header)
        self.next_offset = max(self.next_offset, offset)
        return True

    def _opened(self) -> Segment:
        if self._segment is None:
            raise ValueError("the cursor stands nowhere; seek first")
        return self._segment

    def _open(self, base: int) -> Segment:
        segment = Segment(self._directory, base)
        self.close()
        self._segment = segment
        self._position, self.next_offset = HEAD_SIZE, base
        self._chunk = b""
        return segment

    def _go_on(self) -> Segment:
        """To the segment that holds the next offset now, or to the first that follows. It need not be the one behind
        this file: compaction may have put this and its neighbours into one that has the name of the first."""
        wanted = self.next_offset
        while True:
            bases = segment_bases(self._directory)
            number = bisect_right(bases, wanted)
            if bases and not number:
                raise OffsetOutOfRange(
                    f"{self._directory} begins at offset {bases[0]}; {wanted} has been removed by retention",
                    beginning=bases[0],
                )
            try:
                if number and not self._is_open(bases[number - 1]):
                    base = bases[number - 1]
                elif number < len(bases):
                    base = bases[number]
                else:
                    raise self._missing(wanted)
                segment = self._open(base)
            except FileNotFoundError:  # removed or replaced since we looked
                continue
            self._find(wanted)
            if self._position < segment.size:
                return segment
            if base > wanted:
                raise self._missing(wanted)

    def _is_open(self, base: int) -> bool:
        """Whether the segment of this name is the very file that is open here."""
        found, opened = segment_path(self._directory, base).stat(), os.fstat(self._opened().descriptor)
        return (found.st_dev, found.st_ino) == (opened.st_dev, opened.st_ino)

    def _missing(self, offset: int) -> CorruptLog:
        path = self._opened().path
        return CorruptLog(
            f"{path} ends before offset {offset}, which was stored, and no segment with it follows; restore the "
            "partition's files from a copy",
            file=str(path),
            offset=offset,
        )

    def _load(self, segment: Segment, length: int) -> int:
        """Have so many bytes from the position on in the chunk, as far as the file has them; where they begin."""
        start = self._position - self._chunk_position
        if not self._chunk or not 0 <= start <= len(self._chunk) - length:
            self._chunk_end = self._page.end
            self._chunk = os.pread(segment.descriptor, max(length, READ_CHUNK_BYTES), self._position)
            self._chunk_position, start = self._position, 0
        return start
