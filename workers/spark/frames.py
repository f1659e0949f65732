"""What transforms are given: frames of events, read from Parquet files."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Final, Protocol

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from workers.spark.part_files import NO_FILES, EventFiles
from workers.spark.reports import Report
from workers.spark.schemas import Kind
from workers.spark.session import MUCH
from workers.spark.store import EventStore, Stretch, stretches_of

_FEW_TASKS: Final = 2


class Frames(Protocol):
    """Events by kind: `batch` has those to be summarised; `window` has what is stored of the minutes that these are of,
    and of the time before each. No event is in both. What is judged by another kind's events wants these of its own
    minutes, which `of` names: a batch may have none of that kind."""

    def has(self, kind: Kind) -> bool: ...

    def minutes(self, kind: Kind) -> range:
        """Since 1970: from the oldest that the batch has of the kind to the newest."""

    def batch(self, kind: Kind) -> DataFrame: ...

    def window(self, kind: Kind, of: Kind | None = None) -> DataFrame: ...

    def batch_files(self, kind: Kind) -> EventFiles:
        """What `batch` reads, for who reads it without Spark; so has `window_files` what `window` does."""

    def window_files(self, kind: Kind, of: Kind | None = None) -> EventFiles: ...

    def minute_files(self, kind: Kind) -> EventFiles:
        """What the window has without the time before."""

    def spread(self, parts: int, tasks: int) -> DataFrame:
        """The numbers of so many parts, for so many tasks; of few events two tasks have all."""

    def kept(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """What is made once and read more than once, until `release`."""

    def release(self) -> None: ...


class _Shared(ABC):
    """What summaries share: frames that Spark keeps, in memory as far as they fit."""

    def __init__(self, spark: SparkSession, *, is_much: bool) -> None:
        self._spark = spark
        self._is_much = is_much
        self._frames: dict[str, DataFrame] = {}

    @abstractmethod
    def batch_files(self, kind: Kind) -> EventFiles: ...

    @abstractmethod
    def window_files(self, kind: Kind, of: Kind | None = None) -> EventFiles: ...

    def batch(self, kind: Kind) -> DataFrame:
        return read_events(self._spark, kind, self.batch_files(kind))

    def window(self, kind: Kind, of: Kind | None = None) -> DataFrame:
        return read_events(self._spark, kind, self.window_files(kind, of))

    def spread(self, parts: int, tasks: int) -> DataFrame:
        return self._spark.range(0, parts, 1, tasks if self._is_much else _FEW_TASKS)

    def kept(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        if name not in self._frames:
            self._frames[name] = make().persist()
        return self._frames[name]

    def release(self) -> None:
        """A Spark that is gone has released them: whoever asked it for rows has been told."""
        while self._frames:
            with suppress(Py4JError, OSError):
                self._frames.popitem()[1].unpersist()


class BatchFrames(_Shared):
    """Of a batch that is staged in a folder and not published yet."""

    def __init__(self, spark: SparkSession, store: EventStore, folder: Path, report: Report, window_s: int) -> None:
        super().__init__(spark, is_much=report.events >= MUCH)
        self._store = store
        self._report = report
        self._window_ms = window_s * 1000
        self._folder = folder

    def has(self, kind: Kind) -> bool:
        return kind.name in self._report.minutes

    def minutes(self, kind: Kind) -> range:
        minutes = self._report.minutes[kind.name]
        return range(minutes[0], minutes[-1] + 1)

    def batch_files(self, kind: Kind) -> EventFiles:
        names = (file.name for file in self._report.files if file.kind == kind.name)
        return EventFiles(tuple(str(self._folder / name) for name in names))

    def window_files(self, kind: Kind, of: Kind | None = None) -> EventFiles:
        return self._stored_files(kind, of or kind, self._window_ms)

    def minute_files(self, kind: Kind) -> EventFiles:
        return self._stored_files(kind, kind, 0)

    def _stored_files(self, kind: Kind, of: Kind, before_ms: int) -> EventFiles:
        return _stored_files(self._store, kind, stretches_of(self._report.minutes.get(of.name, ()), before_ms))


class StoredFrames(_Shared):
    """Of all that is stored of a stretch of time, as back-fill wants it."""

    def __init__(self, spark: SparkSession, store: EventStore, stretch: Stretch, window_s: int) -> None:
        super().__init__(spark, is_much=True)
        self._store = store
        self._stretch = stretch
        self._before = Stretch(stretch.start_ms - window_s * 1000, stretch.start_ms)

    def has(self, kind: Kind) -> bool:
        return bool(self._store.find(kind.name, [self._stretch]))

    def minutes(self, kind: Kind) -> range:  # noqa: ARG002 - all kinds are of one day
        return range(self._stretch.start_ms // 60_000, self._stretch.end_ms // 60_000)

    def batch_files(self, kind: Kind) -> EventFiles:
        return _stored_files(self._store, kind, [self._stretch])

    def window_files(self, kind: Kind, of: Kind | None = None) -> EventFiles:  # noqa: ARG002 - all kinds are of one day
        return _stored_files(self._store, kind, [self._before])

    def minute_files(self, kind: Kind) -> EventFiles:  # noqa: ARG002 - what there is of them is to be summarised
        return NO_FILES


def _stored_files(store: EventStore, kind: Kind, stretches: Sequence[Stretch]) -> EventFiles:
    return EventFiles(tuple(map(str, store.find(kind.name, stretches))), tuple(stretches))


def read_events(spark: SparkSession, kind: Kind, files: EventFiles) -> DataFrame:
    if not files.paths:
        return spark.createDataFrame([], kind.spark)
    reader = spark.read.schema(kind.spark)
    if files.are_stored:
        # What is stored may have come to harm since, which must not stop what is new; a batch can be staged again.
        reader = reader.option("ignoreCorruptFiles", value=True)
    events = reader.parquet(*(Path(path).as_uri() for path in files.paths))
    return events.where(reduce(or_, map(_is_within, files.stretches))) if files.stretches else events


def _is_within(stretch: Stretch) -> Column:
    start, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (stretch.start_ms, stretch.end_ms))
    return (f.col("at") >= f.lit(start)) & (f.col("at") < f.lit(end))
