"""What a message must be like to be stored, and how much it counts."""

from uuid import UUID

from queuecore.errors import InvalidMessage, PayloadTooLarge
from queuecore.messages import Key, QueueMessage

# Headers as they are stored: tuples of plain values, through which the garbage collector need not go.
Pairs = tuple[tuple[str, bytes], ...]
# A message without its name, and with headers of its own: key, data, headers.
Stored = tuple[Key, bytes, Pairs]
NOTHING: Stored = (None, b"", ())

_UUID_BYTES = 16


def stored(message: QueueMessage, limit: int) -> tuple[Stored, int]:
    """The message as it is stored, whatever its sender does with it later, and the bytes of its key, headers and
    data. InvalidMessage for one that no provider could encode, PayloadTooLarge above the limit."""
    key, data, headers = message
    if not isinstance(data, bytes):
        raise InvalidMessage(f"the data is {type(data).__name__}; send bytes")
    size = len(data) + _key_size(key)
    pairs: Pairs = ()
    if headers:
        # All at once, as others may change them meanwhile.
        pairs = tuple(headers.items())
        size += _headers_size(pairs)
    if size > limit:
        raise PayloadTooLarge(
            f"the message has {size} bytes with key and headers; {limit} is the most", size=size, limit=limit
        )
    return (key, data, pairs), size


def _key_size(key: Key) -> int:
    if key is None:
        return 0
    if isinstance(key, bytes):
        return len(key)
    if isinstance(key, UUID):
        return _UUID_BYTES
    raise InvalidMessage(f"the key is {type(key).__name__}; use a UUID, bytes or none")


def _headers_size(pairs: Pairs) -> int:
    size = 0
    for name, value in pairs:
        # As it is nearly always; whatever else may be right is looked at with more care.
        if type(name) is str and type(value) is bytes and name.isascii():
            size += len(name) + len(value)
        else:
            size += _header_size(name, value)
    return size


def _header_size(name: object, value: object) -> int:
    if not isinstance(name, str) or not isinstance(value, bytes):
        raise InvalidMessage(f"header {name!r} is not text with bytes; mend it")
    try:
        return len(name.encode()) + len(value)
    except UnicodeEncodeError as error:
        raise InvalidMessage(f"header {name!r} cannot be encoded: {error}; mend its name") from None
