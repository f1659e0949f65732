"""Our options in the library's words. `mapping` says which of them decides what, and why."""

from typing import Final

from queuecore.errors import ConfigurationError
from queuecore.providers.kafka.connection import Setting
from queuecore.providers.options import ConsumerOptions, GroupProtocol, KafkaOptions, ProducerOptions, Strategy

# What the library's limit counts beyond key, headers and data.
FRAMING_BYTES: Final = 64 * 1024
# Least and most the library takes.
_MESSAGE_BYTES: Final = (1_000, 1_000_000_000)
_QUEUE_KBYTES: Final = (1, 2_097_151)
# A member hears of a rebalance with its next heartbeat.
_HEARTBEAT_MS: Final = 1_000
# How soon a consumer of a whole topic notices that the topic has grown.
_TOPIC_GROWTH_MS: Final = 5_000

ASSIGNORS: Final[dict[Strategy, str]] = {
    "range": "range",
    "round_robin": "roundrobin",
    "sticky": "cooperative-sticky",
}
# Where the brokers divide: what is sticky there is their `uniform`.
REMOTE_ASSIGNORS: Final[dict[Strategy, str]] = {"range": "range", "sticky": "uniform"}


def producer_settings(options: ProducerOptions, kafka: KafkaOptions) -> dict[str, Setting]:
    """Order survives a retry: with `acks=all` the brokers number what they get (idempotence), otherwise only one
    request is under way.
    """
    idempotent = options.acks == "all" and options.retries > 0
    return {
        "acks": options.acks,
        "retries": options.retries,
        "enable.idempotence": idempotent,
        "max.in.flight.requests.per.connection": 5 if idempotent or not options.retries else 1,
        # A batch that holds several messages stays below what a topic takes as one.
        "batch.size": min(options.batch_size, options.max_request_size),
        "linger.ms": options.linger_ms,
        "queue.buffering.max.kbytes": _within(options.buffer_memory // 1024, _QUEUE_KBYTES),
        "queue.buffering.max.messages": 0,  # bytes alone count
        "message.max.bytes": _within(options.max_request_size + FRAMING_BYTES, _MESSAGE_BYTES),
        "compression.type": options.compression,
        "delivery.timeout.ms": kafka.delivery_timeout_ms + options.linger_ms,
        "allow.auto.create.topics": False,
        # How long a topic the brokers do not know may still turn up before its messages fail.
        "topic.metadata.propagation.max.ms": 3_000,
        **kafka.producer_properties,
    }


def protocol_of(kafka: KafkaOptions, member_id: str | None) -> GroupProtocol:
    """A member with an id keeps to the classic protocol: in the other one the brokers refuse the newcomer, not the one
    whose place it takes."""
    return "classic" if member_id is not None else kafka.group_protocol


def consumer_settings(
    options: ConsumerOptions, kafka: KafkaOptions, *, grows: bool, member_id: str | None = None
) -> dict[str, Setting]:
    """`grows`: whether partitions a topic gets later are wanted too."""
    if protocol_of(kafka, member_id) == "classic":
        settings = _classic_settings(options, kafka, member_id)
    else:
        settings = _protocol_settings(options, kafka)
    settings |= {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": options.auto_offset_reset,
        "isolation.level": options.isolation,
        "max.partition.fetch.bytes": options.max_partition_fetch_bytes,
        # Fetched ahead of the polls; what runs low is fetched again at once, not after the library's second.
        "queued.max.messages.kbytes": _within(2 * options.max_partition_fetch_bytes // 1024, _QUEUE_KBYTES),
        "fetch.queue.backoff.ms": 10,
        **kafka.consumer_properties,
    }
    return settings | {"topic.metadata.refresh.interval.ms": _TOPIC_GROWTH_MS} if grows else settings


def _classic_settings(options: ConsumerOptions, kafka: KafkaOptions, member_id: str | None) -> dict[str, Setting]:
    session_ms = options.session_timeout_ms
    settings: dict[str, Setting] = {
        "group.protocol": "classic",
        "partition.assignment.strategy": ASSIGNORS[options.strategy],
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": max(1, min(_HEARTBEAT_MS, session_ms // 3)),
        "max.poll.interval.ms": max(kafka.max_poll_interval_ms, session_ms),
    }
    return settings if member_id is None else settings | {"group.instance.id": member_id}


def _protocol_settings(options: ConsumerOptions, kafka: KafkaOptions) -> dict[str, Setting]:
    """Sessions and heartbeats are the brokers' to set."""
    if (assignor := REMOTE_ASSIGNORS.get(options.strategy)) is None:
        raise ConfigurationError(
            f"strategy is {options.strategy!r}, which brokers cannot follow; with group_protocol 'consumer' choose one "
            f"of {', '.join(REMOTE_ASSIGNORS)}"
        )
    return {
        "group.protocol": "consumer",
        "group.remote.assignor": assignor,
        "max.poll.interval.ms": kafka.max_poll_interval_ms,
    }


def _within(value: int, bounds: tuple[int, int]) -> int:
    least, most = bounds
    return min(max(value, least), most)
