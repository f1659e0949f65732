"""Letters that fit: a letter is larger than its message, which may have been as large as its topic takes.

What does not fit goes, in this order: the stack trace and most of the error's text, which are cut; then the data, and
then the key and the headers as well, which are put into the side store. Nothing of the message is lost.
"""

from collections.abc import Sequence
from typing import Final

from queuecore.deadletter.envelope import PREFIX, original_headers
from queuecore.deadletter.packing import pack_message
from queuecore.deadletter.payloads import PAYLOAD, Stored, reference_of, store_end, to_chunks
from queuecore.errors import PayloadTooLarge
from queuecore.messages import REPLAY_PREFIX, TENANT_ID, Headers, Key, QueueMessage, RecordMetadata
from queuecore.providers.base import QueueAdmin, QueueProducer
from queuecore.sending import Addressed, send_and_wait
from queuecore.topics import TopicPartitionInfo

_STACK_TRACE: Final = f"{PREFIX}stack.trace"
_MESSAGE: Final = f"{PREFIX}exception.message"
_SHORT_MESSAGE_BYTES: Final = 200

# A chunk's headers, and what a provider adds.
_CHUNK_FRAMING_BYTES: Final = 512
_LEAST_CHUNK_BYTES: Final = 256
# What a letter is found by stays in it, unless that is what makes it too large.
_SHORT_BYTES: Final = 256


def fit_letter(
    outgoing: Sequence[Addressed], refusal: PayloadTooLarge, admin: QueueAdmin
) -> tuple[Addressed, ...] | None:
    """What to send instead of a letter that is too large: chunks for the side store, if any, and last the letter. If
    that is refused as well, ask again with it. None where nothing helps.

    In a transaction all may be sent at once. Else the chunks have to be acknowledged before the letter is sent, so that
    no letter is without its payload. The side store is created where it is not there.
    """
    *chunks, (target, letter) = outgoing
    if (reference := reference_of(letter.headers)) is None:
        if (shorter := _shortened(letter)) is not None:
            return (Addressed(target, shorter),)
        return _put_apart(target, letter, _chunk_bytes(letter, refusal), admin)
    body = b"".join(chunk.message.data for chunk in chunks)
    largest = max((len(chunk.message.data) for chunk in chunks), default=0)
    if largest > _size(letter):
        return _divide(target, letter, body, reference.stored, largest // 2, admin)
    # Without its chunks, the payload is in the store already, and must stay what the letter refers to.
    if reference.stored is Stored.MESSAGE or not chunks:
        return None
    return _put_all_apart(target, letter._replace(data=body), _chunk_bytes(letter, refusal), admin)


def send_letter(
    producer: QueueProducer, admin: QueueAdmin, target: TopicPartitionInfo, letter: QueueMessage, timeout_s: float
) -> RecordMetadata:
    """Store a letter, with its payload apart where it is too large, and return where it is. Raises as `send_and_wait`
    does."""
    outgoing: tuple[Addressed, ...] = (Addressed(target, letter),)
    while True:
        try:
            return [send_and_wait(producer, *addressed, timeout_s) for addressed in outgoing][-1]
        except PayloadTooLarge as refusal:
            fitting = fit_letter(outgoing, refusal, admin)
            if fitting is None:
                raise
            outgoing = fitting


def _shortened(letter: QueueMessage) -> QueueMessage | None:
    """The letter with little text. None where it has no more than that."""
    headers = letter.headers
    if not headers.get(_STACK_TRACE):
        return None
    cut = headers.get(_MESSAGE, b"")[:_SHORT_MESSAGE_BYTES].decode(errors="ignore")
    return letter._replace(headers={**headers, _STACK_TRACE: b"", _MESSAGE: cut.encode()})


def _put_apart(
    target: TopicPartitionInfo, letter: QueueMessage, chunk_bytes: int, admin: QueueAdmin
) -> tuple[Addressed, ...] | None:
    if not letter.data:
        return _put_all_apart(target, letter, chunk_bytes, admin)
    return _divide(target, letter._replace(data=b""), letter.data, Stored.DATA, chunk_bytes, admin)


def _put_all_apart(
    target: TopicPartitionInfo, letter: QueueMessage, chunk_bytes: int, admin: QueueAdmin
) -> tuple[Addressed, ...] | None:
    message = letter._replace(headers=original_headers(letter.headers))
    bare = QueueMessage(_short_key(letter.key), b"", _short_headers(letter.headers))
    return _divide(target, bare, pack_message(message), Stored.MESSAGE, chunk_bytes, admin)


def _divide(
    target: TopicPartitionInfo, letter: QueueMessage, body: bytes, stored: Stored, chunk_bytes: int, admin: QueueAdmin
) -> tuple[Addressed, ...] | None:
    """The body in chunks, and the letter that refers to them."""
    if chunk_bytes < _LEAST_CHUNK_BYTES:
        return None
    from_offset = store_end(admin, target.place)
    reference, chunks = to_chunks(target.place, body, chunk_bytes, from_offset, stored)
    return *chunks, Addressed(target, letter._replace(headers={**letter.headers, PAYLOAD: reference.header()}))


def _chunk_bytes(letter: QueueMessage, refusal: PayloadTooLarge) -> int:
    """As large as the topic takes, where the refusal says that; else half of what it does not take."""
    limit: int = refusal.fields.get("limit", 0)
    return max(limit - _CHUNK_FRAMING_BYTES, limit // 2) or _size(letter) // 2


def _size(message: QueueMessage) -> int:
    headers = sum(len(name) + len(value) for name, value in message.headers.items())
    return len(message.data) + headers + (len(message.key) if isinstance(message.key, bytes) else 0)


def _short_key(key: Key) -> Key:
    return None if isinstance(key, bytes) and len(key) > _SHORT_BYTES else key


def _short_headers(headers: Headers) -> dict[str, bytes]:
    """The story, and what a letter is found by."""
    return {
        name: value
        for name, value in headers.items()
        if name.startswith(PREFIX)
        or (len(value) <= _SHORT_BYTES and (name == TENANT_ID or name.startswith(REPLAY_PREFIX)))
    }
