"""Closed segments: whole, on disk, and never appended to again."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from queuecore.providers.log.active import NO_TIME
from queuecore.providers.log.batch import BatchHeader, is_whole, parse_header
from queuecore.providers.log.files import index_path, segment_path
from queuecore.providers.log.index import INDEX_EVERY_BYTES, Index, IndexWriter
from queuecore.providers.log.segment import HEAD_SIZE, Segment


class ClosedSegment(NamedTuple):
    base: int
    size: int
    end_offset: int
    # The largest timestamp in it.
    latest_ms: int


def look_at(directory: Path, base: int) -> ClosedSegment:
    """As the end of its index tells, if it is an index of all of it; else as its headers do. FileNotFoundError where
    there is none, ForeignFile where it is not one of this version's."""
    with closing(Segment(directory, base)) as segment:
        return _from_index(directory, segment) or _scan(segment)


def has_index(directory: Path, base: int) -> bool:
    """Whether there is an index of all of it."""
    with closing(Segment(directory, base)) as segment:
        return _from_index(directory, segment) is not None


def write_index(directory: Path, base: int, folder: Path) -> bool:
    """Make an index of the segment in that folder. False where the segment is harmed, so that there can be none."""
    with closing(Segment(directory, base)) as segment, closing(IndexWriter(folder, base)) as index:
        position, offset, latest_ms, indexed = HEAD_SIZE, base, NO_TIME, 0
        for position, header in segment.headers():
            if position >= indexed:
                index.add(header.base_offset, position, latest_ms)
                indexed = position + INDEX_EVERY_BYTES
            position, offset, latest_ms = position + header.size, header.end_offset, max(latest_ms, header.timestamp)
        index.add(offset, position, latest_ms)
        return position == segment.size


def batches_of(directory: Path, base: int) -> Iterator[tuple[BatchHeader, bytes, int]]:
    """Every batch of a closed segment: its header, and bytes in which it begins at that position. CorruptLog where one
    is harmed."""
    with closing(Segment(directory, base)) as segment:
        raw = segment.read_all()
        position, offset = HEAD_SIZE, base
        while position < len(raw):
            header = parse_header(raw, position)
            if header is None or not is_whole(header, raw, position):
                raise segment.harm(position, offset)
            yield header, raw, position
            position, offset = position + header.size, header.end_offset


def remove_segment(directory: Path, base: int) -> None:
    """The segment first: an index without one is never looked at, and swept away later."""
    segment_path(directory, base).unlink()
    index_path(directory, base).unlink(missing_ok=True)


def _from_index(directory: Path, segment: Segment) -> ClosedSegment | None:
    last = Index.read_last(directory, segment.base)
    if last is None or last.position != segment.size:
        return None
    return ClosedSegment(segment.base, segment.size, last.offset, last.latest_before)


def _scan(segment: Segment) -> ClosedSegment:
    position, offset, latest_ms = HEAD_SIZE, segment.base, NO_TIME
    for at, header in segment.headers():
        position, offset, latest_ms = at + header.size, header.end_offset, max(latest_ms, header.timestamp)
    if position < segment.size:
        # Harmed. Nothing in it is younger than the file.
        latest_ms = max(latest_ms, segment.path.stat().st_mtime_ns // 1_000_000)
    return ClosedSegment(segment.base, segment.size, offset, latest_ms)
