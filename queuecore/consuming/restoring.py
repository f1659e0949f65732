"""Reading a partition's state to its end, a step at a time."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from queuecore.consuming.state import RESERVED, PartitionState
from queuecore.errors import ConfigurationError, OffsetOutOfRange
from queuecore.messages import UNKNOWN_OFFSET, QueueMessage, RecordMetadata
from queuecore.providers.base import Provider, QueueProducer, QueueReader
from queuecore.sending import send

logger = logging.getLogger(__name__)

# What a consumer stores to know where the end is.
END_KEY: Final = RESERVED + b"end"
# Read in one step; between two of them the group hears of us, and other partitions go on.
STEP: Final = 5_000


class _Restoration:
    """How far one partition is."""

    def __init__(self, end: "Future[RecordMetadata]", position: int) -> None:
        self.end = end
        self.position = position


class Restoring:
    """For the thread that reads.

    Where the end is cannot be asked for: a transaction of the partition's last owner may be about to be decided, and
    what is behind it cannot be read until then. So a message is stored that says nothing, and read up to; all that was
    stored before it comes first. It has to be begun when the first message of the partition has been polled: on Kafka
    only then all transactions that have moved the group's offset have sent what they have to send.
    """

    def __init__(self, provider: Provider, producer: QueueProducer, on_change: Callable[[], None]) -> None:
        self._provider = provider
        self._producer = producer
        # Called, from any thread, when another step can be made.
        self._on_change = on_change
        self._reader: QueueReader | None = None
        self._under_way: dict[PartitionState, _Restoration] = {}

    def step(self, state: PartitionState) -> bool:
        """Go on, for a bounded time. Whether the state is complete."""
        restoration = self._under_way.get(state) or self._begin(state)
        if not restoration.end.done():
            return False
        end = _offset_of(restoration.end.result(), state)
        place = state.info.place
        self._reader = self._reader or self._provider.reader()
        try:
            records = self._reader.read(place, restoration.position, STEP)
        except OffsetOutOfRange:
            # Removed while it was read.
            state.clear()
            restoration.position = self._provider.admin().beginning_offsets([place])[place]
            records = []
        state.restore(records)
        if records:
            restoration.position = records[-1].offset + 1
            self._on_change()
        if restoration.position > end:
            self._end(state)
        return state.is_restored

    def forget(self, state: PartitionState) -> None:
        """Its partition is another's."""
        self._under_way.pop(state, None)

    def close(self) -> None:
        self._under_way.clear()
        if self._reader is not None:
            reader, self._reader = self._reader, None
            reader.close()

    def _begin(self, state: PartitionState) -> _Restoration:
        place = state.info.place
        beginning = self._provider.admin().beginning_offsets([place])[place]
        end = send(self._producer, state.info, QueueMessage.tombstone(END_KEY))
        end.add_done_callback(lambda _: self._on_change())
        restoration = self._under_way[state] = _Restoration(end, beginning)
        return restoration

    def _end(self, state: PartitionState) -> None:
        del self._under_way[state]
        state.is_restored = True
        logger.info("%s: %d keys of state are restored, %d bytes", state.info, state.entries, state.size_bytes)


def _offset_of(end: RecordMetadata, state: PartitionState) -> int:
    if end.offset == UNKNOWN_OFFSET:
        raise ConfigurationError(
            f"{state.info}: with acks=0 nobody knows whether a queue's state is stored; use acks 1 or all"
        )
    return end.offset
