"""What became of a batch's events: told by each task that decoded some of them, and put together by the driver."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

# By partition, the offset of the event that comes next.
Offsets = dict[str, int]


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A Parquet file of one kind of event and one day, which is not published yet."""

    name: str
    kind: str
    day: str
    rows: int
    oldest_ms: int
    newest_ms: int


@dataclass(slots=True)
class Report:
    """
    events    all that were new, whether they can be used or not
    unusable  how many cannot be, by the reason; `examples` has where the first one of each is
    offsets   where reading goes on behind them, by partition
    minutes   which minutes since 1970 events of each kind are of
    """

    events: int = 0
    unusable: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    offsets: Offsets = field(default_factory=dict)
    minutes: dict[str, list[int]] = field(default_factory=dict)
    files: list[StagedFile] = field(default_factory=list)

    @property
    def unusable_events(self) -> int:
        return sum(self.unusable.values())

    def newest_at(self, now: datetime) -> datetime | None:
        """Of when the newest event is, and never of a time to come: beside a service whose clock is ahead all others
        would seem to have fallen silent."""
        newest_ms = max((file.newest_ms for file in self.files), default=None)
        return None if newest_ms is None else min(now, datetime.fromtimestamp(newest_ms / 1000, UTC))

    def refuse(self, reason: str, count: int, example: str) -> None:
        self.unusable[reason] = self.unusable.get(reason, 0) + count
        self.examples.setdefault(reason, example)

    def reached(self, partition: str, offset: int) -> None:
        self.offsets[partition] = max(offset, self.offsets.get(partition, 0))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Report":
        told = json.loads(text)
        return cls(**told | {"files": [StagedFile(**file) for file in told["files"]]})


def together(reports: Iterable[Report]) -> Report:
    whole = Report()
    minutes: dict[str, set[int]] = {}
    for report in reports:
        whole.events += report.events
        whole.files += report.files
        for reason, count in report.unusable.items():
            whole.refuse(reason, count, report.examples[reason])
        for partition, offset in report.offsets.items():
            whole.reached(partition, offset)
        for kind, of_kind in report.minutes.items():
            minutes.setdefault(kind, set()).update(of_kind)
    whole.minutes = {kind: sorted(of_kind) for kind, of_kind in minutes.items()}
    return whole
