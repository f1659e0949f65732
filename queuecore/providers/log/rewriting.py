"""Writing closed segments anew, with what compaction keeps of them."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from queuecore.messages import Record
from queuecore.providers.log.active import ActiveSegment
from queuecore.providers.log.batch import ANONYMOUS, HEADER_SIZE, NO_RECORDS, BatchHeader, encode_kept
from queuecore.providers.log.closed import ClosedSegment, batches_of, remove_segment
from queuecore.providers.log.files import UNFINISHED, index_path, segment_path, sync_directory
from queuecore.providers.log.segment import Segment
from queuecore.providers.log.survey import Survey
from queuecore.providers.log.writer import PartitionWriter
from queuecore.providers.options import Compression

# What is left of many batches becomes one of about this size: small ones are slow to read.
_FULL_BYTES = 256 * 1024
_FULL_RECORDS = 8_192
# Offsets in a batch are 32-bit numbers, counted from its first.
_MAX_SPAN = 2**31


class Rewrite:
    """A new segment that is to take the place of some that follow each other.

    It is made in a folder of its own. Batches in it are nobody's: they have no producer and belong to no transaction,
    since a producer's sequence cannot be told any more from what is left. Committed records need no transaction, and a
    producer is recognised by its batches in segments that were not compacted; the active one never is.
    """

    def __init__(self, directory: Path, sources: Sequence[ClosedSegment]) -> None:
        self._directory = directory
        self._sources = sources
        self._folder = directory / f"compacted{UNFINISHED}"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        self._segment = ActiveSegment(self._folder, Segment.create(self._folder, sources[0].base))
        self._kept: list[Record] = []
        self._kept_bytes = 0
        self._compression: Compression = "none"

    def fill(self, survey: Survey, is_stopping: Callable[[], bool]) -> bool:
        """Write what is to be kept, and have it on disk; False when that was stopped before the end. It stands for all
        offsets of its sources, up to the last."""
        for source in self._sources:
            if is_stopping():
                return False
            for header, raw, position in batches_of(self._directory, source.base):
                kept = survey.keep(header, raw, position)
                if len(kept) == header.records and header.body_size >= _FULL_BYTES // 4:
                    self._flush()
                    self._segment.write(
                        header._replace(**ANONYMOUS._asdict()), raw[position + HEADER_SIZE : position + header.size]
                    )
                else:
                    self._gather(kept, header.compression)
        self._flush()
        end = self._sources[-1].end_offset
        if self._segment.notes.next_offset < end:
            latest_ms = max(source.latest_ms for source in self._sources)
            self._segment.write(NO_RECORDS.header(end - 1, 1, latest_ms, ANONYMOUS), NO_RECORDS.body)
        self._segment.finish()
        return True

    def take_place(self, writer: PartitionWriter) -> None:
        """Replace the sources. After a death at any point the partition can be read: while sources remain that the new
        segment stands for, readers find their records in either, and `finish_rewrite` removes them."""
        base = self._sources[0].base
        with writer.exclusively():
            # The index goes first and comes last: no segment ever has another's.
            index_path(self._directory, base).unlink(missing_ok=True)
            segment_path(self._folder, base).rename(segment_path(self._directory, base))
            index_path(self._folder, base).rename(index_path(self._directory, base))
            # Were the old ones gone before the new one is sure to be there, a power cut could lose both. And nothing
            # of a later group may go before: what a tombstone removed must not outlive it.
            sync_directory(self._directory)
            _remove_all(self._directory, self._sources[1:])

    def close(self) -> None:
        self._segment.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _gather(self, records: list[Record], compression: Compression) -> None:
        if not records:
            return
        self._compression = compression
        if self._kept and records[-1].offset - self._kept[0].offset >= _MAX_SPAN:
            self._flush()
        self._kept += records
        self._kept_bytes += sum(record.size for record in records)
        if self._kept_bytes >= _FULL_BYTES or len(self._kept) >= _FULL_RECORDS:
            self._flush()

    def _flush(self) -> None:
        if self._kept:
            header, body = _encode(self._kept, self._compression)
            self._segment.write(header, body)
            self._kept, self._kept_bytes = [], 0


def finish_rewrite(writer: PartitionWriter, directory: Path, segments: Sequence[ClosedSegment]) -> list[ClosedSegment]:
    """Remove the segments that an earlier one stands for, which whoever rewrote them had no time for; those that
    stay."""
    staying: list[ClosedSegment] = []
    for segment in segments:
        if not staying or segment.end_offset > staying[-1].end_offset:
            staying.append(segment)
    if going := [segment for segment in segments if segment not in staying]:
        with writer.exclusively():
            _remove_all(directory, going)
    return staying


def _remove_all(directory: Path, segments: Sequence[ClosedSegment]) -> None:
    for segment in segments:
        remove_segment(directory, segment.base)
    sync_directory(directory)


def _encode(records: list[Record], compression: Compression) -> tuple[BatchHeader, bytes]:
    first = records[0].offset
    body = encode_kept(records, first, compression)
    latest_ms = max(record.timestamp_ms for record in records)
    return body.header(first, records[-1].offset + 1 - first, latest_ms, ANONYMOUS), body.body
