"""Finding offsets by time."""

from contextlib import closing, suppress
from pathlib import Path

from queuecore.errors import OffsetOutOfRange
from queuecore.providers.log.batch import decode_records
from queuecore.providers.log.closed import look_at
from queuecore.providers.log.cursor import BatchCursor
from queuecore.providers.log.files import partition_dir, segment_bases
from queuecore.providers.log.page import PartitionPage
from queuecore.providers.log.reader import PartitionReader
from queuecore.topics import ProviderPartition


def offset_for_time(root: Path, place: ProviderPartition, reader: PartitionReader, time_ms: int) -> int:
    """The first offset whose record is not older than that; the end where there is none."""
    directory = partition_dir(root, place)
    while True:
        with suppress(FileNotFoundError, OffsetOutOfRange):  # retention was faster: look again at what is left
            return _find_time(directory, place, reader, time_ms)


def _find_time(directory: Path, place: ProviderPartition, reader: PartitionReader, time_ms: int) -> int:
    beginning, end = reader.beginning(), reader.end()
    bases = segment_bases(directory)
    if not bases:
        return end
    first = next((base for base in bases[:-1] if look_at(directory, base).latest_ms >= time_ms), bases[-1])
    with closing(PartitionPage(directory)) as page, closing(BatchCursor(directory, page)) as cursor:
        cursor.seek_time(first, time_ms)
        while cursor.next_offset < end:
            header, raw, position = cursor.batch()
            cursor.skip(header)
            if header.timestamp >= time_ms:
                for record in decode_records(header, raw, position, *place):
                    if record.timestamp_ms >= time_ms and record.offset >= beginning:
                        return record.offset
    return end
