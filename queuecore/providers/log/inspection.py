"""Looking at a partition's files: what is in them, and what is wrong with them.

Every byte is read and checked, and nothing is opened for writing: a log that is in use, damaged or on a read-only disk
can be looked at as it is.
"""

from pathlib import Path

from queuecore.errors import ProviderUnavailable
from queuecore.providers.log.active import NO_TIME
from queuecore.providers.log.batch import NO_PRODUCER, NO_TRANSACTION, BatchHeader
from queuecore.providers.log.files import partition_dir, segment_bases, segment_path
from queuecore.providers.log.index import Index
from queuecore.providers.log.page import PageView
from queuecore.providers.log.reader import Outcome
from queuecore.providers.log.reports import (
    PageReport,
    PartitionReport,
    ProducerReport,
    SegmentReport,
    TransactionReport,
    describe_outcome,
)
from queuecore.providers.log.salvage import Damage, FoundBatch, walk_segment
from queuecore.providers.log.segment import HEAD_SIZE
from queuecore.topics import ProviderPartition

_ATTEMPTS = 5


def inspect_partition(root: Path, place: ProviderPartition, outcome: Outcome) -> PartitionReport:
    """ProviderUnavailable where the partition has no folder, or is never the same for long enough."""
    directory = partition_dir(root, place)
    if not directory.is_dir():
        raise ProviderUnavailable(f"{place} has no folder: {directory} is missing; restore it from a copy")
    for _ in range(_ATTEMPTS):
        try:
            before = _inodes(directory)
            report = _Inspection(directory, PartitionReport(*place), outcome).report
            if before.items() <= _inodes(directory).items():
                return report
        except FileNotFoundError:  # cleaned meanwhile
            continue
    raise ProviderUnavailable(f"{place} is being cleaned whenever it is looked at; try again")


def _inodes(directory: Path) -> dict[int, int]:
    return {base: segment_path(directory, base).stat().st_ino for base in segment_bases(directory)}


class _Inspection:
    """Fills the report. Page and indexes are read before the segments they tell of: those may grow meanwhile."""

    def __init__(self, directory: Path, report: PartitionReport, outcome: Outcome) -> None:
        self._directory = directory
        self._outcome = outcome
        self.report = report
        self._look_at_page()
        bases = segment_bases(directory)
        for base in bases:
            self._look_at_segment(base, is_active=base == bases[-1])
        self._compare_with_page()

    def _look_at_page(self) -> None:
        try:
            page = PageView.read(self._directory)
        except FileNotFoundError:
            self.report.remarks.append(f"{self._directory / 'state'} is missing; the next writer makes it")
            return
        self.report.page = PageReport(page.end, page.beginning, page.synced, page.is_removed, page.notes())

    def _look_at_segment(self, base: int, *, is_active: bool) -> None:
        index = Index.read(self._directory, base)
        path = segment_path(self._directory, base)
        raw = path.read_bytes()
        self._compare_with_last(path, base)
        segment = SegmentReport(str(path), base, len(raw), base, index_entries=len(index))
        self.report.segments.append(segment)
        believable = {}
        latest_ms = NO_TIME
        for found in walk_segment(path, base, raw):
            if isinstance(found, Damage):
                self._note_damage(found, segment, is_active=is_active)
            else:
                believable[found.position] = (found.header.base_offset, latest_ms)
                latest_ms = max(latest_ms, found.header.timestamp)
                self._count(found, segment)
        believable[len(raw)] = (segment.end_offset, latest_ms)
        segment.index_disagreeing = [
            number
            for number, entry in enumerate(index.entries())
            if entry is None or believable.get(entry.position) != (entry.offset, entry.latest_before)
        ]

    def _count(self, found: FoundBatch, segment: SegmentReport) -> None:
        header = found.header
        segment.end_offset = header.end_offset
        segment.batches += 1
        segment.records += header.records
        segment.first_ms = header.timestamp if segment.first_ms is None else min(segment.first_ms, header.timestamp)
        segment.last_ms = header.timestamp if segment.last_ms is None else max(segment.last_ms, header.timestamp)
        if header.compression not in segment.compression:
            segment.compression.append(header.compression)
        if header.producer != NO_PRODUCER:
            last_sequence = header.sequence + header.records - 1
            self.report.producers[header.producer] = ProducerReport(
                header.producer, header.epoch, last_sequence, header.base_offset
            )
        if header.transaction != NO_TRANSACTION:
            self._count_transaction(header)

    def _count_transaction(self, header: BatchHeader) -> None:
        found = self.report.transactions.get(header.transaction)
        if found is None:
            outcome = describe_outcome(self._outcome(header.transaction))
            found = TransactionReport(header.transaction, outcome, header.base_offset)
            self.report.transactions[header.transaction] = found
        found.batches += 1
        found.records += header.records

    def _note_damage(self, damage: Damage, segment: SegmentReport, *, is_active: bool) -> None:
        is_tail = damage.position >= HEAD_SIZE and damage.end == segment.size_bytes
        if is_active and is_tail and self._may_be_unfinished(damage.position, segment):
            self.report.remarks.append(
                f"{damage.file}: {damage.length} bytes at position {damage.position} are no whole batch; someone is "
                "writing it, or died of it, and then the next writer cuts it off"
            )
        else:
            self.report.damage.append(damage)

    def _may_be_unfinished(self, position: int, segment: SegmentReport) -> bool:
        """Whether nobody ever said that what begins here is whole."""
        page = self.report.page
        if page is None:
            return True
        if page.notes is None:
            return segment.end_offset >= page.synced
        return (segment.base, position) >= (page.notes.base, page.notes.size)

    def _compare_with_last(self, path: Path, base: int) -> None:
        if not self.report.segments:
            return
        last = self.report.segments[-1]
        if last.end_offset > base:
            self.report.remarks.append(
                f"{path}: its records are in {last.file} too; compaction died half-way, and the next one removes it"
            )
        elif last.end_offset < base:
            self._note_missing(f"offsets {last.end_offset} to {base - 1} are missing between this file and {path.name}")

    def _compare_with_page(self) -> None:
        """What was published must be there; what only the kernel had may be lost when the machine goes down."""
        page, end = self.report.page, self.report.end_offset
        if page is None or page.end <= end:
            return
        if page.notes is None and page.synced <= end:
            self.report.remarks.append(f"offsets {end} to {page.end - 1} were not on disk when the machine went down")
        else:
            self._note_missing(f"offsets {end} to {page.end - 1} were stored and are gone")

    def _note_missing(self, problem: str) -> None:
        """Something should follow the last segment. Where that one ends in damage, the damage is why it does not."""
        if not self.report.segments:
            self.report.damage.append(Damage(str(self._directory), 0, 0, problem))
            return
        last = self.report.segments[-1]
        if not any((damage.file, damage.end) == (last.file, last.size_bytes) for damage in self.report.damage):
            self.report.damage.append(Damage(last.file, last.size_bytes, 0, problem))
