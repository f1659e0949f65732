"""The states of the partitions that a consumption holds."""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Final

from queuecore.consuming.context import DeliveryContext, KeyedState, MessageHandler
from queuecore.consuming.delivering import is_async
from queuecore.consuming.places import place_of
from queuecore.consuming.restoring import Restoring
from queuecore.consuming.state import DeliveryState, PartitionState
from queuecore.errors import GivenUp, QueueError
from queuecore.messages import Record
from queuecore.providers.base import Provider, QueueProducer
from queuecore.topics import ProviderPartition, TopicPartitionInfo, state_partition

RESTORING: Final = "its state is being restored"


class States:
    """What is remembered in the partitions of one consumption. For the thread that reads, but for `open`."""

    def __init__(self, topic: str, provider: Provider, producer: QueueProducer, on_change: Callable[[], None]) -> None:
        self._topic = topic
        self._restoring = Restoring(provider, producer, on_change)
        self._held: dict[ProviderPartition, PartitionState] = {}
        self._refusals: defaultdict[ProviderPartition, dict[int, QueueError]] = defaultdict(dict)

    @property
    def entries(self) -> int:
        return sum(state.entries for state in list(self._held.values()))

    @property
    def size_bytes(self) -> int:
        return sum(state.size_bytes for state in list(self._held.values()))

    def take(self, info: TopicPartitionInfo) -> PartitionState:
        """The partition is ours now. Its state is empty, and to be restored."""
        state = PartitionState(state_partition(info, self._topic), self._refusals[info.place])
        self._held[info.place] = state
        return state

    def restore(self, state: PartitionState) -> bool:
        """Go on, for a bounded time. Whether the state is complete."""
        return self._restoring.step(state)

    def forget(self, place: ProviderPartition) -> None:
        if (state := self._held.pop(place, None)) is not None:
            self._restoring.forget(state)

    def close(self) -> None:
        """The group is left."""
        self._held.clear()
        self._restoring.close()

    def open(self, context: DeliveryContext) -> KeyedState:
        """From any thread."""
        place = place_of(context.record)
        if (state := self._held.get(place)) is None:
            raise QueueError(f"{place} has been given away, with its state; its messages are handled elsewhere")
        return DeliveryState(state)

    def guard(self, handler: MessageHandler) -> MessageHandler:
        """The handler, but for messages whose outcome could not be stored: these are given up."""
        if is_async(handler):

            @wraps(handler)
            async def handle_async(record: Record, context: DeliveryContext) -> None:
                self._check(record)
                returned = handler(record, context)
                if isinstance(returned, Awaitable):
                    await returned

            return handle_async

        @wraps(handler)
        def handle(record: Record, context: DeliveryContext) -> Awaitable[None] | None:
            self._check(record)
            return handler(record, context)

        return handle

    def _check(self, record: Record) -> None:
        error = self._refusals[place_of(record)].get(record.offset)
        if error is not None:
            raise GivenUp(f"what its handler sent or remembered cannot be stored: {error}") from error
