"""Letters that fit: a letter is larger than its message, which may have been as large as its topic takes.

What is left out goes in this order: the stack trace and most of the error's text; the data; then the key and the
headers as well. The story stays, so that a person can find the original where it still is.
"""

from typing import Final

from queuecore.deadletter.envelope import PREFIX, original_headers
from queuecore.errors import PayloadTooLarge
from queuecore.messages import Headers, QueueMessage, RecordMetadata
from queuecore.providers.base import QueueProducer
from queuecore.sending import send_and_wait
from queuecore.topics import TopicPartitionInfo

# In a letter without its message's data: how many bytes those were.
DATA_LEFT_OUT: Final = f"{PREFIX}data.left.out"

_STACK_TRACE: Final = f"{PREFIX}stack.trace"
_MESSAGE: Final = f"{PREFIX}exception.message"
_SHORT_MESSAGE_BYTES: Final = 200


def is_without_data(headers: Headers) -> bool:
    """Whether this letter's data had to be left out."""
    return DATA_LEFT_OUT in headers


def lighten(letter: QueueMessage) -> QueueMessage | None:
    """The letter with less in it. None where nothing is left but the story."""
    headers = dict(letter.headers)
    if headers.get(_STACK_TRACE):
        cut = headers.get(_MESSAGE, b"")[:_SHORT_MESSAGE_BYTES].decode(errors="ignore")
        return letter._replace(headers={**headers, _STACK_TRACE: b"", _MESSAGE: cut.encode()})
    if letter.data:
        return letter._replace(data=b"", headers={**headers, DATA_LEFT_OUT: str(len(letter.data)).encode()})
    before = original_headers(headers)
    if letter.key is None and not before:
        return None
    story = {name: value for name, value in headers.items() if name not in before}
    return QueueMessage(None, b"", {DATA_LEFT_OUT: b"0", **story})


def send_letter(
    producer: QueueProducer, target: TopicPartitionInfo, letter: QueueMessage, timeout_s: float
) -> RecordMetadata:
    """Store a letter, with less in it where it is too large, and return where it is. Raises as `send_and_wait` does."""
    while True:
        try:
            return send_and_wait(producer, target, letter, timeout_s)
        except PayloadTooLarge:
            if (lighter := lighten(letter)) is None:
                raise
            letter = lighter
