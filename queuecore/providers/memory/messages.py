"""What a message must be like to be stored, and how much it counts."""

from collections.abc import Mapping
from uuid import UUID

from queuecore.errors import InvalidMessage, PayloadTooLarge
from queuecore.messages import NO_HEADERS, Headers, Key, QueueMessage

# A message without its name, and with headers of its own: key, data, headers.
Stored = tuple[Key, bytes, Headers]
NOTHING: Stored = (None, b"", NO_HEADERS)

_UUID_BYTES = 16


def stored(message: QueueMessage, limit: int) -> tuple[Stored, int]:
    """The message as it is stored, whatever its sender does with it later, and the bytes of its key, headers and
    data. InvalidMessage for one that no provider could encode, PayloadTooLarge above the limit."""
    key, data, headers = message
    if not isinstance(data, bytes):
        raise InvalidMessage(f"the data is {type(data).__name__}; send bytes")
    size = len(data) + _key_size(key)
    if headers:
        headers = dict(headers)
        size += _headers_size(headers)
    else:
        headers = NO_HEADERS
    if size > limit:
        raise PayloadTooLarge(
            f"the message has {size} bytes with key and headers; {limit} is the most", size=size, limit=limit
        )
    return (key, data, headers), size


def _key_size(key: Key) -> int:
    if key is None:
        return 0
    if isinstance(key, bytes):
        return len(key)
    if isinstance(key, UUID):
        return _UUID_BYTES
    raise InvalidMessage(f"the key is {type(key).__name__}; use a UUID, bytes or none")


def _headers_size(headers: Mapping[str, bytes]) -> int:
    size = 0
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, bytes):
            raise InvalidMessage(f"header {name!r} is not text with bytes; mend it")
        try:
            size += (len(name) if name.isascii() else len(name.encode())) + len(value)
        except UnicodeEncodeError as error:
            raise InvalidMessage(f"header {name!r} cannot be encoded: {error}; mend its name") from None
    return size
