"""The side store of letters: what is too large for a letter is kept in chunks beside its topic, and the letter says so.

The store of a letter's partition is the same partition of `<letters>.payloads`. It is created when it is first needed.
Chunks say which payload they are of; the letter says which payload it has, and from which offset on to look for it.
Where exactly the chunks are is not known before a transaction is committed, so the letter does not say that.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Final
from uuid import uuid4

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.deadletter.envelope import PREFIX
from queuecore.errors import OffsetOutOfRange, PayloadMissing, UnknownTopic
from queuecore.messages import Headers, QueueMessage, Record, number_header, text_header
from queuecore.providers.base import QueueAdmin, QueueReader
from queuecore.sending import Addressed
from queuecore.topics import ProviderPartition, payload_partition

# In a letter whose payload is stored apart.
PAYLOAD: Final = f"{PREFIX}payload"

# In each chunk.
CHUNK_PAYLOAD: Final = "__queue.payload.id"
CHUNK_INDEX: Final = "__queue.payload.index"
CHUNK_COUNT: Final = "__queue.payload.count"
CHUNK_DIGEST: Final = "__queue.payload.digest"

_READ_AT_ONCE: Final = 16
# Chunks are stored before their letter. That much later there are none of it, however far apart the clocks are.
_LATEST_AFTER_MS: Final = 600_000
# Kafka shows the parts of a transaction one after the other, once it is committed.
_SEEN_WITHIN_MS: Final = 10_000
_LOOK_EVERY_S: Final = 0.05


class Stored(StrEnum):
    """What is in the store: the message's data, or all of it where its key and headers are too large as well."""

    DATA = "data"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class PayloadReference:
    """What a letter says of its payload.

    payload      its id
    topic        the store, with the partition in it
    from_offset  no chunk is before this one
    chunks       how many there are
    size         bytes of all of them
    digest       SHA-256 of all of them
    stored       what they are of
    """

    payload: str
    topic: str
    partition: int
    from_offset: int
    chunks: int
    size: int
    digest: str
    stored: Stored

    def header(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @property
    def place(self) -> ProviderPartition:
        return ProviderPartition(self.topic, self.partition)


def is_whole(headers: Headers) -> bool:
    """Whether all of the message is in its letter."""
    return PAYLOAD not in headers


def reference_of(headers: Headers) -> PayloadReference | None:
    """What a letter says of its payload; None where it has it, or where nobody can read what it says."""
    try:
        told = json.loads(headers.get(PAYLOAD, b""))
        reference = PayloadReference(**{**told, "stored": Stored(told["stored"])})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    numbers = (reference.partition, reference.from_offset, reference.chunks, reference.size)
    return reference if all(type(number) is int and 0 <= number < 2**63 for number in numbers) else None


def store_end(admin: QueueAdmin, letters: ProviderPartition) -> int:
    """Where the store of this partition's letters ends. Creates it where it is not there."""
    place = payload_partition(letters).place
    try:
        return admin.end_offsets([place])[place]
    except UnknownTopic:
        letter_topic = admin.describe_topics([letters.topic])[letters.topic].spec
        store = replace(letter_topic, name=place.topic, cleanup="delete")
        admin.create_topics([store])
        # One that is there may have fewer partitions: the queue has grown.
        admin.alter_topics([store])
        return admin.end_offsets([place])[place]


def to_chunks(
    letters: ProviderPartition, body: bytes, chunk_bytes: int, from_offset: int, stored: Stored
) -> tuple[PayloadReference, tuple[Addressed, ...]]:
    """What a letter says of this payload, and the payload as messages for the store, each with so many bytes of it."""
    target = payload_partition(letters)
    parts = [body[start : start + chunk_bytes] for start in range(0, len(body), chunk_bytes)]
    digest = hashlib.sha256(body).hexdigest()
    reference = PayloadReference(str(uuid4()), *target.place, from_offset, len(parts), len(body), digest, stored)
    chunks = [
        Addressed(target, QueueMessage(None, part, _chunk_headers(reference, index)))
        for index, part in enumerate(parts)
    ]
    return reference, tuple(chunks)


def _chunk_headers(reference: PayloadReference, index: int) -> dict[str, bytes]:
    return {
        CHUNK_PAYLOAD: reference.payload.encode(),
        CHUNK_INDEX: b"%d" % index,
        CHUNK_COUNT: b"%d" % reference.chunks,
        CHUNK_DIGEST: reference.digest.encode(),
    }


def load_body(reader: QueueReader, letter: Record, clock: Clock = SYSTEM_CLOCK) -> tuple[bytes, Stored]:
    """What is stored apart from this letter, and what it is of. PayloadMissing where that is not there any more. Right
    after a transaction it may take a moment until all of it can be seen."""
    reference = reference_of(letter.headers)
    own = payload_partition(ProviderPartition(letter.topic, letter.partition)).place
    # A letter is anybody's bytes: it opens no topic but its own store.
    if reference is None or reference.place != own:
        raise _missing(letter, f"it does not name a payload in {own}")
    found: dict[int, bytes] = {}
    for chunk in _records(reader, reference, letter, clock):
        if text_header(chunk.headers, CHUNK_PAYLOAD) == reference.payload:
            found[number_header(chunk.headers, CHUNK_INDEX)] = chunk.data
            if len(found) == reference.chunks:
                break
    if len(found) < reference.chunks:
        raise _missing(letter, f"only {len(found)} of its {reference.chunks} chunks are in {own}")
    body = b"".join(found[index] for index in sorted(found))
    if hashlib.sha256(body).hexdigest() != reference.digest:
        raise _missing(letter, f"its chunks in {own} are not what was stored")
    return body, reference.stored


def _records(reader: QueueReader, reference: PayloadReference, letter: Record, clock: Clock) -> Iterator[Record]:
    """What is in the store from where the letter says to look, up to where no chunk of it can be."""
    offset = reference.from_offset
    wait_until_ms = min(letter.timestamp_ms, clock.now_ms()) + _SEEN_WITHIN_MS
    while True:
        try:
            records = reader.read(reference.place, offset, _READ_AT_ONCE)
        except UnknownTopic:
            return
        except OffsetOutOfRange as error:
            if error.fields["beginning"] <= offset:
                return
            # Retention was here: what cannot be seen is gone.
            offset, wait_until_ms = error.fields["beginning"], 0
            continue
        yield from records
        if records and records[-1].timestamp_ms <= letter.timestamp_ms + _LATEST_AFTER_MS:
            offset = records[-1].offset + 1
        elif not records and clock.now_ms() < wait_until_ms:
            clock.sleep(_LOOK_EVERY_S)
        else:
            return


def _missing(letter: Record, why: str) -> PayloadMissing:
    where = f"{letter.topic}[{letter.partition}]@{letter.offset}"
    return PayloadMissing(
        f"the payload of the letter {where} is not there: {why}. Retention may have removed it; its story says where "
        "the original was. Send that anew, or discard the letter"
    )
