"""A topic's spec as Kafka keeps it."""

from collections.abc import Mapping
from typing import Final

from queuecore.errors import ConfigurationError
from queuecore.providers.base import FOR_EVER, MIN_SEGMENT_BYTES, Cleanup, TopicSpec
from queuecore.providers.kafka.settings import FRAMING_BYTES

# What a topic takes unless its settings say otherwise.
_KAFKAS_MAX_MESSAGE_BYTES: Final = 1_048_588


# Those that a spec is made of.
SETTINGS: Final = ("retention.ms", "retention.bytes", "segment.bytes", "cleanup.policy", "min.insync.replicas")


# Those that a topic may have besides. None of them is secret.
TOPIC_PROPERTIES: Final = (
    "compression.type",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "index.interval.bytes",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "preallocate",
    "remote.storage.enable",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
)


def to_settings(spec: TopicSpec) -> dict[str, str]:
    settings = {
        "retention.ms": str(spec.retention_ms),
        "retention.bytes": str(spec.retention_bytes),
        "segment.bytes": str(spec.segment_bytes),
        "cleanup.policy": spec.cleanup,
    }
    if spec.min_insync_replicas is not None:
        settings["min.insync.replicas"] = str(spec.min_insync_replicas)
    return settings | dict(spec.properties)


def changed_settings(kept: Mapping[str, str | None], wanted: TopicSpec) -> dict[str, str]:
    """What has to be set where Kafka keeps these settings. What means the same stays as it is written.

    A spec does not tell all: that nothing is ever removed may lie at the policy or at the limits.
    """
    return {
        key: value for key, value in to_settings(wanted).items() if _meaning(key, kept.get(key)) != _meaning(key, value)
    }


def check_copies(spec: TopicSpec) -> None:
    """ConfigurationError where fewer replicas are made than must have a message."""
    copies, required = spec.replication_factor or 1, spec.min_insync_replicas or 1
    if required > copies:
        raise ConfigurationError(
            f"topic {spec.name!r}: min_insync_replicas is {required}, and with a replication_factor of {copies} "
            "nothing could ever be written; use at most as many"
        )


def room_for(max_request_size: int) -> dict[str, str]:
    """So that a new topic takes what our producers may send, however large the brokers' own limit is."""
    return {"max.message.bytes": str(max(_KAFKAS_MAX_MESSAGE_BYTES, max_request_size + FRAMING_BYTES))}


def from_settings(name: str, partitions: int, replication_factor: int, settings: Mapping[str, str | None]) -> TopicSpec:
    """Any topic's, also one that somebody else made."""
    policies = _policies(settings["cleanup.policy"])
    kept_for_ever = not policies
    return TopicSpec(
        name,
        partitions,
        retention_ms=FOR_EVER if kept_for_ever else _number(settings, "retention.ms"),
        retention_bytes=FOR_EVER if kept_for_ever else _number(settings, "retention.bytes"),
        segment_bytes=_number(settings, "segment.bytes"),
        cleanup=_cleanup(policies),
        replication_factor=replication_factor,
        min_insync_replicas=_number(settings, "min.insync.replicas"),
    )


def _meaning(key: str, value: str | None) -> int | str | frozenset[str] | None:
    if key not in SETTINGS:
        return value
    return _policies(value) if key == "cleanup.policy" else _number({key: value}, key)


def _policies(value: str | None) -> frozenset[str]:
    """None of them: nothing is ever removed."""
    return frozenset(policy for part in (value or "").split(",") if (policy := part.strip()))


def _cleanup(policies: frozenset[str]) -> Cleanup:
    if "compact" not in policies:
        return "delete"
    return "compact,delete" if "delete" in policies else "compact"


def _number(settings: Mapping[str, str | None], key: str) -> int:
    """Every negative number is for ever to Kafka."""
    return max(MIN_SEGMENT_BYTES if key == "segment.bytes" else FOR_EVER, int(settings[key] or ""))
