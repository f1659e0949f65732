"""Stored messages as records.

Hundreds of thousands of them pass through here in a second, so what is done for each is done by the interpreter's own
loops (`map`, `zip`) over the library's methods. The library's messages are not kept: they cost the garbage collector
more than the records do.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Final, NamedTuple
from uuid import UUID, SafeUUID

from confluent_kafka import Message

from queuecore.messages import NO_HEADERS, TOMBSTONE, Headers, Key, Record, item
from queuecore.topics import ProviderPartition

_HEX: Final = b"0123456789abcdef"
_DASHES: Final = b"----"
_MOST_KNOWN_KEYS: Final = 10_000

_time_of = itemgetter(1)
# A UUID's own constructor checks and converts for longer than all the rest takes.
_set_int: Callable[[UUID, int], None] = UUID.__dict__["int"].__set__
_set_is_safe: Callable[[UUID, SafeUUID], None] = UUID.__dict__["is_safe"].__set__
# The library types as optional what a stored message always has.
_topic_of: Callable[[Message], str] = Message.topic  # type: ignore[assignment]
_partition_of: Callable[[Message], int] = Message.partition  # type: ignore[assignment]
_offset_of: Callable[[Message], int] = Message.offset  # type: ignore[assignment]
# All but a tombstone have data.
_data_of: Callable[[Message], bytes] = Message.value  # type: ignore[assignment]


class KafkaRecord(Record):
    """The tuple is (offset, timestamp_ms, data, 0, place, topic, partition, key, headers): the place is the source, and
    the same object for all records that came together."""

    __slots__ = ()

    topic: str = item(5)
    partition: int = item(6)
    key: Key = item(7)
    headers: Headers = item(8)


# Of those records, what their properties would give more slowly.
data_of: Callable[[Record], bytes] = itemgetter(2)
place_of: Callable[[Record], ProviderPartition] = itemgetter(4)


class Chunk(NamedTuple):
    """Messages that left the library together: as records in their order, the offsets behind the last of each
    partition, and the bytes of their data."""

    records: list[Record]
    ends: dict[ProviderPartition, int]
    size: int


def decode(messages: Sequence[Message]) -> Chunk:
    """There is at least one."""
    data, headers = list(map(_data_of, messages)), _headers_of(messages)
    if not all(data):
        for index in [index for index, one in enumerate(data) if one is None]:
            data[index], headers[index] = b"", {**headers[index], TOMBSTONE: b""}
    offsets, times = list(map(_offset_of, messages)), map(_time_of, map(Message.timestamp, messages))
    keys = map(_known_keys.__getitem__, map(Message.key, messages))
    topics, numbers = list(map(_topic_of, messages)), list(map(_partition_of, messages))
    if len(set(topics)) == len(set(numbers)) == 1:
        place = ProviderPartition(topics[0], numbers[0])
        places: Iterable[ProviderPartition] = repeat(place)
        ends = {place: offsets[-1] + 1}
    else:
        named = list(zip(topics, numbers, strict=True))
        known = {name: ProviderPartition(*name) for name in set(named)}
        places = map(known.__getitem__, named)
        ends = {known[name]: offset + 1 for name, offset in zip(named, offsets, strict=True)}
    columns = zip(offsets, times, data, repeat(0), places, topics, numbers, keys, headers)
    return Chunk(list(map(tuple.__new__, repeat(KafkaRecord), columns)), ends, sum(map(len, data)))


def to_records(messages: Sequence[Message]) -> list[Record]:
    return decode(messages).records if messages else []


def ends_of(records: Iterable[Record]) -> dict[ProviderPartition, int]:
    """The offset behind the last record of each partition."""
    return {place_of(record): record.offset + 1 for record in records}


def decode_key(raw: bytes | None) -> Key:
    """A UUID where the bytes are its text, exactly as we write it."""
    if raw is None or len(raw) != 36 or raw[8:24:5] != _DASHES or raw.translate(None, _HEX) != _DASHES:
        return raw
    key = object.__new__(UUID)
    _set_int(key, int(raw.translate(None, _DASHES), 16))
    _set_is_safe(key, SafeUUID.unknown)
    return key


class _KnownKeys(dict[bytes | None, Key]):
    """The keys of a busy partition come again and again."""

    def __missing__(self, raw: bytes | None) -> Key:
        if len(self) >= _MOST_KNOWN_KEYS:
            self.clear()
        self[raw] = key = decode_key(raw)
        return key


_known_keys = _KnownKeys()


def _headers_of(messages: Iterable[Message]) -> list[Headers]:
    """Of repeated headers the last counts; null and empty are the same."""
    found: list[Headers] = []
    for stored in map(Message.headers, messages):
        if not stored:
            found.append(NO_HEADERS)
            continue
        headers: dict[str, bytes] = {}
        for name, value in stored:  # type: ignore[str-unpack]
            headers[name] = value or b""  # type: ignore[assignment]
        found.append(headers)
    return found
