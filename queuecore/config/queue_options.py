"""The `queue:` tree as the runtime wants it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from queuecore.config import FILE_VARIABLE, PREFIX, load, section
from queuecore.config.provider_settings import KafkaSettings, StoredSettings
from queuecore.config.queue_tree import QueueSettings
from queuecore.providers.options import ConsumerOptions, KafkaOptions, KafkaSecurity, ProducerOptions
from queuecore.requests.options import RequestOptions, ResponseOptions


@dataclass(frozen=True, slots=True)
class _Root:
    queue: QueueSettings = field(default=QueueSettings(), metadata=section())


def queue_settings(environ: Mapping[str, str], file: Path | None = None) -> QueueSettings:
    """The tree from `SWITCHYARD_QUEUE_*` variables and the YAML file, this one or that which `SWITCHYARD_CONFIG_FILE`
    names. One ConfigurationError lists everything wrong. Other `SWITCHYARD_*` variables are left to others."""
    ours = {name: text for name, text in environ.items() if name.startswith((f"{PREFIX}QUEUE_", FILE_VARIABLE))}
    return load(_Root, ours | ({FILE_VARIABLE: str(file)} if file else {})).queue


def producer_options(settings: QueueSettings) -> ProducerOptions:
    """How producers of the provider in use behave. ConfigurationError where values do not go together."""
    client = settings.client
    options = ProducerOptions(
        batch_size=client.batch_size,
        linger_ms=client.linger_ms,
        buffer_memory=client.buffer_memory,
        max_request_size=client.max_request_size,
    )
    if not isinstance(client, StoredSettings):
        return options
    return replace(options, acks=client.acks, retries=client.retries, compression=client.compression_type)


def consumer_options(settings: QueueSettings) -> ConsumerOptions:
    """How consumers of the provider in use behave."""
    client = settings.client
    return ConsumerOptions(
        max_poll_records=client.max_poll_records,
        max_partition_fetch_bytes=client.max_partition_fetch_bytes,
        auto_offset_reset=client.auto_offset_reset,
        session_timeout_ms=client.session_timeout_ms,
    )


def request_options(settings: QueueSettings) -> RequestOptions:
    """How services of the platform ask."""
    requests = settings.requests
    return RequestOptions(requests.max_pending_requests, requests.max_request_timeout_ms, requests.poll_interval_ms)


def response_options(settings: QueueSettings) -> ResponseOptions:
    """How services of the platform answer: nothing takes longer than somebody waits for it."""
    requests = settings.requests
    return ResponseOptions(
        max_pending_requests=requests.max_pending_requests,
        request_timeout_ms=requests.max_request_timeout_ms,
        poll_interval_ms=requests.poll_interval_ms,
    )


def kafka_options(settings: QueueSettings) -> KafkaOptions:
    """What only Kafka has. ConfigurationError where values do not go together."""
    kafka = settings.kafka
    return KafkaOptions(
        replication_factor=kafka.replication_factor,
        min_insync_replicas=kafka.min_insync_replicas,
        request_timeout_ms=kafka.request_timeout_ms,
        delivery_timeout_ms=kafka.delivery_timeout_ms,
        max_poll_interval_ms=kafka.max_poll_interval_ms,
        group_protocol=kafka.group_protocol,
        client_id=kafka.client_id,
        client_rack=kafka.client_rack,
        security=_security(kafka),
        properties=dict(kafka.properties),
        producer_properties=dict(kafka.producer_properties),
        consumer_properties=dict(kafka.consumer_properties),
    )


def check_kafka(settings: QueueSettings) -> None:
    """ConfigurationError for what Kafka's client would refuse. Connects nowhere."""
    # Imported where it is wanted: others need no librdkafka.
    from queuecore.providers.kafka import KafkaProvider

    producing, consuming = producer_options(settings), consumer_options(settings)
    servers = settings.kafka.bootstrap_servers
    KafkaProvider(servers, kafka=kafka_options(settings), producing=producing, consuming=consuming).close()


def _security(kafka: KafkaSettings) -> KafkaSecurity:
    return KafkaSecurity(
        tls=kafka.ssl_enabled,
        ca=kafka.ssl_ca_location,
        check_hostname=kafka.ssl_endpoint_identification_algorithm == "https",
        certificate=kafka.ssl_certificate_location,
        key=kafka.ssl_key_location,
        key_password=kafka.ssl_key_password,
        sasl_mechanism=kafka.sasl_mechanism,
        username=kafka.sasl_username,
        password=kafka.sasl_password,
    )
