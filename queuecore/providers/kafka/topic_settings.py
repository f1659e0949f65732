"""A topic's spec as Kafka keeps it."""

from collections.abc import Mapping
from typing import Final

from confluent_kafka.admin import ConfigEntry  # type: ignore[attr-defined]

from queuecore.providers.base import FOR_EVER, MIN_SEGMENT_BYTES, Cleanup, TopicSpec
from queuecore.providers.kafka.settings import FRAMING_BYTES

# What a topic takes unless its settings say otherwise.
_KAFKAS_MAX_MESSAGE_BYTES: Final = 1_048_588


def to_settings(spec: TopicSpec) -> dict[str, str]:
    return {
        "retention.ms": str(spec.retention_ms),
        "retention.bytes": str(spec.retention_bytes),
        "segment.bytes": str(spec.segment_bytes),
        "cleanup.policy": spec.cleanup,
    }


def room_for(max_request_size: int) -> dict[str, str]:
    """So that a new topic takes what our producers may send, however large the brokers' own limit is."""
    return {"max.message.bytes": str(max(_KAFKAS_MAX_MESSAGE_BYTES, max_request_size + FRAMING_BYTES))}


def from_settings(name: str, partitions: int, entries: Mapping[str, ConfigEntry]) -> TopicSpec:
    """Any topic's, also one that somebody else made."""
    policies = {policy for policy in _value(entries, "cleanup.policy").split(",") if policy}
    kept_for_ever = not policies
    return TopicSpec(
        name,
        partitions,
        retention_ms=FOR_EVER if kept_for_ever else _limit(entries, "retention.ms"),
        retention_bytes=FOR_EVER if kept_for_ever else _limit(entries, "retention.bytes"),
        segment_bytes=max(MIN_SEGMENT_BYTES, int(_value(entries, "segment.bytes"))),
        cleanup=_cleanup(policies),
    )


def _cleanup(policies: set[str]) -> Cleanup:
    if "compact" not in policies:
        return "delete"
    return "compact,delete" if "delete" in policies else "compact"


def _limit(entries: Mapping[str, ConfigEntry], key: str) -> int:
    """Every negative number is for ever to Kafka."""
    return max(FOR_EVER, int(_value(entries, key)))


def _value(entries: Mapping[str, ConfigEntry], key: str) -> str:
    return entries[key].value or ""
