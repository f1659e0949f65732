"""What a stateful queue's handlers remember: values under keys, for each partition.

A delivery has its own view of them. What it changes is kept apart until its handler has returned and its attempt wants
that: then it is applied, so that the handlers of later messages see it, and it is stored when the message is settled.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from queuecore.errors import InvalidMessage, QueueError, StateUndone
from queuecore.messages import Key, QueueMessage, Record
from queuecore.sending import Addressed
from queuecore.topics import TopicPartitionInfo

# Keys that begin so are not for handlers.
RESERVED: Final = b"__queue."

# None: there is nothing under the key.
Value = bytes | None


class _Change(NamedTuple):
    """What one message did.

    sequence  counts the changes of a partition, in the order in which they were applied
    after     the values it put
    before    the values that were there
    needs     the last message, not stored when it was applied, whose changes it has seen or replaced; -1: none
    """

    sequence: int
    after: Mapping[bytes, Value]
    before: Mapping[bytes, Value]
    needs: int


class PartitionState:
    """One partition's values, in one epoch. Safe from any thread.

    Handlers of several lanes may use the same keys. That nothing is lost by it is seen to when a change is applied: who
    has read what was changed since does not get its own change applied, and is to be handled again. That nothing is
    stored by halves is seen to when it is settled, by `closed` and `messages`.
    """

    def __init__(self, info: TopicPartitionInfo, refusals: dict[int, QueueError]) -> None:
        self.info = info
        self.is_restored = False
        # Messages whose outcome cannot be stored, by offset. Outlives the epoch.
        self._refusals = refusals
        self._lock = threading.Lock()
        self._values: dict[bytes, bytes] = {}
        self._bytes = 0
        # Applied and not stored, by the message's offset; and who has changed a key last.
        self._changes: dict[int, _Change] = {}
        self._writers: dict[bytes, int] = {}
        self._sequence = 0

    @property
    def entries(self) -> int:
        return len(self._values)

    @property
    def size_bytes(self) -> int:
        """Of keys and values."""
        return self._bytes

    def value(self, key: bytes) -> Value:
        return self._values.get(key)

    def restore(self, records: Iterable[Record]) -> None:
        """As they are stored, in order."""
        with self._lock:
            for record in records:
                key = record.key
                if key is not None:
                    raw = key if isinstance(key, bytes) else _text_of(key)
                    self._set(raw, None if record.is_tombstone else record.data)

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self._bytes = 0

    def apply(self, offset: int, reads: Mapping[bytes, Value], writes: Mapping[bytes, Value]) -> bool:
        """Have this message's changes take effect. False, with nothing changed, where what it read is not so any
        more."""
        with self._lock:
            values, writers = self._values, self._writers
            for key, value in reads.items():
                if values.get(key) != value:
                    return False
            needs = max([writers.get(key, -1) for key in (*reads, *writes)], default=-1)
            if not writes and needs < offset:
                return True
            self._sequence += 1
            before = {key: values.get(key) for key in writes}
            self._changes[offset] = _Change(self._sequence, writes, before, needs)
            for key, value in writes.items():
                self._set(key, value)
                writers[key] = offset
            return True

    def undo(self, offsets: Iterable[int]) -> None:
        """These messages are to be handled again. They are the last that changed anything."""
        with self._lock:
            for _, change in self._drop(offsets)[::-1]:
                for key, value in change.before.items():
                    self._set(key, value)

    def closed(self, offsets: Sequence[int]) -> list[int]:
        """Of these, which are all from the first open message on, those that can be stored: with none of them, nothing
        of what it needs is left out."""
        return [offset for group in self.groups(offsets) for offset in group]

    def groups(self, offsets: Sequence[int]) -> list[list[int]]:
        """As `closed`, in the smallest pieces that can be stored one after the other."""
        groups, group, needed = [], [], -1
        with self._lock:
            for offset in offsets:
                group.append(offset)
                if (change := self._changes.get(offset)) is not None and change.needs in self._changes:
                    needed = max(needed, change.needs)
                if needed <= offset:
                    groups.append(group)
                    group = []
        return groups

    def messages(self, offsets: Iterable[int]) -> dict[int, list[Addressed]]:
        """What has to be stored of these messages' changes, by the offset of who made them: the last of each key, so
        that their order does not matter."""
        with self._lock:
            changes = self._in_order(offsets)
        last = {key: offset for offset, change in changes for key in change.after}
        return {
            offset: [self._message(key, value) for key, value in change.after.items() if last[key] == offset]
            for offset, change in changes
        }

    def stored(self, offsets: Iterable[int]) -> None:
        """These messages are settled."""
        with self._lock:
            self._drop(offsets)
            if self._refusals:
                for offset in offsets:
                    self._refusals.pop(offset, None)

    def refuse(self, offset: int, error: QueueError) -> None:
        """What this message's handler did cannot be stored, and others have built on it: the state has to be read anew,
        and the message is not to be handled again. Always raises StateUndone."""
        self._refusals[offset] = error
        raise StateUndone(
            f"what the handler of message {offset} sent or remembered in {self.info} cannot be stored: {error}; the "
            "state is read anew, and that message becomes a dead letter",
            offset=offset,
        )

    def _set(self, key: bytes, value: Value) -> None:
        if (old := self._values.get(key)) is not None:
            self._bytes -= len(key) + len(old)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
            self._bytes += len(key) + len(value)

    def _in_order(self, offsets: Iterable[int]) -> list[tuple[int, _Change]]:
        found = [(offset, self._changes[offset]) for offset in offsets if offset in self._changes]
        return sorted(found, key=lambda one: one[1].sequence)

    def _drop(self, offsets: Iterable[int]) -> list[tuple[int, _Change]]:
        dropped = self._in_order(offsets)
        for offset, change in dropped:
            del self._changes[offset]
            for key in change.after:
                if self._writers.get(key) == offset:
                    del self._writers[key]
        return dropped

    def _message(self, key: bytes, value: Value) -> Addressed:
        return Addressed(self.info, QueueMessage.tombstone(key) if value is None else QueueMessage(key, value))


class DeliveryState:
    """A partition's values as one delivery sees and changes them: a KeyedState."""

    __slots__ = ("_is_over", "_reads", "_state", "_writes")

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._is_over = False
        self._reads: dict[bytes, Value] = {}
        self._writes: dict[bytes, Value] = {}

    def get(self, key: Key) -> bytes | None:
        raw = _checked(key)
        if raw in self._writes:
            return self._writes[raw]
        if raw not in self._reads:
            self._reads[raw] = self._state.value(raw)
        return self._reads[raw]

    def put(self, key: Key, value: bytes) -> None:
        if not isinstance(value, bytes):
            raise InvalidMessage(f"the value under {key!r} is {type(value).__name__}; remember bytes")
        self._write(key, value)

    def delete(self, key: Key) -> None:
        self._write(key, None)

    def forget(self) -> None:
        self._writes.clear()

    def apply(self, offset: int) -> bool:
        """Its handler has returned: as `PartitionState.apply`."""
        self._is_over = True
        return self._state.apply(offset, self._reads, dict(self._writes))

    def _write(self, key: Key, value: Value) -> None:
        if self._is_over:
            raise QueueError("this message's handler has returned; change what it remembers before it does")
        self._writes[_checked(key)] = value


def _text_of(key: UUID) -> bytes:
    """As it is stored on Kafka, where a UUID and its text are the same."""
    return str(key).encode()


def _checked(key: Key) -> bytes:
    raw = _text_of(key) if isinstance(key, UUID) else key
    if not isinstance(raw, bytes) or not raw:
        raise InvalidMessage(f"the key is {key!r}; use a UUID, or bytes that are not empty")
    if raw.startswith(RESERVED):
        raise InvalidMessage(f"the key {key!r} begins with {RESERVED!r}, which is not for handlers; choose another")
    return raw
