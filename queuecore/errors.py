"""Everything queuecore raises.

QueueError
├── ConfigurationError      a setting is wrong; the process should not start
├── InvalidName             a queue or topic name no provider could hold
├── UnknownTopic            the topic does not exist at the provider
├── UnknownHandler          a queue names a handler nobody registered
├── PayloadTooLarge         one message is larger than the topic takes
├── NotOwner                the partition to commit belongs to another consumer of the group
├── OffsetOutOfRange        the offset asked for is no longer (or not yet) stored
├── CorruptLog              stored bytes do not match their checksum
└── ProviderUnavailable     the provider cannot be reached or cannot write (retryable)

`code` is stable and meant for machines; the message is for people and names cause and remedy.
"""

from typing import Any


class QueueError(Exception):
    """Root of the tree. Keyword arguments are kept in `fields` and survive pickling."""

    code = "queue_error"
    retryable = False

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.fields)


def _rebuild(kind: type[QueueError], message: str, fields: dict[str, Any]) -> QueueError:
    return kind(message, **fields)


class ConfigurationError(QueueError):
    code = "configuration_error"


class InvalidName(QueueError):
    code = "invalid_name"


class UnknownTopic(QueueError):
    code = "unknown_topic"


class UnknownHandler(QueueError):
    code = "unknown_handler"


class PayloadTooLarge(QueueError):
    code = "payload_too_large"


class NotOwner(QueueError):
    code = "not_owner"


class OffsetOutOfRange(QueueError):
    code = "offset_out_of_range"


class CorruptLog(QueueError):
    code = "corrupt_log"


class ProviderUnavailable(QueueError):
    code = "provider_unavailable"
    retryable = True
