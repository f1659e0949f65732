"""Our options in the library's words."""

from typing import Final

from queuecore.providers.kafka.connection import Setting
from queuecore.providers.options import ConsumerOptions, KafkaOptions, ProducerOptions, Strategy

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
    }


def consumer_settings(options: ConsumerOptions, kafka: KafkaOptions, *, grows: bool) -> dict[str, Setting]:
    """`grows`: whether partitions a topic gets later are wanted too."""
    session_ms = options.session_timeout_ms
    settings: dict[str, Setting] = {
        "group.protocol": "classic",
        "partition.assignment.strategy": ASSIGNORS[options.strategy],
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": options.auto_offset_reset,
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": max(1, min(_HEARTBEAT_MS, session_ms // 3)),
        "max.poll.interval.ms": max(kafka.max_poll_interval_ms, session_ms),
        "isolation.level": options.isolation,
        "max.partition.fetch.bytes": options.max_partition_fetch_bytes,
        # Fetched ahead of the polls; what runs low is fetched again at once, not after the library's second.
        "queued.max.messages.kbytes": _within(2 * options.max_partition_fetch_bytes // 1024, _QUEUE_KBYTES),
        "fetch.queue.backoff.ms": 10,
    }
    return settings | {"topic.metadata.refresh.interval.ms": _TOPIC_GROWTH_MS} if grows else settings


def _within(value: int, bounds: tuple[int, int]) -> int:
    least, most = bounds
    return min(max(value, least), most)
