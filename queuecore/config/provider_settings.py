"""What the `queue:` tree says of each provider, under its name."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from queuecore.config import setting
from queuecore.providers.options import Acks, Compression, GroupProtocol, LogCompression, OffsetReset, SaslMechanism

HostnameCheck = Literal["https", "none"]
Properties = tuple[tuple[str, str], ...]


def _properties(raw: str) -> Properties:
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in raw.split(";"))):
        name, colon, value = (part.strip() for part in entry.partition(":"))
        if not (name and colon):
            raise ValueError("has an entry without a name and a colon; write name:value;name2:value2")
        if name in found:
            raise ValueError(f"names {name} twice")
        found[name] = value
    return tuple(found.items())


# Properties for Kafka's client: secret, for some of them are passwords.
_PASSED_ON: Final[dict[str, Any]] = {
    "secret": True,
    "parse": _properties,
    "kind": "name:value;name2:value2",
    "is_mapping": True,
}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How producers and consumers of one provider behave."""

    batch_size: int = setting(16_384, "Bytes that end the lingering at once.", key="batch.size", minimum=1)
    linger_ms: int = setting(1, "Milliseconds to wait for more to send together.", key="linger.ms", minimum=0)
    buffer_memory: int = setting(33_554_432, "Bytes that may wait to be sent.", key="buffer.memory", minimum=1)
    max_request_size: int = setting(1_048_576, "Bytes of the largest message.", key="max.request.size", minimum=1)
    auto_offset_reset: OffsetReset = setting("earliest", "Where a new group begins.", key="auto.offset.reset")
    session_timeout_ms: int = setting(
        10_000, "Milliseconds of silence after which a consumer counts as dead.", key="session.timeout.ms", minimum=1
    )
    max_poll_records: int = setting(8_192, "Records one poll gives at most.", key="max.poll.records", minimum=1)
    max_partition_fetch_bytes: int = setting(
        16_777_216, "Bytes of one partition a poll gives at most.", key="max.partition.fetch.bytes", minimum=1
    )


@dataclass(frozen=True, slots=True)
class InMemorySettings(ClientSettings):
    pass


@dataclass(frozen=True, slots=True)
class StoredSettings(ClientSettings):
    """What matters only where messages are written down."""

    acks: Acks = setting("all", "When a send is answered: buffered (`0`), handed over (`1`), or safe (`all`).")
    retries: int = setting(1, "How often a failed write is tried again.", minimum=0)
    compression_type: Compression = setting("none", "How stored batches are compressed.", key="compression.type")


@dataclass(frozen=True, slots=True)
class LogSettings(StoredSettings):
    compression_type: LogCompression = setting("none", "How stored batches are compressed.", key="compression.type")


@dataclass(frozen=True, slots=True)
class KafkaSettings(StoredSettings):
    bootstrap_servers: str = setting(
        "localhost:9092", "Kafka brokers, as `host:port,host:port`.", key="bootstrap.servers"
    )
    client_id: str = setting("switchyard", "How this client is called in the brokers' logs.", key="client.id")
    client_rack: str = setting(
        "", "Where this client is; it reads from a replica in the same rack, where there is one.", key="client.rack"
    )
    ssl_enabled: bool = setting(False, "Whether Kafka is reached over TLS.", key="ssl.enabled")
    ssl_ca_location: str = setting(
        "", "File of the certificates that vouch for the brokers'. Empty: the system's.", key="ssl.ca.location"
    )
    ssl_certificate_location: str = setting(
        "", "File of the client's certificate, where the brokers want one.", key="ssl.certificate.location"
    )
    ssl_key_location: str = setting("", "File of the key of that certificate.", key="ssl.key.location")
    ssl_key_password: str = setting("", "Password of that key, if it has one.", key="ssl.key.password", secret=True)
    ssl_endpoint_identification_algorithm: HostnameCheck = setting(
        "https",
        "Whether a broker's certificate must name the host it is reached at (`https`).",
        key="ssl.endpoint.identification.algorithm",
    )
    sasl_mechanism: SaslMechanism = setting(
        "", "How the client says who it is. Empty: it does not.", key="sasl.mechanism"
    )
    sasl_username: str = setting("", "Who the client is.", key="sasl.username")
    sasl_password: str = setting("", "Its password.", key="sasl.password", secret=True)
    replication_factor: int = setting(1, "Replicas of each topic that is created on Kafka.", minimum=1)
    min_insync_replicas: int = setting(
        1,
        "Replicas that must have a message before `acks=all` is answered; for each topic that is created.",
        key="min.insync.replicas",
        minimum=1,
    )
    request_timeout_ms: int = setting(
        15_000, "Milliseconds the brokers may take to answer.", key="request.timeout.ms", minimum=10, maximum=300_000
    )
    delivery_timeout_ms: int = setting(
        120_000,
        "Milliseconds a message may wait until it is stored; then its send fails.",
        key="delivery.timeout.ms",
        minimum=1,
    )
    max_poll_interval_ms: int = setting(
        300_000,
        "Milliseconds between polls after which Kafka takes a consumer's partitions away.",
        key="max.poll.interval.ms",
        minimum=1,
    )
    group_protocol: GroupProtocol = setting(
        "classic",
        "Who divides partitions among the members of a shared group: one of them, or the brokers (`consumer`).",
        key="group.protocol",
    )
    properties: Properties = setting(
        (), "Any other properties of librdkafka, for all clients; in the file a mapping.", **_PASSED_ON
    )
    producer_properties: Properties = setting(
        (), "Likewise, for those that send.", key="producer.properties", **_PASSED_ON
    )
    consumer_properties: Properties = setting(
        (), "Likewise, for those that read.", key="consumer.properties", **_PASSED_ON
    )
