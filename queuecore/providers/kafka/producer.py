"""Sending: idempotent, acknowledged by all in-sync replicas, answered on one thread."""

import itertools
import threading
from collections import OrderedDict
from functools import partial
from queue import Empty, SimpleQueue

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import SendCallback
from queuecore.providers.kafka.connection import MAX_REQUEST_BYTES, Connection, Setting, logger
from queuecore.providers.kafka.records import encode_headers, encode_key, place_of
from queuecore.topics import ProviderPartition, TopicPartitionInfo

_SETTINGS: dict[str, Setting] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 1,
    "message.max.bytes": MAX_REQUEST_BYTES,
    "allow.auto.create.topics": False,
    # How long a topic the brokers do not know may still turn up before its messages fail.
    "topic.metadata.propagation.max.ms": 3_000,
}
_POLL_S = 0.05


class KafkaProducer:
    """Callers from any thread share batches. Every callback runs on the producer's one thread."""

    def __init__(self, connection: Connection, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = connection
        self._clock = clock
        self._producer = connection.open(Producer, {**_SETTINGS, "delivery.timeout.ms": connection.timeout_ms})
        # Callbacks that have not run yet, oldest first. A ticket goes in before the library sees the message and
        # out after its callback returned, so an empty map means that everybody has been answered.
        self._waiting: OrderedDict[int, SendCallback] = OrderedDict()
        self._tickets = itertools.count()
        self._changed = threading.Condition()
        self._refused: SimpleQueue[tuple[int, QueueError]] = SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-producer", daemon=True)
        self._thread.start()

    def send(self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback) -> None:
        ticket = self._register(callback)
        place = info.place
        try:
            self._produce(place, message, ticket)
        except KafkaException as error:
            self._refused.put((ticket, self._connection.explain(error, f"send to {place}")))
        except (TypeError, ValueError) as error:
            reason = f"the message cannot be encoded: {error}; mend its key, headers or data"
            self._refused.put((ticket, QueueError(reason)))
        except ProviderUnavailable:
            self._forget(ticket)
            raise

    def flush(self, timeout_s: float) -> bool:
        with self._changed:
            behind = next(self._tickets)
            return self._changed.wait_for(lambda: next(iter(self._waiting), behind) >= behind, timeout_s)

    def stop(self) -> None:
        with self._changed:
            self._stopped.set()
        self._thread.join()

    def _register(self, callback: SendCallback) -> int:
        with self._changed:
            if self._stopped.is_set():
                raise ProviderUnavailable("this producer has been stopped; open a new one")
            ticket = next(self._tickets)
            self._waiting[ticket] = callback
            return ticket

    def _forget(self, ticket: int) -> None:
        with self._changed:
            self._waiting.pop(ticket, None)
            self._changed.notify_all()

    def _produce(self, place: ProviderPartition, message: QueueMessage, ticket: int) -> None:
        """Hand over to the library, waiting for room in its buffer."""
        deadline = self._clock.monotonic() + self._connection.timeout_s
        while True:
            try:
                return self._producer.produce(
                    place.topic,
                    message.data,
                    encode_key(message.key),
                    place.partition,
                    on_delivery=partial(self._delivered, ticket),
                    headers=encode_headers(message.headers),
                )
            except BufferError:
                self._wait_for_room(deadline - self._clock.monotonic())

    def _wait_for_room(self, remaining_s: float) -> None:
        with self._changed:
            if remaining_s > 0 and self._changed.wait(remaining_s):
                return
        raise ProviderUnavailable(
            f"{len(self._waiting)} messages wait for Kafka at {self._connection.bootstrap_servers} and there is no "
            f"room for more after {self._connection.timeout_s:g} s; check that the brokers run, then send again"
        )

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._serve()
        deadline = self._clock.monotonic() + self._connection.timeout_s
        while self._waiting and self._clock.monotonic() < deadline:
            self._serve()
        self._give_up()

    def _serve(self) -> None:
        """Run the callbacks of what was stored, failed or refused since the last time."""
        self._producer.poll(_POLL_S)
        while True:
            try:
                ticket, error = self._refused.get_nowait()
            except Empty:
                return
            self._settle(ticket, None, error)

    def _give_up(self) -> None:
        """Answer those who are still waiting when time is up."""
        self._producer.purge()
        for ticket in list(self._waiting):
            reason = "the producer was stopped before Kafka acknowledged the message; it may still be stored"
            self._settle(ticket, None, ProviderUnavailable(reason))

    def _delivered(self, ticket: int, error: KafkaError | None, message: Message) -> None:
        place = place_of(message)
        if error is not None:
            self._settle(ticket, None, self._connection.explain(error, f"send to {place}"))
            return
        metadata = RecordMetadata(place.topic, place.partition, message.offset() or 0, message.timestamp()[1])
        self._settle(ticket, metadata, None)

    def _settle(self, ticket: int, metadata: RecordMetadata | None, error: QueueError | None) -> None:
        """Call back. A caller's bug must not stop the thread that serves every caller."""
        callback = self._waiting.get(ticket)
        if callback is None:
            return
        try:
            callback(metadata, error)
        except Exception:
            logger.exception("a send callback raised; its message was %s", "stored" if metadata else "refused")
        self._forget(ticket)
