"""Small files of the store become larger ones. A run every few seconds leaves thousands of files a day; what is past an
hour is read seldom, and then as a whole.

A merged file replaces others, which no file system does in one step. The list of what it replaces is written before it
gets its name: whoever finds a list finishes what it says if the merged file is there, and takes it back if not. Both
are on disk before that, so that a power cut does not leave one without the other.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds

from queueapi.event_files import SUFFIX
from queuecore.providers.log.files import sync_directory
from workers.spark.durable import write_durably
from workers.spark.schemas import KINDS_BY_NAME, Kind
from workers.spark.store import EventFile, EventStore
from workers.spark.writing import EventWriter

logger = logging.getLogger(__name__)

# Larger ones are left as they are.
SMALL_BYTES: Final = 16 * 1024 * 1024
# No merged file is made of more: it is read by one task of Spark's, and a back-fill wants several.
MERGED_BYTES: Final = 64 * 1024 * 1024

_LIST: Final = ".replaces"
_DRAFT: Final = ".draft"
_HOUR_MS: Final = 3_600_000


def compact(store: EventStore, before_ms: int) -> int:
    """Merge what is older, hour by hour; how many files went."""
    hours = ((kind, hour) for kind, day in store.days() for hour in _hours(store, kind, day, before_ms))
    return sum(_merge(kind, files) for kind, hour in hours for files in _gathered(hour) if len(files) > 1)


def settle_compaction(store: EventStore) -> None:
    """Bring to an end what a compaction that was interrupted has left."""
    for kind, day in store.days():
        for replaces in store.folder(kind, day).glob(f"*{_LIST}"):
            _settle(replaces)
        for draft in store.folder(kind, day).glob(f"*{_DRAFT}"):
            draft.unlink()


def _hours(store: EventStore, kind: str, day: str, before_ms: int) -> Iterator[list[EventFile]]:
    old = (file for file in store.files(kind, day) if file.newest_ms < before_ms)
    small = (file for file in old if file.path.stat().st_size < SMALL_BYTES)
    by_hour = sorted(store.whole(small), key=lambda file: (file.newest_ms // _HOUR_MS, file))
    for _, hour in groupby(by_hour, key=lambda file: file.newest_ms // _HOUR_MS):
        yield list(hour)


def _gathered(hour: list[EventFile]) -> Iterator[list[EventFile]]:
    """As many files together as may be merged into one."""
    gathered, size = list[EventFile](), 0
    for file in hour:
        more = file.path.stat().st_size
        if gathered and size + more > MERGED_BYTES:
            yield gathered
            gathered, size = [], 0
        gathered.append(file)
        size += more
    yield gathered


def _merge(kind: str, files: list[EventFile]) -> int:
    """How many files went: none where one of them cannot be read after all, or the merged one not be written."""
    try:
        _replace(kind, files)
    except (pa.ArrowException, OSError) as error:
        logger.error("%d files of %s stay as they are, as they cannot be merged: %s", len(files), kind, error)
        return 0
    return len(files)


def _replace(kind: str, files: list[EventFile]) -> None:
    oldest, newest = min(file.oldest_ms for file in files), max(file.newest_ms for file in files)
    merged = files[0].path.with_name(f"{oldest}-{newest}-{uuid4().hex}{SUFFIX}")
    draft, replaces = merged.with_suffix(_DRAFT), merged.with_suffix(_LIST)
    _copy(files, draft, KINDS_BY_NAME[kind])
    write_durably(replaces, json.dumps([file.path.name for file in files]))
    draft.rename(merged)
    sync_directory(merged.parent)
    _settle(replaces)


def _copy(files: list[EventFile], draft: Path, kind: Kind) -> None:
    """A group of rows at a time, so that an hour of any size fits into memory."""
    with closing(EventWriter(draft, kind)) as writer:
        for file in files:
            for batch in ds.dataset(file.path, kind.arrow).to_batches(batch_readahead=1, fragment_readahead=1):
                writer.add(pa.Table.from_batches([batch], kind.arrow))


def _settle(replaces: Path) -> None:
    if replaces.with_suffix(SUFFIX).exists():
        for name in _replaced(replaces):
            replaces.with_name(name).unlink(missing_ok=True)
        sync_directory(replaces.parent)
    replaces.unlink()


def _replaced(replaces: Path) -> list[str]:
    """None where the list cannot be read: events that are there twice are counted once, those that are not never."""
    try:
        names: list[str] = json.loads(replaces.read_text())
    except ValueError as error:
        logger.error("%s cannot be read (%s); what it names stays beside the merged file", replaces, error)
        return []
    return names
