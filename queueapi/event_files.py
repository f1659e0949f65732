"""The pipeline's store of events, as seen from outside: which days it has events of, and how many. Whoever writes it is
`workers.spark.store`, which says how it is made."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from queueapi.config import Config
from queuecore.proto.events_pb2 import Event

SUFFIX: Final = ".parquet"
UNREADABLE: Final = ".unreadable"
ID_FILE: Final = "id"

# A folder for each body that an event may have.
KINDS: Final = tuple(f"{field.name}s" for field in Event.DESCRIPTOR.oneofs_by_name["body"].fields)


@dataclass(frozen=True, slots=True)
class StoredDay:
    """What is stored of one day.

    events      by kind, those of which there are some
    files       that hold them
    unreadable  files that came to harm; nobody knows what they held
    """

    day: date
    events: dict[str, int]
    files: int
    unreadable: int

    @property
    def total(self) -> int:
        return sum(self.events.values())


def event_folder(installation: Config) -> Path:
    return installation.data / "spark" / "events"


class EventFiles:
    """The store in the installation's data folder. Its files may be merged while they are counted, which makes the
    counts a little wrong, and nothing else."""

    def __init__(self, installation: Config) -> None:
        self._folder = event_folder(installation)

    def is_of(self, store_id: str) -> bool:
        """Whether it is this one. Where the data folder is not shared, another machine's cannot be seen from here."""
        try:
            return (self._folder / ID_FILE).read_text() == store_id
        except FileNotFoundError:
            return False

    def has_any(self, day: date) -> bool:
        return any(True for kind in KINDS for _ in self._files(kind, day, SUFFIX))

    def stored(self, day: date) -> StoredDay:
        found = {kind: list(self._files(kind, day, SUFFIX)) for kind in KINDS}
        rows = {kind: [_rows(path) for path in paths] for kind, paths in found.items()}
        unreadable = sum(1 for kind in KINDS for _ in self._files(kind, day, UNREADABLE))
        return StoredDay(
            day=day,
            events={kind: sum(filter(None, counts)) for kind, counts in rows.items() if any(counts)},
            files=sum(map(len, found.values())),
            unreadable=unreadable + sum(counts.count(None) for counts in rows.values()),
        )

    def _files(self, kind: str, day: date, suffix: str) -> Iterator[Path]:
        return (self._folder / kind / day.isoformat()).glob(f"*{suffix}")


def _rows(path: Path) -> int | None:
    """None where it cannot be read; nothing where it has just been merged into another."""
    # Only who asks for a plan loads Arrow.
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except FileNotFoundError:
        return 0
    except (pa.ArrowException, OSError):
        return None
