"""What a notification is: its header says so, and who listens for that kind hears it."""

from typing import Final

from queuecore.messages import NO_HEADERS, Headers, Key, QueueMessage, Record, text_header

NOTIFICATION: Final = "notification"


def notification(kind: str, data: bytes = b"", key: Key = None, headers: Headers = NO_HEADERS) -> QueueMessage:
    """A message that says what it is."""
    return QueueMessage(key, data, {**headers, NOTIFICATION: kind.encode()})


def kind_of(record: Record) -> str:
    """Empty where the message does not say: then only those hear it who listen to everything."""
    return text_header(record.headers, NOTIFICATION) or ""
