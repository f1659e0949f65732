"""What has left the library and has not been given out yet."""

from collections.abc import Collection, Set

from confluent_kafka import Message

from queuecore.providers.kafka.records import place_of
from queuecore.topics import ProviderPartition


class Intake:
    """Empty between polls, as a rule. Messages stay where their partition was paused meanwhile, where a poll would
    give more of a partition than its share, or where `keep_alive` was handed one by a partition just assigned."""

    def __init__(self, max_records: int, max_partition_bytes: int) -> None:
        self._max_records = max_records
        self._max_partition_bytes = max_partition_bytes
        self._messages: list[Message] = []

    def add(self, messages: Collection[Message]) -> None:
        self._messages += messages

    def drop(self, places: Set[ProviderPartition]) -> None:
        """Forget those of these partitions."""
        self._messages = [message for message in self._messages if place_of(message) not in places]

    def ready(self, paused: Set[ProviderPartition]) -> int:
        """How many could be given out."""
        if not paused:
            return len(self._messages)
        return sum(place_of(message) not in paused for message in self._messages)

    def room(self, paused: Set[ProviderPartition]) -> int:
        """How many more the next pack can take."""
        return max(0, self._max_records - self.ready(paused))

    def take(self, paused: Set[ProviderPartition]) -> list[Message]:
        """The next pack, in order within each partition."""
        messages, self._messages = self._messages, []
        if paused:
            self._messages = [message for message in messages if place_of(message) in paused]
            messages = [message for message in messages if place_of(message) not in paused]
        if len(messages) <= self._max_records and sum(map(len, messages)) <= self._max_partition_bytes:
            return messages
        return self._share_out(messages)

    def _share_out(self, messages: list[Message]) -> list[Message]:
        """At most a pack, with at most so many bytes of each partition; one larger message goes alone."""
        given: list[Message] = []
        room: dict[ProviderPartition, int] = {}
        for message in messages:
            place, size = place_of(message), len(message)
            left = room.get(place)
            fits = left is None or size <= left
            if fits and len(given) < self._max_records:
                given.append(message)
                room[place] = (self._max_partition_bytes if left is None else left) - size
            else:
                room[place] = -1
                self._messages.append(message)
        return given
