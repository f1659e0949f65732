"""Dead letters that others wrote: their headers, read as the story of one of ours.

Spring          kafka_dlt-*, with binary numbers; kafka_original-* and kafka_exception-* on its retry topics
Kafka Connect   __connect.errors.*
Kafka Streams   __streams.errors.* (KIP-1034)
share groups    __dlq.errors.* (KIP-1191)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from queuecore.messages import Headers, number_header, text_header

# Their stack traces begin with what matters.
_MAX_TEXT_CHARACTERS: Final = 8_000
_NUMBERS: Final = frozenset({"partition", "offset", "timestamp_ms", "attempts"})
# A number that is longer is written as text.
_MAX_BINARY_BYTES: Final = 8


class Origin(StrEnum):
    """Whose letter it is, by its headers."""

    SWITCHYARD = "switchyard"
    SPRING = "spring"
    KAFKA_CONNECT = "kafka_connect"
    KAFKA_STREAMS = "kafka_streams"
    SHARE_GROUP = "share_group"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Family:
    """The headers of one origin.

    prefixes   what the names of all its headers begin with
    fields     field of the story -> its headers; the first that is there counts
    is_binary  whether numbers are big-endian bytes; else they are text
    """

    origin: Origin
    prefixes: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    is_binary: bool = False

    def wrote(self, headers: Headers) -> bool:
        return any(name.startswith(self.prefixes) for name in headers)

    def read(self, headers: Headers) -> dict[str, str | int]:
        """What the headers tell, by field of the story. Never raises, whatever their bytes are."""
        told: dict[str, str | int] = {}
        for field, names in self.fields.items():
            name = next((name for name in names if name in headers), names[0])
            told[field] = self._number(headers, name) if field in _NUMBERS else _text(headers, name)
        return told

    def _number(self, headers: Headers, name: str) -> int:
        raw = headers.get(name, b"")
        if self.is_binary and len(raw) <= _MAX_BINARY_BYTES:
            return int.from_bytes(raw, signed=True)
        return number_header(headers, name)


def _text(headers: Headers, name: str) -> str:
    return (text_header(headers, name) or "")[:_MAX_TEXT_CHARACTERS]


def _spring(name: str) -> tuple[str, ...]:
    return f"kafka_dlt-{name}", f"kafka_{name}"


# From the latest writer on: where a letter went through several of them, that one tells why it is where it is.
_FAMILIES: Final = (
    Family(
        Origin.SHARE_GROUP,
        ("__dlq.errors.",),
        {
            "topic": ("__dlq.errors.topic",),
            "partition": ("__dlq.errors.partition",),
            "offset": ("__dlq.errors.offset",),
            "group": ("__dlq.errors.group",),
            "attempts": ("__dlq.errors.delivery.count",),
            "exception_message": ("__dlq.errors.message",),
        },
    ),
    Family(
        Origin.KAFKA_STREAMS,
        ("__streams.errors.",),
        {
            "topic": ("__streams.errors.topic",),
            "partition": ("__streams.errors.partition",),
            "offset": ("__streams.errors.offset",),
            "exception_class": ("__streams.errors.exception",),
            "exception_message": ("__streams.errors.message",),
            "stack_trace": ("__streams.errors.stacktrace",),
        },
    ),
    Family(
        Origin.KAFKA_CONNECT,
        ("__connect.errors.",),
        {
            "topic": ("__connect.errors.topic",),
            "partition": ("__connect.errors.partition",),
            "offset": ("__connect.errors.offset",),
            "handler": ("__connect.errors.connector.name",),
            "service_id": ("__connect.errors.task.id",),
            "stage": ("__connect.errors.stage",),
            "exception_class": ("__connect.errors.exception.class.name",),
            "exception_message": ("__connect.errors.exception.message",),
            "stack_trace": ("__connect.errors.exception.stacktrace",),
        },
    ),
    Family(
        Origin.SPRING,
        ("kafka_dlt-", "kafka_original-", "kafka_exception-", "kafka_key-exception-", "retry_topic-"),
        {
            "topic": _spring("original-topic"),
            "partition": _spring("original-partition"),
            "offset": _spring("original-offset"),
            "timestamp_ms": (*_spring("original-timestamp"), "retry_topic-original-timestamp"),
            "group": _spring("original-consumer-group"),
            "attempts": ("retry_topic-attempts", "kafka_deliveryAttempt"),
            # What it was caused by: the exception itself only says that a listener failed.
            "exception_class": (
                *_spring("exception-cause-fqcn"),
                *_spring("exception-fqcn"),
                *_spring("key-exception-fqcn"),
            ),
            "exception_message": (*_spring("exception-message"), *_spring("key-exception-message")),
            "stack_trace": (*_spring("exception-stacktrace"), *_spring("key-exception-stacktrace")),
        },
        is_binary=True,
    ),
)


def family_of(headers: Headers) -> Family | None:
    """Whose headers these are; None: nobody's we know."""
    return next((family for family in _FAMILIES if family.wrote(headers)), None)
