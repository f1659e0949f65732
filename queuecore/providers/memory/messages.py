"""What a message must be like to be stored, and how much it counts."""

from uuid import UUID

from queuecore.errors import InvalidMessage, PayloadTooLarge
from queuecore.messages import Key, QueueMessage

# A message without its name, and with headers of its own, which nobody changes: key, data, headers. The garbage
# collector does not go through dictionaries of plain values.
Stored = tuple[Key, bytes, dict[str, bytes]]
NOTHING: Stored = (None, b"", {})

_UUID_BYTES = 16
_BYTES = frozenset({bytes})
# The bytes of names that were seen together: messages of one kind have the same again and again.
_NAMES: dict[tuple[str, ...], int] = {}
_MOST_NAMES = 1_024


def stored(message: QueueMessage, limit: int) -> tuple[Stored, int]:
    """The message as it is stored, whatever its sender does with it later, and the bytes of its key, headers and
    data. InvalidMessage for one that no provider could encode, PayloadTooLarge above the limit."""
    key, data, headers = message
    if not isinstance(data, bytes):
        raise InvalidMessage(f"the data is {type(data).__name__}; send bytes")
    size = len(data) if key is None else len(data) + _key_size(key)
    own: dict[str, bytes] = {}
    if headers:
        # All at once, as others may change them meanwhile.
        own = dict(headers)
        size += _headers_size(own)
    if size > limit:
        raise PayloadTooLarge(
            f"the message has {size} bytes with key and headers; {limit} is the most", size=size, limit=limit
        )
    return (key, data, own), size


def _key_size(key: UUID | bytes) -> int:
    if isinstance(key, bytes):
        return len(key)
    if isinstance(key, UUID):
        return _UUID_BYTES
    raise InvalidMessage(f"the key is {type(key).__name__}; use a UUID, bytes or none")


def _headers_size(headers: dict[str, bytes]) -> int:
    values = headers.values()
    # As it is nearly always; whatever else may be right is looked at with more care.
    if _BYTES.issuperset(map(type, values)) and (names := _NAMES.get(tuple(headers))) is not None:
        return names + sum(map(len, values))
    size = sum(_header_size(name, value) for name, value in headers.items())
    if len(_NAMES) < _MOST_NAMES:
        _NAMES[tuple(headers)] = size - sum(map(len, values))
    return size


def _header_size(name: object, value: object) -> int:
    if not isinstance(name, str) or not isinstance(value, bytes):
        raise InvalidMessage(f"header {name!r} is not text with bytes; mend it")
    try:
        return len(name.encode()) + len(value)
    except UnicodeEncodeError as error:
        raise InvalidMessage(f"header {name!r} cannot be encoded: {error}; mend its name") from None
