"""Which partition an entity belongs to: bit-for-bit what ThingsBoard computes.

A UUID is hashed as two little-endian longs, bytes as they are, a string as UTF-8. The digest's first
four bytes, read as a little-endian signed integer, give `abs(hash) % partitions`. `fnv1a` is ours: 32-bit,
unsigned, over the UUID's big-endian bytes.
"""

import hashlib
import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

import mmh3

from queuecore.errors import ConfigurationError

Entity = UUID | bytes | str

_FIRST_INT = struct.Struct("<i")
_LOW_LONG: Final = 2**64 - 1

_two_longs = struct.Struct("<QQ").pack
_digest_as_longs = mmh3.mmh3_x64_128_utupledigest


def _to_bytes(entity: Entity) -> bytes:
    if isinstance(entity, UUID):
        number = entity.int
        return _two_longs(number >> 64, number & _LOW_LONG)
    return entity.encode() if isinstance(entity, str) else entity


def murmur3_128(entity: Entity) -> int:
    # Runs for every message that is sent: the usual case of `_to_bytes` is spelt out, without its call.
    if type(entity) is UUID:
        number = entity.int
        raw = _two_longs(number >> 64, number & _LOW_LONG)
    else:
        raw = _to_bytes(entity)
    first = _digest_as_longs(raw)[0] & 0xFFFFFFFF
    return first if first < 0x80000000 else first - 0x100000000


def murmur3_32(entity: Entity) -> int:
    return mmh3.hash(_to_bytes(entity), 0, signed=True)


def sha256(entity: Entity) -> int:
    value: int = _FIRST_INT.unpack_from(hashlib.sha256(_to_bytes(entity)).digest())[0]
    return value


def fnv1a(entity: Entity) -> int:
    raw = entity.bytes if isinstance(entity, UUID) else _to_bytes(entity)
    value = 0x811C9DC5
    for byte in raw:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


HashFunction = Callable[[Entity], int]
HASH_FUNCTIONS: Final[dict[str, HashFunction]] = {
    "murmur3_128": murmur3_128,
    "murmur3_32": murmur3_32,
    "sha256": sha256,
    "fnv1a": fnv1a,
}
DEFAULT_HASH: Final = "murmur3_128"


def hash_function(name: str) -> HashFunction:
    """The function of that name; ConfigurationError lists the names there are."""
    try:
        return HASH_FUNCTIONS[name]
    except KeyError:
        known = ", ".join(HASH_FUNCTIONS)
        raise ConfigurationError(f"there is no hash function {name!r}; choose one of {known}") from None


def partition_of(entity: Entity, partitions: int, function: HashFunction = murmur3_128) -> int:
    """The partition, 0..partitions-1, that all messages of this entity go to. ConfigurationError without any."""
    if partitions < 1:
        raise ConfigurationError(f"there are {partitions} partitions; an entity needs at least 1 to go to")
    return abs(function(entity)) % partitions
