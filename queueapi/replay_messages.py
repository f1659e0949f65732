"""A dead letter as a message again: what is sent, and where it goes."""

import binascii
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from queueapi.models import Queue
from queueapi.queue_addresses import Partitions, QueueAddresses
from queuecore.deadletter.foreign import Origin
from queuecore.errors import UnknownQueue
from queuecore.messages import REPLAY_COUNT, REPLAY_ID, REPLAY_LETTER, Headers, Key, QueueMessage
from queuecore.sending import Addressed
from queuecore.topics import TopicPartitionInfo

# What earlier replays said is said anew.
_REPLAY: Final = "__queue.replay."


class LetterRow(NamedTuple):
    """What a replay needs of a letter. Headers' values are base64, as they are stored."""

    sequence: int
    letter_id: str
    queue_id: UUID
    topic: str
    partition: int
    origin: str
    replay_count: int
    is_edited: bool
    key: Key
    headers: Mapping[str, str]
    payload: bytes


class Route:
    """Where letters go: back to their own queues, or to another one. By the routing version that a queue's first letter
    is met with."""

    def __init__(self, queues: Iterable[Queue], target: Queue | None, addresses: QueueAddresses) -> None:
        self._addresses = addresses
        self._queues = {queue.id: queue for queue in queues}
        self._infos: dict[UUID, Partitions] = {}
        self._target = None if target is None else self._partitions(target)

    def info(
        self,
        queue_id: UUID,
        topic: str,
        partition: int,
        key: Key,
        *,
        origin: str = Origin.SWITCHYARD,
        is_edited: bool = False,
    ) -> TopicPartitionInfo:
        """The same however often it is asked. A letter stays in its partition of its own queue, unless it was edited
        and may have another key. Only our own are in the partition of the dead-letter topic that they had in their
        queue; those of others may name a topic that is one partition alone. What does not stay is divided by its key,
        and one without a key is spread by the partition that it was found in."""
        infos = self._target or self._own(queue_id)
        if self._target is None and not is_edited:
            if origin != Origin.SWITCHYARD:
                named = [info for info in infos if info.full_topic_name == topic]
                if len(named) == 1:
                    return named[0]
            elif (at := partition - (infos[0].partition or 0)) in range(len(infos)):
                return infos[at]
        return infos[partition % len(infos) if key is None else abs(self._addresses.hash(key)) % len(infos)]

    def _own(self, queue_id: UUID) -> Partitions:
        if (infos := self._infos.get(queue_id)) is None:
            infos = self._infos[queue_id] = self._partitions(self._queues[queue_id])
        return infos

    def _partitions(self, queue: Queue) -> Partitions:
        try:
            return self._addresses.partitions(queue.tenant_id, queue.name)
        except UnknownQueue:
            # One that no routing version can hold has its letters, and its topics, all the same.
            return tuple(map(queue.partition_info, queue.routed_numbers))


class LetterSender:
    """Makes the messages of one replay."""

    def __init__(self, replay_id: UUID, route: Route) -> None:
        self._replay_id = str(replay_id).encode()
        self._route = route

    def address(self, row: LetterRow) -> Addressed:
        place = (row.queue_id, row.topic, row.partition, row.key)
        info = self._route.info(*place, origin=row.origin, is_edited=row.is_edited)
        return Addressed(info, QueueMessage(row.key, row.payload, self._headers(row)))

    def _headers(self, row: LetterRow) -> Headers:
        decode = binascii.a2b_base64
        headers = {name: decode(value) for name, value in row.headers.items() if not name.startswith(_REPLAY)}
        headers[REPLAY_ID] = self._replay_id
        headers[REPLAY_LETTER] = row.letter_id.encode()
        headers[REPLAY_COUNT] = b"%d" % (row.replay_count + 1)
        return headers


def key_of(key: UUID | None, raw_key: bytes | memoryview | None) -> Key:
    """A letter's key, from the two columns that may hold it."""
    if key is not None or raw_key is None:
        return key
    return bytes(raw_key) or None
