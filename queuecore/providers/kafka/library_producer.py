"""The library's producer, and the next one when it has failed for good."""

from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer

from queuecore.clock import Clock
from queuecore.errors import QueueError
from queuecore.providers.kafka.connection import Connection, Setting, logger

# A reason that stays, as a missing right, ends each successor as well.
_REPLACE_EVERY_S: Final = 1.0


class LibraryProducer:
    """An idempotent producer ends itself when the brokers' numbering and its own cannot be brought together. What it
    had not sent fails; what is under way is still answered. A new one takes over. For one thread.
    """

    # The library's own, without a call in between.
    produce: Callable[..., None]

    def __init__(self, connection: Connection, settings: Mapping[str, Setting], clock: Clock) -> None:
        self._connection = connection
        self._settings = settings
        self._clock = clock
        self._ended: list[Producer] = []
        self._replaced_at = -_REPLACE_EVERY_S
        # What ended the last one that ended.
        self.failure: KafkaError | None = None
        self._has_failed = False
        self._client = self._open()
        self.produce = self._client.produce

    def __len__(self) -> int:
        """How many messages wait to be answered."""
        return len(self._client) + sum(map(len, self._ended))

    def poll(self, timeout_s: float) -> None:
        """Hand over reports, waiting at most that long for the first."""
        self._poll(self._client, timeout_s)
        for client in self._ended:
            self._poll(client, 0)
        self._ended = [client for client in self._ended if len(client)]
        if self._has_failed:
            self._replace()

    def look_again(self, topic: str) -> None:
        """Ask the brokers how many partitions the topic has. KafkaException when they do not answer."""
        self._client.list_topics(topic, self._connection.timeout_s)

    def purge(self) -> None:
        """Fail all that waits."""
        for client in (self._client, *self._ended):
            client.purge()

    def _open(self) -> Producer:
        return self._connection.open(Producer, self._settings)

    def _poll(self, client: Producer, timeout_s: float) -> None:
        try:
            client.poll(timeout_s)
        except KafkaException as error:
            if client is self._client:
                self._failed(error.args[0])

    def _failed(self, error: KafkaError) -> None:
        """The library raises nothing else here. It tells again and again."""
        if not self._has_failed:
            self.failure, self._has_failed = error, True
            logger.error(
                "the producer for Kafka at %s has failed for good: %s, %s. Messages it held fail; a new one takes over",
                self._connection.bootstrap_servers,
                error.name(),
                error.str(),
            )

    def _replace(self) -> None:
        now = self._clock.monotonic()
        if now < self._replaced_at + _REPLACE_EVERY_S:
            return
        self._replaced_at = now
        try:
            client = self._open()
        except QueueError as error:
            # As while a certificate's file is being exchanged.
            logger.error("cannot open the next producer: %s. It is tried again", error)
            return
        self._ended.append(self._client)
        self._client, self.produce = client, client.produce
        self._has_failed = False
