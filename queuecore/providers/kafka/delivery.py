"""The process's one library producer, and who waits for which answer of it."""

import itertools
import threading
from functools import partial
from queue import SimpleQueue

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import InvalidMessage, PayloadTooLarge, ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import SendCallback
from queuecore.providers.kafka.codes import NO_SUCH_PARTITION
from queuecore.providers.kafka.connection import Connection, logger
from queuecore.providers.kafka.records import Encoded, encode, place_of, to_metadata
from queuecore.providers.kafka.settings import producer_settings
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition

_POLL_S = 0.05
_SLACK_S = 1.0


class Delivery:
    """Callers from any thread share batches. Every callback runs on the delivery's one thread."""

    def __init__(self, connection: Connection, options: ProducerOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = connection
        self._options = options
        self._clock = clock
        self._producer = connection.open(Producer, producer_settings(options, connection.options))
        # Callbacks that have not run yet, oldest first. A ticket goes in before the library sees the message and
        # out after its callback returned, so an empty map means that everybody has been answered.
        self._waiting: dict[int, SendCallback] = {}
        self._tickets = itertools.count()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._refused: SimpleQueue[tuple[int, QueueError]] = SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-producer", daemon=True)
        self._thread.start()

    def send(self, place: ProviderPartition, message: QueueMessage, callback: SendCallback) -> None:
        ticket = self._register(callback)
        try:
            self._produce(place, self._encode(message), ticket)
        except KafkaException as error:
            self._refused.put((ticket, self._connection.explain(error, f"send to {place}")))
        except PayloadTooLarge as error:
            self._refused.put((ticket, error))
        except (TypeError, ValueError, AttributeError) as error:
            reason = f"the message cannot be encoded: {error}; mend its key, headers or data"
            self._refused.put((ticket, InvalidMessage(reason)))
        except ProviderUnavailable:
            self._forget(ticket)
            raise

    def flush(self, timeout_s: float) -> bool:
        with self._changed:
            behind = next(self._tickets)
            return self._changed.wait_for(lambda: next(iter(self._waiting), behind) >= behind, timeout_s)

    def drain(self) -> None:
        """Wait until every send so far has been answered: each is, once its delivery has timed out."""
        self.flush(self._connection.timeout_s + self._options.linger_ms / 1000 + _SLACK_S)

    def stop(self) -> None:
        """Answer everybody, if need be with an error, and release."""
        with self._lock:
            self._stopped.set()
        self._thread.join()

    def _register(self, callback: SendCallback) -> int:
        with self._lock:
            if self._stopped.is_set():
                raise ProviderUnavailable("this producer has been stopped; open a new one")
            ticket = next(self._tickets)
            self._waiting[ticket] = callback
            return ticket

    def _forget(self, ticket: int) -> None:
        with self._lock:
            self._waiting.pop(ticket, None)

    def _encode(self, message: QueueMessage) -> Encoded:
        encoded = encode(message)
        if encoded.size > (limit := self._options.max_request_size):
            raise PayloadTooLarge(
                f"a message of {encoded.size} bytes with key and headers, where {limit} is the most; "
                "send less, or raise max_request_size"
            )
        return encoded

    def _produce(self, place: ProviderPartition, message: Encoded, ticket: int) -> None:
        """Hand over to the library, waiting for room in its buffer."""
        deadline = self._clock.monotonic() + self._options.max_block_ms / 1000
        looked_again = False
        while True:
            try:
                return self._producer.produce(
                    place.topic,
                    message.value,
                    message.key,
                    place.partition,
                    on_delivery=partial(self._delivered, ticket),
                    headers=message.headers,
                )
            except BufferError:
                self._wait_for_room(deadline - self._clock.monotonic())
            except KafkaException as error:
                if looked_again or error.args[0].code() != NO_SUCH_PARTITION:
                    raise
                # The topic may have grown since the library looked. Waiting here keeps this caller's order.
                self._producer.list_topics(place.topic, self._connection.timeout_s)
                looked_again = True

    def _wait_for_room(self, remaining_s: float) -> None:
        with self._changed:
            if remaining_s > 0 and self._changed.wait(remaining_s):
                return
        raise ProviderUnavailable(
            f"{len(self._waiting)} messages wait for Kafka at {self._connection.bootstrap_servers} and there is no "
            f"room for more after {self._options.max_block_ms} ms; check that the brokers run, then send again"
        )

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._serve()
        deadline = self._clock.monotonic() + self._connection.timeout_s
        while self._waiting and self._clock.monotonic() < deadline:
            self._serve()
        self._give_up()

    def _serve(self) -> None:
        """Run the callbacks of what was stored, failed or refused since the last time; then tell those who wait
        for room or for the end: once, not for each message."""
        self._producer.poll(_POLL_S)
        while not self._refused.empty():
            ticket, error = self._refused.get()
            self._settle(ticket, None, error)
        self._tell_waiters()

    def _tell_waiters(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _give_up(self) -> None:
        """Answer those who are still waiting when time is up."""
        self._producer.purge()
        for ticket in list(self._waiting):
            reason = "the producer was stopped before Kafka acknowledged the message; it may still be stored"
            self._settle(ticket, None, ProviderUnavailable(reason))
        self._tell_waiters()

    def _delivered(self, ticket: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._settle(ticket, None, self._connection.explain(error, f"send to {place_of(message)}"))
            return
        self._settle(ticket, to_metadata(message), None)

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
