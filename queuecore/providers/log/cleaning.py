"""Removing what a topic's retention no longer wants.

Whole closed segments go, oldest first, so that whatever a death leaves is a partition that begins later. A reader in
the middle of one goes on in the file it has open; one that comes later is told that its offset is out of range. Only
one process cleans at a time.
"""

import logging
import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from queuecore.providers.base import FOR_EVER, TopicSpec
from queuecore.providers.log.closed import has_index, look_at, remove_segment, write_index
from queuecore.providers.log.files import (
    INDEX,
    UNFINISHED,
    index_path,
    partition_dir,
    segment_bases,
    segment_path,
    sync_directory,
)
from queuecore.providers.log.page import Notes
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)


def clean_partition(root: Path, place: ProviderPartition, spec: TopicSpec, now_ms: int) -> int:
    """Sweep away what the dead left behind, and remove the segments that are to go; how many those were.

    A segment goes when it is all below the partition's beginning, all older than `retention_ms`, or when what follows
    it has `retention_bytes` already. The active segment stays, but one that would go is closed first: an idle topic
    empties. UnknownTopic when the topic was deleted.
    """
    directory = partition_dir(root, place)
    with closing(PartitionWriter(root, place)) as writer:
        _sweep(writer, directory)
        with writer.exclusively() as notes:
            is_over = _is_over(notes, spec, writer.beginning, now_ms)
        if is_over:
            writer.roll()
        going = list(_going(directory, spec, writer.beginning, now_ms))
        if going:
            _remove(writer, directory, going)
            logger.info("%s: retention removed %d segments, up to the one from offset %d", place, len(going), going[-1])
        _mend_indexes(writer, directory)
        return len(going)


def _sweep(writer: PartitionWriter, directory: Path) -> None:
    """What is unfinished while nobody appends, and nobody else cleans, will never be finished."""
    if not _strays(directory):
        return
    with writer.exclusively():
        for path in _strays(directory):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _strays(directory: Path) -> list[Path]:
    return [
        path
        for path in directory.iterdir()
        if path.suffix == UNFINISHED or (path.suffix == INDEX and not _has_segment(path))
    ]


def _has_segment(index: Path) -> bool:
    return index.stem.isdecimal() and segment_path(index.parent, int(index.stem)).exists()


def _mend_indexes(writer: PartitionWriter, directory: Path) -> None:
    """Whoever closed or compacted a segment may have died, or found the disk full, before its index was complete."""
    folder = directory / f"index{UNFINISHED}"
    for base in segment_bases(directory)[:-1]:
        if has_index(directory, base):
            continue
        folder.mkdir()
        if write_index(directory, base, folder):
            with writer.exclusively():
                index_path(folder, base).rename(index_path(directory, base))
        shutil.rmtree(folder)


def _is_over(notes: Notes, spec: TopicSpec, beginning: int, now_ms: int) -> bool:
    """Whether everything in the active segment is to go. (An empty one is not rolled.)"""
    return notes.next_offset <= beginning or _is_expired(notes.latest, spec, now_ms)


def _is_expired(latest_ms: int, spec: TopicSpec, now_ms: int) -> bool:
    return spec.is_deleted_from and spec.retention_ms != FOR_EVER and now_ms - latest_ms > spec.retention_ms


def _going(directory: Path, spec: TopicSpec, beginning: int, now_ms: int) -> Iterator[int]:
    """First offsets of the segments to remove, ascending. Where one stays, all that follow do."""
    bases = segment_bases(directory)
    surplus = _surplus(directory, bases, spec)
    for base, following in pairwise(bases):
        segment = look_at(directory, base)
        surplus -= segment.size
        if following <= beginning or surplus >= 0 or _is_expired(segment.latest_ms, spec, now_ms):
            yield base
        else:
            return


def _surplus(directory: Path, bases: list[int], spec: TopicSpec) -> int:
    """How many bytes are there beyond those that `retention_bytes` promises to keep."""
    if not spec.is_deleted_from or spec.retention_bytes == FOR_EVER:
        return -1
    return sum(segment_path(directory, base).stat().st_size for base in bases) - spec.retention_bytes


def _remove(writer: PartitionWriter, directory: Path, bases: list[int]) -> None:
    with writer.exclusively():
        for base in bases:
            remove_segment(directory, base)
    sync_directory(directory)
