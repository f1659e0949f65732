"""Partitions of the log in a folder, as its writers and readers see them."""

from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

from queuecore.messages import QueueMessage, Record
from queuecore.providers.log.batch import ANONYMOUS, EncodedBody, Origin, encode_body
from queuecore.providers.log.files import partition_dir, segment_bases, segment_path
from queuecore.providers.log.page import PartitionPage
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition, TopicPartitionInfo

INFO = TopicPartitionInfo("topic", 0)
PLACE = INFO.place
NOW_MS = 1_700_000_000_000
LARGE = 100_000_000


def messages(*data: str) -> list[QueueMessage]:
    return [QueueMessage(None, one.encode()) for one in data]


def body(*data: str) -> EncodedBody:
    return encode_body(messages(*data))


def append(
    writer: PartitionWriter, *data: str, at_ms: int = NOW_MS, sync: bool = False, origin: Origin = ANONYMOUS
) -> int:
    return writer.append(body(*data), at_ms, sync=sync, origin=origin)


def batch(base: int, *data: str, at_ms: int = NOW_MS, origin: Origin = ANONYMOUS) -> bytes:
    """A whole batch, as it is in a segment."""
    encoded = body(*data)
    return encoded.header(base, encoded.records, at_ms, origin).pack() + encoded.body


def texts(records: Iterable[Record]) -> list[str]:
    return [record.data.decode() for record in records]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below the folder, to compare with what it was before."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Partition:
    """One partition in a folder of its own."""

    def __init__(self, root: Path, segment_bytes: int = LARGE, place: ProviderPartition = PLACE) -> None:
        self.root = root
        self.place = place
        self.folder = partition_dir(root, place)
        self._segment_bytes = segment_bytes
        self._open = ExitStack()

    def writer(self) -> PartitionWriter:
        """Another writer, as another process would have it."""
        return self._open.enter_context(closing(PartitionWriter(self.root, self.place, self._segment_bytes)))

    def reader(self) -> PartitionReader:
        return self._open.enter_context(closing(PartitionReader(self.root, self.place)))

    def page(self) -> PartitionPage:
        return self._open.enter_context(closing(PartitionPage(self.folder)))

    def read(self, offset: int = 0, max_records: int = 1_000_000) -> list[Record]:
        with closing(PartitionReader(self.root, self.place)) as reader:
            return reader.read(offset, max_records)

    def data(self, offset: int = 0) -> list[str]:
        return texts(self.read(offset))

    def segments(self) -> list[Path]:
        return [segment_path(self.folder, base) for base in segment_bases(self.folder)]

    def add_bytes(self, raw: bytes) -> None:
        """What a writer leaves that dies right after a write."""
        with self.segments()[-1].open("ab") as segment:
            segment.write(raw)

    def close(self) -> None:
        self._open.close()
