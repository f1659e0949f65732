"""What has left the library and has not been given out yet."""

from collections.abc import Sequence, Set

from confluent_kafka import Message

from queuecore.messages import Record
from queuecore.providers.kafka.decoding import data_of, decode, ends_of, place_of
from queuecore.topics import ProviderPartition


class Intake:
    """Empty between polls, as a rule. Records stay where their partition was paused meanwhile, where a poll would
    give more of a partition than its share, or where `keep_alive` was handed one by a partition just assigned."""

    def __init__(self, max_records: int, max_partition_bytes: int) -> None:
        self._max_records = max_records
        self._max_partition_bytes = max_partition_bytes
        self._records: list[Record] = []
        # Of those: the offsets behind the last of each partition, and the bytes of data.
        self._ends: dict[ProviderPartition, int] = {}
        self._size = 0

    def add(self, messages: Sequence[Message]) -> None:
        if messages:
            records, ends, size = decode(messages)
            self._records += records
            self._ends |= ends
            self._size += size

    def drop(self, places: Set[ProviderPartition]) -> None:
        """Forget those of these partitions."""
        self._keep([record for record in self._records if place_of(record) not in places])

    def ready(self, paused: Set[ProviderPartition]) -> int:
        """How many could be given out."""
        if not paused:
            return len(self._records)
        return sum(place_of(record) not in paused for record in self._records)

    def room(self, paused: Set[ProviderPartition]) -> int:
        """How many more the next pack can take."""
        return max(0, self._max_records - self.ready(paused))

    def take(self, paused: Set[ProviderPartition]) -> tuple[list[Record], dict[ProviderPartition, int]]:
        """The next pack, in order within each partition, and the offsets behind the last of each."""
        records, ends, size = self._records, self._ends, self._size
        self._keep([])
        if not paused and len(records) <= self._max_records and size <= self._max_partition_bytes:
            return records, ends
        given, left = self._share_out([record for record in records if place_of(record) not in paused])
        # Of a partition that is paused everything is left, so no order is lost.
        self._keep([record for record in records if place_of(record) in paused] + left)
        return given, ends_of(given)

    def _keep(self, records: list[Record]) -> None:
        self._records = records
        self._ends = ends_of(records)
        self._size = sum(map(len, map(data_of, records)))

    def _share_out(self, records: list[Record]) -> tuple[list[Record], list[Record]]:
        """At most a pack, with at most so many bytes of each partition, and the rest; one larger record goes alone."""
        given: list[Record] = []
        left_over: list[Record] = []
        room: dict[ProviderPartition, int] = {}
        for record in records:
            place, size = place_of(record), len(data_of(record))
            left = room.get(place)
            fits = left is None or size <= left
            if fits and len(given) < self._max_records:
                given.append(record)
                room[place] = (self._max_partition_bytes if left is None else left) - size
            else:
                room[place] = -1
                left_over.append(record)
        return given, left_over
