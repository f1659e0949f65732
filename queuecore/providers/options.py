"""How producers and consumers behave: the same words mean the same on every provider."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self, get_args

from queuecore.errors import ConfigurationError

Acks = Literal["0", "1", "all"]
Compression = Literal["none", "lz4", "zstd", "gzip", "snappy"]
LogCompression = Literal["none", "lz4", "zstd"]
Isolation = Literal["read_committed", "read_uncommitted"]
OffsetReset = Literal["earliest", "latest"]
Strategy = Literal["range", "round_robin", "sticky"]
GroupProtocol = Literal["classic", "consumer"]
SaslMechanism = Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def check_choices(options: object, **literals: Any) -> None:
    """ConfigurationError, with the choices, where an attribute is none of its Literal's."""
    for name, literal in literals.items():
        if (value := getattr(options, name)) not in get_args(literal):
            raise ConfigurationError(f"{name} is {value!r}; choose one of {', '.join(filter(None, get_args(literal)))}")


def _at_least(options: object, **least: int) -> None:
    for name, limit in least.items():
        if (value := getattr(options, name)) < limit:
            raise ConfigurationError(f"{name} is {value}; {limit} is the least")


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """A message's size is that of its key, headers and data; what waits is measured by its data, roughly.

    acks              when a send is answered: `0` once buffered, `1` once the provider has it, `all` once it is safe
    retries           how often a failed write is tried again before its sends fail
    batch_size        bytes that end the lingering at once
    linger_ms         how long to wait for more to send together
    buffer_memory     bytes of data that may wait; then `send` does, for at most max_block_ms
    max_request_size  the largest message
    compression       of what is stored; `gzip` and `snappy` on Kafka alone
    """

    acks: Acks = "all"
    retries: int = 1
    batch_size: int = 16_384
    linger_ms: int = 0
    buffer_memory: int = 32 * 1024 * 1024
    max_request_size: int = 1024 * 1024
    max_block_ms: int = 60_000
    compression: Compression = "none"

    def __post_init__(self) -> None:
        check_choices(self, acks=Acks, compression=Compression)
        _at_least(self, retries=0, batch_size=1, linger_ms=0, max_request_size=1, max_block_ms=0)
        _at_least(self, buffer_memory=self.max_request_size)

    def patience_s(self, at_most_s: float | None) -> float:
        """How long one `send` waits for room, where its caller may have less time."""
        return self.max_block_ms / 1000 if at_most_s is None else min(at_most_s, self.max_block_ms / 1000)


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """
    max_poll_records           the most one poll gives
    max_partition_fetch_bytes  how much of one partition a poll gives; one larger record is given alone
    auto_offset_reset          where a group begins that has committed nothing
    session_timeout_ms         silence after which a member counts as dead
    isolation                  whether records of transactions that are not committed are given out
    strategy                   how a group divides its partitions
    """

    max_poll_records: int = 8_192
    max_partition_fetch_bytes: int = 16 * 1024 * 1024
    auto_offset_reset: OffsetReset = "earliest"
    session_timeout_ms: int = 10_000
    isolation: Isolation = "read_committed"
    strategy: Strategy = "sticky"

    def __post_init__(self) -> None:
        check_choices(self, auto_offset_reset=OffsetReset, isolation=Isolation, strategy=Strategy)
        _at_least(self, max_poll_records=1, max_partition_fetch_bytes=1, session_timeout_ms=1)

    def with_at_most(self, max_poll_records: int | None) -> Self:
        """The same, with no more in one poll than that. None changes nothing."""
        if max_poll_records is None or max_poll_records >= self.max_poll_records:
            return self
        return replace(self, max_poll_records=max_poll_records)


@dataclass(frozen=True, slots=True)
class KafkaSecurity:
    """How a cluster is reached that does not trust everybody. What is a file is given by its path.

    tls             whether connections are encrypted, and the brokers prove who they are
    ca              file of the certificates that vouch for the brokers'; by default the system's
    check_hostname  whether a broker's certificate must name the host it was reached at
    certificate     file of the client's own, where the brokers want one; with `key`, and `key_password` if it has one
    sasl_mechanism  how the client says who it is, as `username` with `password`; by default it does not
    """

    tls: bool = False
    ca: str = ""
    check_hostname: bool = True
    certificate: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    sasl_mechanism: SaslMechanism = ""
    username: str = ""
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        check_choices(self, sasl_mechanism=SaslMechanism)
        for name, other in _SECURITY_NEEDS:
            if getattr(self, name) and not getattr(self, other):
                raise ConfigurationError(f"{name} is set, which needs {other}; set that as well, or leave {name} out")


_SECURITY_NEEDS: Final = (
    ("sasl_mechanism", "username"),
    ("sasl_mechanism", "password"),
    ("username", "sasl_mechanism"),
    ("password", "sasl_mechanism"),
    ("ca", "tls"),
    ("certificate", "tls"),
    ("certificate", "key"),
    ("key", "certificate"),
    ("key_password", "key"),
)


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """What only Kafka has.

    replication_factor    replicas of topics that are created without saying how many
    min_insync_replicas   how many of them must have a message before `acks=all` is answered; likewise
    request_timeout_ms    how long the brokers may take to answer a question; then it is ProviderUnavailable
    delivery_timeout_ms   how long a message may wait until it is stored; then its send fails
    max_poll_interval_ms  how long a consumer may go without polling before its partitions are given to others
    group_protocol        how groups divide partitions: among the members (`classic`), or at the brokers (`consumer`)
    client_rack           where this client is: consumers read from a replica in the same rack
    properties            any other setting of librdkafka, for all clients, or for those that send or consume alone
    """

    replication_factor: int = 1
    min_insync_replicas: int = 1
    request_timeout_ms: int = 15_000
    delivery_timeout_ms: int = 120_000
    max_poll_interval_ms: int = 300_000
    group_protocol: GroupProtocol = "classic"
    client_id: str = "switchyard"
    client_rack: str = ""
    security: KafkaSecurity = KafkaSecurity()
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    producer_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    consumer_properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_choices(self, group_protocol=GroupProtocol)
        _at_least(self, replication_factor=1, min_insync_replicas=1, max_poll_interval_ms=1)
        _at_least(self, request_timeout_ms=1, delivery_timeout_ms=1)
        if self.min_insync_replicas > self.replication_factor:
            raise ConfigurationError(
                f"min_insync_replicas is {self.min_insync_replicas}, with {self.replication_factor} replicas nothing "
                "could ever be written; use at most as many as there are"
            )


DEFAULT_PRODUCING = ProducerOptions()
# A request to a broker costs more than a millisecond's wait.
DEFAULT_KAFKA_PRODUCING = ProducerOptions(linger_ms=1)
DEFAULT_CONSUMING = ConsumerOptions()
DEFAULT_KAFKA = KafkaOptions()
