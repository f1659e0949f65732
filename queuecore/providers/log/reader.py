"""Reading one partition."""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from contextlib import closing
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

from queuecore.errors import CorruptLog, OffsetOutOfRange, ProviderUnavailable, UnknownTopic
from queuecore.messages import Record
from queuecore.providers.base import DataColumn
from queuecore.providers.log.batch import NO_TRANSACTION, BatchHeader, decode_data_column, decode_records
from queuecore.providers.log.cursor import BatchCursor
from queuecore.providers.log.files import partition_dir, segment_bases
from queuecore.providers.log.page import PartitionPage
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition

# Whether a transaction's records may be seen: yes, no, or not known yet.
Outcome = Callable[[int], bool | None]

_offset_of = itemgetter(0)
_data_of = itemgetter(2)

NO_LIMIT = sys.maxsize


def everything(_transaction: int) -> bool:
    """The outcome for those who read uncommitted."""
    return True


class PartitionReader:
    """Reads up to the published end, from an offset it remembers. For one thread."""

    def __init__(self, root: Path, partition: ProviderPartition, outcome: Outcome = everything) -> None:
        self._partition = partition
        self._directory = partition_dir(root, partition)
        self._outcome = outcome
        try:
            self._page = PartitionPage(self._directory)
        except FileNotFoundError:
            raise self._deleted() from None
        except OSError as error:
            raise self._unreadable(error) from error
        if self._page.notes() is None:
            # After a restart of the machine the page may tell of records that never reached the disk.
            with closing(PartitionWriter(root, partition)) as writer:
                writer.recover()
        self.bell = self._page.bell
        self._cursor = BatchCursor(self._directory, self._page)
        # What was decoded and not given yet: a poll's records may end in the middle of a batch.
        self._decoded: list[Record] = []
        self._decoded_bytes = 0
        self._given = 0
        self._next_offset = -1

    @property
    def next_offset(self) -> int:
        """Where reading goes on: behind the last record given, and behind what was left out after it."""
        return self._next_offset

    def beginning(self) -> int:
        end = self.end()
        bases = segment_bases(self._directory)
        return max(self._page.beginning, bases[0]) if bases else end

    def end(self) -> int:
        if self._page.is_removed:
            raise self._deleted()
        return self._page.end

    def read(self, offset: int, max_records: int, max_bytes: int = NO_LIMIT) -> list[Record]:
        """Records from `offset` on, no more than so many of them or of bytes, but one at least; empty at the end.
        OffsetOutOfRange below the beginning, CorruptLog where the bytes at `offset` do not match their checksum."""
        end = self.end()
        if offset >= end:
            return []
        if offset != self._next_offset or offset < self._page.beginning:
            self._seek(offset)
        records: list[Record] = []
        while len(records) < max_records and max_bytes > 0:
            try:
                if self._given >= len(self._decoded) and not self._decode_next(end):
                    break
            except (OffsetOutOfRange, CorruptLog):
                # Retention went past us, or bytes are harmed. What we have is given first; the next read tells.
                if records:
                    break
                self.end()  # a topic that was just deleted is neither
                raise
            except OSError as error:
                if records:
                    break
                raise self._unreadable(error) from error
            taken, size = self._take(max_records - len(records), max_bytes, or_one=not records)
            records += taken
            max_bytes -= size
        return records

    def read_data(self, offset: int) -> DataColumn | None:
        """The data of the batch that holds the first record from `offset` on; None at the end. It raises what `read`
        does."""
        end = self.end()
        if offset >= end:
            return None
        if offset != self._next_offset or self._given < len(self._decoded) or offset < self._page.beginning:
            self._seek(offset)
        try:
            while (found := self._next_batch(end)) is not None:
                column = decode_data_column(*found)
                self._next_offset = max(self._next_offset, self._cursor.next_offset)
                if column.offsets and column.offsets[-1] >= offset:
                    return column
        except (OffsetOutOfRange, CorruptLog):
            self.end()  # a topic that was just deleted is neither
            raise
        except OSError as error:
            raise self._unreadable(error) from error
        return None

    def close(self) -> None:
        self._cursor.close()
        self._page.close()

    def _unreadable(self, error: OSError) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"cannot read {self._partition} in {self._directory}: {error.strerror}; mend the folder or the process's "
            "limits, then try again"
        )

    def _take(self, max_records: int, max_bytes: int, *, or_one: bool) -> tuple[list[Record], int]:
        """As many of the decoded records as fit, and the bytes to count for them: all that were left where it is
        over."""
        taken = self._decoded[self._given : self._given + max_records]
        size = self._decoded_bytes
        if size > max_bytes:
            ends = list(accumulate(map(len, map(_data_of, taken))))
            taken = taken[: max(int(or_one), bisect_right(ends, max_bytes))]
            size = max_bytes
        self._given += len(taken)
        more = self._given < len(self._decoded)
        self._next_offset = self._decoded[self._given].offset if more else self._cursor.next_offset
        return taken, size

    def _decode_next(self, end: int) -> bool:
        """Decode the next batch that may be seen. False when there is none below the end, or none yet."""
        while (found := self._next_batch(end)) is not None:
            header, raw, position = found
            records = decode_records(header, raw, position, *self._partition)
            self._given = bisect_left(records, self._next_offset, key=_offset_of)
            self._decoded, self._decoded_bytes = records, header.raw_size
            if self._given < len(records):
                return True
            self._next_offset = max(self._next_offset, self._cursor.next_offset)
        return False

    def _next_batch(self, end: int) -> tuple[BatchHeader, bytes, int] | None:
        """The next that may be seen; the cursor goes behind it. None when there is none below the end, or none yet."""
        while self._cursor.next_offset < end:
            header, raw, position = self._cursor.batch()
            seen = header.transaction == NO_TRANSACTION or self._outcome(header.transaction)
            if seen is None:
                return None
            self._cursor.skip(header)
            if seen:
                return header, raw, position
            self._next_offset = max(self._next_offset, self._cursor.next_offset)
        return None

    def _deleted(self) -> UnknownTopic:
        name = self._partition.topic
        return UnknownTopic(f"topic {name!r} was deleted; create it first", topic=name)

    def _seek(self, offset: int) -> None:
        self._decoded, self._given = [], 0
        if offset >= self._page.beginning and self._cursor.seek(offset):
            self._next_offset = offset
            return
        self._next_offset = -1
        beginning = self.beginning()
        raise OffsetOutOfRange(
            f"{self._partition} begins at offset {beginning}; {offset} has been removed by retention",
            beginning=beginning,
        )
