"""Which of librdkafka's properties our own settings decide, and how. The settings reference is made from it.

What is decided here cannot be passed through as a property as well: two settings for one thing would contradict each
other.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mapped:
    """One of our settings.

    option      its name in the options of `queuecore`
    key         its name below `queue.kafka.`; empty where an installation cannot set it
    properties  what it decides at the library; nothing where it has no twin there
    how         by which rule, where the value is not just handed on
    """

    option: str
    key: str
    properties: tuple[str, ...] = ()
    how: str = ""

    def __str__(self) -> str:
        return f"{self.option} (queue.kafka.{self.key})" if self.key else self.option


def _as_it_is(option: str, key: str) -> Mapped:
    return Mapped(option, key, (key,))


_REACHING: Final = (
    Mapped("servers", "bootstrap.servers", ("bootstrap.servers",)),
    _as_it_is("KafkaOptions.client_id", "client.id"),
    _as_it_is("KafkaOptions.client_rack", "client.rack"),
    Mapped(
        "KafkaOptions.request_timeout_ms",
        "request.timeout.ms",
        ("socket.timeout.ms",),
        "It bounds every request. The library's `request.timeout.ms` is how long a leader waits for its replicas.",
    ),
    Mapped(
        "KafkaSecurity.tls",
        "ssl.enabled",
        ("security.protocol",),
        "`ssl` or `plaintext`; with a SASL mechanism `sasl_ssl` or `sasl_plaintext`.",
    ),
    _as_it_is("KafkaSecurity.ca", "ssl.ca.location"),
    _as_it_is("KafkaSecurity.certificate", "ssl.certificate.location"),
    _as_it_is("KafkaSecurity.key", "ssl.key.location"),
    _as_it_is("KafkaSecurity.key_password", "ssl.key.password"),
    Mapped(
        "KafkaSecurity.check_hostname",
        "ssl.endpoint.identification.algorithm",
        ("ssl.endpoint.identification.algorithm",),
        "`https` where hostnames are checked, else `none`.",
    ),
    _as_it_is("KafkaSecurity.sasl_mechanism", "sasl.mechanism"),
    _as_it_is("KafkaSecurity.username", "sasl.username"),
    _as_it_is("KafkaSecurity.password", "sasl.password"),
)

_CREATING: Final = (
    Mapped("KafkaOptions.replication_factor", "replication_factor", (), "Given to the brokers with each new topic."),
    Mapped("KafkaOptions.min_insync_replicas", "min.insync.replicas", (), "Likewise, as the topic's own setting."),
)

_PRODUCING: Final = (
    Mapped(
        "ProducerOptions.acks",
        "acks",
        ("acks", "enable.idempotence"),
        "With `all` and retries the producer is idempotent, so that a retry stores nothing twice.",
    ),
    Mapped(
        "ProducerOptions.retries",
        "retries",
        ("retries", "max.in.flight.requests.per.connection"),
        "Where a retry could change the order, only one request is under way.",
    ),
    Mapped(
        "ProducerOptions.batch_size", "batch.size", ("batch.size",), "At most `max.request.size`, which a topic takes."
    ),
    _as_it_is("ProducerOptions.linger_ms", "linger.ms"),
    Mapped(
        "ProducerOptions.buffer_memory",
        "buffer.memory",
        ("queue.buffering.max.kbytes", "queue.buffering.max.messages"),
        "In kilobytes. The library's limit by number is off, so that bytes alone count.",
    ),
    Mapped("ProducerOptions.max_block_ms", "", (), "The library never waits for room in its buffer; `send` does."),
    Mapped(
        "ProducerOptions.max_request_size",
        "max.request.size",
        ("message.max.bytes",),
        "64 KiB more, for the library counts its framing; the size itself is checked in `send`. New topics take as "
        "much (`max.message.bytes`).",
    ),
    _as_it_is("ProducerOptions.compression", "compression.type"),
    Mapped(
        "KafkaOptions.delivery_timeout_ms",
        "delivery.timeout.ms",
        ("delivery.timeout.ms",),
        "With `linger.ms` added, which is no part of the delivery.",
    ),
)

_CONSUMING: Final = (
    Mapped(
        "ConsumerOptions.max_poll_records",
        "max.poll.records",
        (),
        "The library has no such limit: it fetches ahead, and a poll takes no more than this of what it has.",
    ),
    Mapped(
        "ConsumerOptions.max_partition_fetch_bytes",
        "max.partition.fetch.bytes",
        ("max.partition.fetch.bytes", "queued.max.messages.kbytes"),
        "For the library it is the size of one fetch; the most that a poll gives is counted here. Twice as much is "
        "fetched ahead.",
    ),
    _as_it_is("ConsumerOptions.auto_offset_reset", "auto.offset.reset"),
    Mapped(
        "ConsumerOptions.session_timeout_ms",
        "session.timeout.ms",
        ("session.timeout.ms", "heartbeat.interval.ms"),
        "A heartbeat every second, or three in a shorter session. In groups of the protocol `consumer` the brokers' "
        "`group.consumer.session.timeout.ms` counts instead.",
    ),
    Mapped(
        "KafkaOptions.max_poll_interval_ms",
        "max.poll.interval.ms",
        ("max.poll.interval.ms",),
        "At least `session.timeout.ms`.",
    ),
    Mapped(
        "KafkaOptions.group_protocol",
        "group.protocol",
        ("group.protocol",),
        "`classic` for consumers of one partition, and for others with a member id, whatever is set.",
    ),
    Mapped(
        "ConsumerOptions.strategy",
        "",
        ("partition.assignment.strategy", "group.remote.assignor"),
        "`range`, `roundrobin`, `cooperative-sticky`; the brokers' `range` and `uniform` with the protocol `consumer`.",
    ),
    Mapped("ConsumerOptions.isolation", "", ("isolation.level",)),
)

MAPPED: Final = _REACHING + _CREATING + _PRODUCING + _CONSUMING
BY_PROPERTY: Final = {name: one for one in MAPPED for name in one.properties}

# Decided by the provider itself, for what it promises depends on them.
OWN: Final = frozenset(
    {
        *("group.id", "group.instance.id", "group.protocol.type", "enable.auto.commit", "auto.commit.enable"),
        *("auto.commit.interval.ms", "enable.auto.offset.store", "offset.store.method", "enable.partition.eof"),
        *("transactional.id", "enable.gapless.guarantee", "queuing.strategy", "partitioner"),
        *("delivery.report.only.error", "allow.auto.create.topics", "topic.metadata.propagation.max.ms"),
        *("topic.metadata.refresh.interval.ms", "fetch.queue.backoff.ms", "log.queue", "enabled_events", "logger"),
        *("error_cb", "throttle_cb", "stats_cb", "oauth_cb", "on_delivery", "on_commit", "default.topic.config"),
    }
)

# Second names that the library has for some of them.
_ALIASES: Final = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "request.required.acks": "acks",
    "message.send.max.retries": "retries",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "queue.buffering.max.ms": "linger.ms",
    "compression.codec": "compression.type",
    "message.timeout.ms": "delivery.timeout.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
}


def decided_by(name: str) -> Mapped | None:
    """The setting of ours that decides a property of the library."""
    return BY_PROPERTY.get(_ALIASES.get(name, name))
