"""Decoding, as a task of Spark's does it: raw events in, Parquet files and a report out.

The files are the batch's cache. Spark reads them back column by column for each summary, which costs less than to take
every event through the JVM as a row, and they are stored anyway.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from queuecore.metrics import METRICS_TOPIC
from workers.spark.decoding import Period, decode
from workers.spark.raw import RawEvents
from workers.spark.reports import Offsets, Report, StagedFile
from workers.spark.schemas import KINDS_BY_NAME
from workers.spark.writing import EventWriter

_MINUTE_US = 60_000_000
_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Staging:
    """How to decode: into which folder, and which events. Those below `positions` are in the summaries already, whoever
    reads them again."""

    folder: Path
    positions: Offsets
    period: Period

    def stage(self, batches: Iterable[RawEvents]) -> Report:
        """Decode raw events. A task that is tried again, perhaps while its first attempt still writes, writes other
        files; those that no report names go with the folder."""
        report = Report()
        files = _Files(self.folder)
        minutes: dict[str, set[int]] = {}
        for batch in batches:
            fresh = self._fresh(batch, report)
            decoded = decode(fresh.data, self.period)
            report.events += len(fresh.data)
            for reason, count in decoded.unusable.items():
                report.refuse(reason, count, _place(fresh, decoded.examples[reason]))
            for kind, table in decoded.tables.items():
                if table.num_rows:
                    minutes.setdefault(kind, set()).update(files.add(kind, table))
        report.files = files.close()
        report.minutes = {kind: sorted(of_kind) for kind, of_kind in minutes.items()}
        return report

    def _fresh(self, batch: RawEvents, report: Report) -> RawEvents:
        """The events that are in no summary yet; the report is told how far they go."""
        partition = str(batch.partition)
        end = batch.offsets[-1].as_py() + 1
        report.reached(partition, end)
        return batch.between(self.positions.get(partition, 0), end)


def _place(batch: RawEvents, index: int) -> str:
    return f"{METRICS_TOPIC}[{batch.partition}] offset {batch.offsets[index].as_py()}"


class _Files:
    """The files of one attempt at a task, one for each kind and day that its events are of."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[tuple[str, str], _File] = {}

    def add(self, kind: str, table: pa.Table) -> list[int]:
        """The minutes that the table is of."""
        at = table["at"].combine_chunks().cast(pa.int64())
        days = pc.unique(pc.divide(at, _DAY_US)).to_pylist()
        for day in days:
            part = table if len(days) == 1 else table.filter(pc.equal(pc.divide(at, _DAY_US), day))
            self._file(kind, day).add(part)
        minutes: list[int] = pc.unique(pc.divide(at, _MINUTE_US)).to_pylist()
        return minutes

    def close(self) -> list[StagedFile]:
        return [file.close() for file in self._open.values()]

    def _file(self, kind: str, day: int) -> "_File":
        name = datetime.fromtimestamp(day * _DAY_US // 1_000_000, UTC).date().isoformat()
        if (kind, name) not in self._open:
            self._open[kind, name] = _File(self._folder, kind, name)
        return self._open[kind, name]


class _File:
    def __init__(self, folder: Path, kind: str, day: str) -> None:
        self._kind, self._day = kind, day
        self._name = f"{kind}-{day}-{uuid4().hex}.parquet"
        self._writer = EventWriter(folder / self._name, KINDS_BY_NAME[kind])
        self._oldest_us, self._newest_us = 1 << 62, 0

    def add(self, table: pa.Table) -> None:
        span = pc.min_max(table["at"].cast(pa.int64()))
        self._oldest_us = min(self._oldest_us, span["min"].as_py())
        self._newest_us = max(self._newest_us, span["max"].as_py())
        self._writer.add(table)

    def close(self) -> StagedFile:
        self._writer.close()
        rows, oldest_ms, newest_ms = self._writer.rows, self._oldest_us // 1000, self._newest_us // 1000
        return StagedFile(self._name, self._kind, self._day, rows, oldest_ms, newest_ms)
