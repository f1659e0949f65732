"""How Kafka is reached, and how its refusals are told."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from queuecore.errors import (
    ConfigurationError,
    Displaced,
    GroupActive,
    InvalidMessage,
    InvalidName,
    NotAuthorised,
    NotOwner,
    OffsetOutOfRange,
    PayloadTooLarge,
    ProviderUnavailable,
    QueueError,
    UnknownTopic,
)
from queuecore.providers.kafka.codes import MEANING, CoordinatorMoves
from queuecore.providers.kafka.outage import Chatter, Outage
from queuecore.providers.kafka.security import security_settings
from queuecore.providers.options import DEFAULT_KAFKA, KafkaOptions

logger = logging.getLogger("queuecore.providers.kafka")

Setting = str | int | float | bool
Client = TypeVar("Client")

_REMEDY: Final[dict[type[QueueError], str]] = {
    UnknownTopic: "create the topic first",
    InvalidName: "use at most 249 ASCII letters, digits, '.', '_' and '-'",
    InvalidMessage: "a compacted topic takes no message without a key",
    PayloadTooLarge: "send less, or raise the topic's max.message.bytes",
    OffsetOutOfRange: "ask for the beginning and the end first",
    NotOwner: "another consumer of the group will get its records",
    Displaced: "if both consumers shall read, give each a member id of its own",
    GroupActive: "stop the group's consumers first",
    CoordinatorMoves: "try again in a moment",
    NotAuthorised: "ask whoever runs the brokers for an ACL that allows it",
    ConfigurationError: "change the setting, or what the brokers allow this client",
}


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the brokers are and how they are reached."""

    bootstrap_servers: str
    options: KafkaOptions = DEFAULT_KAFKA
    outage: Outage = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "outage", Outage(self.bootstrap_servers, lambda: _Probe(self)))

    @property
    def timeout_s(self) -> float:
        """How long the brokers may take to answer."""
        return self.options.request_timeout_ms / 1000

    def settings(self) -> dict[str, Setting]:
        """What all clients share."""
        options = self.options
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": options.client_id,
            "client.rack": options.client_rack,
            "socket.timeout.ms": options.request_timeout_ms,
            **security_settings(options.security),
            **options.properties,
        }

    def open(self, client: Callable[..., Client], extra: Mapping[str, Setting]) -> Client:
        """One of the library's clients, with the shared settings and `extra`. Does not connect yet. The outage hears of
        errors that concern no single call."""
        settings = {**self.settings(), **extra, "error_cb": self.outage.report}
        try:
            return client(settings, logger=Chatter())
        except KafkaException as error:
            reason = error.args[0].str().strip()
            raise ConfigurationError(f"Kafka's client refuses its settings: {reason}; change the setting") from error

    def explain(self, error: KafkaError | KafkaException, doing: str) -> QueueError:
        """Our error for the library's. `doing` completes "cannot …"."""
        known: KafkaError = error.args[0] if isinstance(error, KafkaException) else error
        if (kind := MEANING.get(known.code())) is not None:
            return kind(f"cannot {doing}: {known.str()}; {_REMEDY[kind]}")
        reason = f"{known.str()}: {self.outage.reason}" if self.outage.reason else known.str()
        return ProviderUnavailable(
            f"cannot {doing}: Kafka at {self.bootstrap_servers}: {known.name()}, {reason}; check that the brokers run, "
            "that this address reaches them from here, and that TLS and SASL are set as they want them there"
        )


class _Probe:
    """Asks for the cluster, which any broker can answer."""

    def __init__(self, connection: Connection) -> None:
        self._client = connection.open(AdminClient, {})

    def ask(self, timeout_s: float) -> None:
        try:
            self._client.describe_cluster(request_timeout=timeout_s).result()
        finally:
            self._client.poll(0)  # so that the outage hears the reason
