"""What an inspection of a partition's files finds."""

from dataclasses import dataclass, field

from queuecore.providers.log.page import Notes
from queuecore.providers.log.salvage import Damage


@dataclass(slots=True)
class SegmentReport:
    file: str
    base: int
    size_bytes: int
    end_offset: int
    batches: int = 0
    records: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    compression: list[str] = field(default_factory=list)
    # How many entries its index has, and which of them (counted from 0) do not agree with the segment.
    index_entries: int = 0
    index_disagreeing: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProducerReport:
    """A producer's last batch here: the sequence of its last record, and the offset of its first."""

    producer: int
    epoch: int
    last_sequence: int
    offset: int


@dataclass(slots=True)
class TransactionReport:
    number: int
    outcome: str
    first_offset: int
    batches: int = 0
    records: int = 0


@dataclass(frozen=True, slots=True)
class PageReport:
    end: int
    beginning: int
    synced: int
    is_removed: bool
    # None: made before the machine was last started, or harmed; the next writer goes by the files alone.
    notes: Notes | None


@dataclass(slots=True)
class PartitionReport:
    topic: str
    partition: int
    page: PageReport | None = None
    segments: list[SegmentReport] = field(default_factory=list)
    producers: dict[int, ProducerReport] = field(default_factory=dict)
    transactions: dict[int, TransactionReport] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)
    # What is no damage, and mended by whoever writes or cleans next.
    remarks: list[str] = field(default_factory=list)

    @property
    def end_offset(self) -> int:
        return self.segments[-1].end_offset if self.segments else 0


def describe_outcome(outcome: bool | None) -> str:
    return "open" if outcome is None else "committed" if outcome else "aborted"
