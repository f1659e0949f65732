"""Keeping the last record of each key, for topics that want it.

Closed segments are read twice: once for which record is each key's last, once to write those anew, several segments
into one where they fit. Nobody is kept from appending meanwhile, and readers go on in the files they have open.
Compaction goes no further than the first transaction that is not decided. What was aborted goes; what was committed
stays, and needs no transaction any more.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from queuecore.providers.base import DAY_MS, TopicSpec
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.closed import ClosedSegment, look_at
from queuecore.providers.log.files import partition_dir, segment_bases
from queuecore.providers.log.reader import Outcome
from queuecore.providers.log.rewriting import Rewrite, finish_rewrite
from queuecore.providers.log.survey import Survey, Surveyed
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

# How much of the closed bytes must be new to be worth rewriting the rest.
MIN_CLEANABLE_RATIO = 0.5
DELETE_RETENTION_MS = DAY_MS


def compact_partition(
    root: Path,
    place: ProviderPartition,
    spec: TopicSpec,
    catalog: Catalog,
    outcome: Outcome,
    now_ms: int,
    *,
    min_cleanable_ratio: float = MIN_CLEANABLE_RATIO,
    delete_retention_ms: int = DELETE_RETENTION_MS,
    is_stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Rewrite the partition's closed segments if enough of them is new; whether that was done.

    Only one process at a time may. Everything new is rewritten or, when `is_stopping` says so, a part of it, and the
    rest another time. UnknownTopic when the topic was deleted, CorruptLog where a segment cannot be read.
    """
    directory = partition_dir(root, place)
    with closing(PartitionWriter(root, place)) as writer:
        segments = _closed_segments(writer, directory)
        compacted_to = catalog.compacted_to(place)
        if segments and compacted_to > segments[-1].end_offset:
            compacted_to = 0  # noted by a cleaner that did not see the topic being deleted and created again
        if not _is_worth_it(segments, compacted_to, min_cleanable_ratio):
            return False
        survey = Survey(directory, place, outcome, writer.beginning, now_ms - delete_retention_ms)
        for segment in segments:
            if is_stopping() or not survey.add(segment):
                break
        survey.finish()
        surveyed = [one.segment for one in survey.segments]
        if not _is_worth_it(surveyed, compacted_to, min_cleanable_ratio):
            return False
        for group in plan_groups(survey, spec.segment_bytes):
            with closing(Rewrite(directory, group)) as rewrite:
                if not rewrite.fill(survey, is_stopping):
                    return False
                rewrite.take_place(writer)
        catalog.set_compacted_to(place, surveyed[-1].end_offset)
        logger.info("%s: compacted %d segments, up to offset %d", place, len(surveyed), surveyed[-1].end_offset)
        return True


def plan_groups(survey: Survey, segment_bytes: int) -> list[list[ClosedSegment]]:
    """Which segments become one: neighbours that fit into a segment with what is left of them. One that would come out
    as it is stays as it is."""
    groups: list[list[Surveyed]] = []
    room = 0.0
    for one in survey.segments:
        size = one.segment.size * survey.kept_of(one).size / one.all.size if one.all.size else 0
        if not groups or size > room:
            groups.append([])
            room = segment_bytes
        groups[-1].append(one)
        room -= size
    return [[one.segment for one in group] for group in groups if len(group) > 1 or _changes(group[0], survey)]


def _closed_segments(writer: PartitionWriter, directory: Path) -> list[ClosedSegment]:
    with writer.exclusively() as notes:
        bases = [base for base in segment_bases(directory) if base < notes.base]
    return finish_rewrite(writer, directory, [look_at(directory, base) for base in bases])


def _is_worth_it(segments: Sequence[ClosedSegment], compacted_to: int, ratio: float) -> bool:
    new = _size(segment for segment in segments if segment.base >= compacted_to)
    return new > 0 and new >= ratio * _size(segments)


def _size(segments: Iterable[ClosedSegment]) -> int:
    return sum(segment.size for segment in segments)


def _changes(one: Surveyed, survey: Survey) -> bool:
    return one.has_origins or survey.kept_of(one).records < one.all.records
