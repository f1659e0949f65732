"""Events by kind and day, in Parquet files. Every event that is in a summary is in here, once, for as long as
`event_retention_days` says.

    pending/<run>/           what the tasks of a run decode
    pending/<batch>/         what a batch has decoded and not committed, with its report
    <kind>/<day>/<oldest>-<newest>-<batch>-<number>.parquet
    id                       tells this store from others

A batch's files are published after its transaction has been committed. A run that ends between the two leaves them
pending: the next one publishes those whose batch is in the database and removes the others. Nobody reads the store but
who holds the pipeline's lock.

All that a commit relies on is on disk before it, and each name before what it replaces is removed: a power cut loses no
event. What cannot be read all the same, as disks fail too, is set aside and told: it must not hold up what can be.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, Self
from uuid import uuid4

from queueapi.event_files import ID_FILE, SUFFIX, UNREADABLE
from queuecore.providers.log.files import make_durably, sync_directory
from workers.spark.durable import write_durably
from workers.spark.reports import Report
from workers.spark.schemas import KINDS

logger = logging.getLogger(__name__)

_PENDING: Final = "pending"
_REPORT: Final = "report.json"
_DAY_MS: Final = 86_400_000
# Parquet begins and ends so. What comes last is written last.
_MAGIC: Final = b"PAR1"


@dataclass(frozen=True, slots=True)
class Stretch:
    """From one time up to, but without, another, in milliseconds."""

    start_ms: int
    end_ms: int

    def touches(self, oldest_ms: int, newest_ms: int) -> bool:
        return oldest_ms < self.end_ms and newest_ms >= self.start_ms

    def days(self) -> Iterator[str]:
        for day in range(self.start_ms // _DAY_MS, (self.end_ms - 1) // _DAY_MS + 1):
            yield datetime.fromtimestamp(day * _DAY_MS / 1000, UTC).date().isoformat()


@dataclass(frozen=True, slots=True, order=True)
class EventFile:
    """A published file, which says in its name of what time its events are."""

    path: Path
    oldest_ms: int
    newest_ms: int

    @classmethod
    def at(cls, path: Path) -> Self:
        oldest, newest, _ = path.name.split("-", 2)
        return cls(path, int(oldest), int(newest))

    def is_whole(self) -> bool:
        """Whether it has an end, which one that was cut short has not."""
        with self.path.open("rb") as file:
            if file.seek(0, os.SEEK_END) < 2 * len(_MAGIC):
                return False
            file.seek(-len(_MAGIC), os.SEEK_END)
            return file.read() == _MAGIC


class EventStore:
    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def id(self) -> str:
        """Made at random when it is first asked for, and kept."""
        if not (file := self.root / ID_FILE).exists():
            make_durably(self.root, below=self.root)
            write_durably(draft := file.with_suffix(".draft"), uuid4().hex)
            draft.rename(file)
            sync_directory(self.root)
        return file.read_text()

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder for the files of a run's tasks."""
        folder = self._pending(uuid4().hex)
        make_durably(folder, below=self.root)
        try:
            yield folder
        finally:
            _remove(folder)

    def prepare(self, batch: str, report: Report, stage: Path) -> Path:
        """All of the batch's files are there to stay: what is left is to commit it, and to publish. Their folder."""
        folder = self._pending(batch)
        make_durably(folder, below=self.root)
        for file in report.files:
            (stage / file.name).rename(folder / file.name)
        write_durably(folder / _REPORT, report.to_json())
        return folder

    def publish(self, batch: str) -> None:
        """Can be done again after it was interrupted. Events whose report cannot be read are lost to the store."""
        folder = self._pending(batch)
        try:
            files = Report.from_json((folder / _REPORT).read_text()).files
        except (ValueError, TypeError, KeyError) as error:
            logger.error("the report of batch %s cannot be read (%s); its events are in summaries alone", batch, error)
            files = []
        for number, file in enumerate(files):
            if (staged := folder / file.name).exists():
                target = self.folder(file.kind, file.day)
                make_durably(target, below=self.root)
                staged.rename(target / f"{file.oldest_ms}-{file.newest_ms}-{batch}-{number}{SUFFIX}")
        for target in {self.folder(file.kind, file.day) for file in files}:
            sync_directory(target)
        shutil.rmtree(folder)

    def settle(self, is_committed: Callable[[str], bool]) -> None:
        """Bring to an end what an earlier run left pending."""
        pending = self.root / _PENDING
        for folder in sorted(pending.iterdir()) if pending.is_dir() else ():
            if (folder / _REPORT).exists() and is_committed(folder.name):
                self.publish(folder.name)
            else:
                _remove(folder)

    def find(self, kind: str, stretches: Iterable[Stretch]) -> list[Path]:
        """The files that may have events of these times."""
        stretches = list(stretches)
        days = {day for stretch in stretches for day in stretch.days()}
        files = (file for day in sorted(days) for file in self.files(kind, day))
        touched = (file for file in files if any(one.touches(file.oldest_ms, file.newest_ms) for one in stretches))
        return [file.path for file in self.whole(touched)]

    def whole(self, files: Iterable[EventFile]) -> list[EventFile]:
        """Those that can be read. Others are set aside: whoever reads them would fail, now and ever after."""
        found = []
        for file in files:
            if file.is_whole():
                found.append(file)
            else:
                logger.error("%s is cut short and set aside; its events are in summaries alone", file.path)
                file.path.rename(file.path.with_suffix(UNREADABLE))
        return found

    def files(self, kind: str, day: str) -> list[EventFile]:
        return sorted(EventFile.at(path) for path in self.folder(kind, day).glob(f"*{SUFFIX}"))

    def folder(self, kind: str, day: str) -> Path:
        return self.root / kind / day

    def days(self) -> list[tuple[str, str]]:
        """The kinds and days that there are events of, oldest first."""
        found = ((kind.name, folder.name) for kind in KINDS for folder in (self.root / kind.name).glob("????-??-??"))
        return sorted(found, key=lambda one: (one[1], one[0]))

    def forget(self, before: date) -> int:
        """Remove the days before this one; how many folders those were."""
        old = [(kind, day) for kind, day in self.days() if date.fromisoformat(day) < before]
        for kind, day in old:
            shutil.rmtree(self.folder(kind, day))
        return len(old)

    def _pending(self, batch: str) -> Path:
        return self.root / _PENDING / batch


def _remove(folder: Path) -> None:
    """As far as that is possible: a task that was given up may still write to it. The next run removes what is left."""
    shutil.rmtree(folder, ignore_errors=True)


def oldest_kept(now: datetime, retention_days: int) -> date:
    return (now - timedelta(days=retention_days)).date()


def stretches_of(minutes: Iterable[int], before_ms: int) -> list[Stretch]:
    """These minutes, each with so much time before it, as few stretches as that makes."""
    found: list[Stretch] = []
    for minute in sorted(minutes):
        start_ms, end_ms = minute * 60_000 - before_ms, (minute + 1) * 60_000
        if found and start_ms <= found[-1].end_ms:
            found[-1] = Stretch(found[-1].start_ms, end_ms)
        else:
            found.append(Stretch(start_ms, end_ms))
    return found
