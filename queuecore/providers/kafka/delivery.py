"""The process's one library producer, and who waits for which answer of it."""

import threading
from functools import partial
from queue import SimpleQueue
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import InvalidMessage, ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import SendCallback
from queuecore.providers.kafka.codes import FATAL, MEANING, NO_SUCH_PARTITION, PURGED
from queuecore.providers.kafka.cohort import Cohort, Sent
from queuecore.providers.kafka.connection import Connection, logger
from queuecore.providers.kafka.keyless import KeylessTopics
from queuecore.providers.kafka.library_producer import LibraryProducer
from queuecore.providers.kafka.records import (
    DeliveryReport,
    Encoded,
    KafkaHeaders,
    encode,
    not_encodable,
    place_of,
    to_metadata,
    too_large,
)
from queuecore.providers.kafka.settings import producer_settings
from queuecore.providers.kafka.singly import Singly
from queuecore.providers.kafka.turn import Turn
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo

_POLL_S: Final = 0.05
# A full buffer shall have this share of its messages less before those who wait for room go on: a thread that is woken
# for every message it can place costs more than the messages.
_ROOM: Final = 1 / 8

_new = tuple.__new__


class Delivery:
    """Callers from any thread share batches. Every callback runs on the delivery's one thread.

    A send takes no lock and leaves nothing here but a number: what the library calls for it holds its callback.
    """

    def __init__(self, connection: Connection, options: ProducerOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = connection
        self._options = options
        self._clock = clock
        settings = producer_settings(options, connection.options)
        self._library = LibraryProducer(connection, settings, clock)
        self._singly = Singly(connection, settings, clock)
        self._keyless = KeylessTopics(connection, options, clock)
        self._limit = options.max_request_size
        self.turn = Turn()
        self._lock = threading.Lock()
        # Those who send now, and those that a flush has closed and that are not all answered.
        self._cohort = Cohort()
        self._closed: list[Cohort] = []
        self._answered = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._room_at: float | None = None
        self._heard_at = clock.monotonic()
        # Those that never reached the library, to be told why; or those that were told by an exception.
        self._refused: SimpleQueue[tuple[Cohort, SendCallback | None, QueueError]] = SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-producer", daemon=True)
        self._thread.start()

    def send(self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback) -> None:
        if self.turn.is_taken and not self._is_own_thread():
            self.turn.give_way()
        cohort = self._cohort
        # Before the library is looked at: whoever stops it sees us, or we see that it has stopped.
        next(cohort.entered)
        try:
            encoded = key, value, headers, size = encode(message)
            if size > self._limit:
                raise too_large(size, self._limit)
            topic, partition = info.place
            if key is None and topic not in self._keyless.allowed:
                self._keyless.check(topic)
            # The library's reports have no headers, which are needed where a message is sent again.
            report = _new(Sent, (self, cohort, callback, headers))
            try:
                # By position: named arguments cost the library half as much again.
                self._library.produce(topic, value, key, partition, report, None, 0, headers)
            except (BufferError, KafkaException) as error:
                self._insist(info.place, encoded, report, error)
        except ProviderUnavailable as error:
            self._refused.put((cohort, None, error))
            raise
        except KafkaException as error:
            self._refused.put((cohort, callback, self._connection.explain(error, f"send to {info.place}")))
        except QueueError as error:
            self._refused.put((cohort, callback, error))
        except (TypeError, ValueError, AttributeError) as error:
            self._refused.put((cohort, callback, not_encodable(error)))

    def flush(self, timeout_s: float) -> bool:
        """In a callback there is nothing to wait for: it runs on the very thread that answers."""
        with self._lock:
            if self._cohort.unanswered():
                self._closed.append(self._cohort)
                self._cohort = Cohort()
            earlier = set(self._closed)
            patience_s = 0 if self._is_own_thread() else timeout_s
            return self._answered.wait_for(lambda: earlier.isdisjoint(self._closed), patience_s)

    def drain(self) -> None:
        """Wait until every send so far has been answered, for at most as long as the brokers may take to answer."""
        self.flush(self._connection.timeout_s + self._options.linger_ms / 1000)

    def stop(self) -> None:
        """Answer everybody: as long as the brokers may take for an answer with what they say, then with an error."""
        self._library.close()
        with self._lock:
            self._stopped.set()
            self._room.notify_all()
        if not self._is_own_thread():
            self._thread.join()

    def failed(
        self,
        cohort: Cohort,
        callback: SendCallback,
        headers: KafkaHeaders | None,
        error: KafkaError,
        message: Message,
    ) -> None:
        """On the delivery's thread: answer, unless the message is worth another try."""
        if not self._singly.again(error, message, headers, partial(self._settle, cohort, callback)):
            self._settle(cohort, callback, error, message)

    def _is_own_thread(self) -> bool:
        return threading.get_ident() == self._thread.ident

    def _insist(self, place: ProviderPartition, message: Encoded, report: DeliveryReport, error: Exception) -> None:
        """Hand over what the library did not take at once, waiting for whatever keeps it. KafkaException when it never
        will. Waiting here keeps this caller's order."""
        deadline = self._clock.monotonic() + self._options.max_block_ms / 1000
        looked_again = False
        while True:
            code = None if isinstance(error, BufferError) else error.args[0].code()
            if code in (None, FATAL):
                self._wait_for_room(deadline)
            elif code == NO_SUCH_PARTITION and not looked_again:
                # The topic may have grown since the library looked.
                self._library.look_again(place.topic)
                looked_again = True
            else:
                raise error
            try:
                key, value, headers, _ = message
                return self._library.produce(place.topic, value, key, place.partition, report, None, 0, headers)
            except (BufferError, KafkaException) as again:
                error = again

    def _wait_for_room(self, deadline: float) -> None:
        """ProviderUnavailable when the deadline is over."""
        waiting, now = len(self._library), self._clock.monotonic()
        if now < deadline and not self._is_own_thread():
            with self._lock:
                if not self._stopped.is_set():
                    self._room_at = waiting * (1 - _ROOM)
                    self._room.wait(deadline - now)
            return
        error = ProviderUnavailable(
            f"{waiting} messages wait for Kafka at {self._connection.bootstrap_servers}, which has answered none for "
            f"{now - self._heard_at:.0f} s, and there is no room for more after {self._options.max_block_ms} ms; "
            "check that the brokers run, then send again"
        )
        self._connection.outage.report(error)
        raise error

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._serve()
        deadline = self._clock.monotonic() + self._connection.timeout_s
        while self._unanswered() and self._clock.monotonic() < deadline:
            self._serve()
        while self._unanswered():
            self._library.purge()
            self._singly.purge()
            self._serve()

    def _unanswered(self) -> int:
        with self._lock:
            return sum(cohort.unanswered() for cohort in (self._cohort, *self._closed))

    def _serve(self) -> None:
        """Run the callbacks of what was stored, failed or refused since the last time; then tell those who wait
        for room or for the end: once, not for each message."""
        self._library.poll(_POLL_S)
        self._singly.poll()
        if self.turn.is_taken:
            self._heard_at = self._clock.monotonic()
            self.turn.end()
        while not self._refused.empty():
            cohort, callback, error = self._refused.get()
            if callback is not None:
                self._call(callback, None, error)
            cohort.left += 1
        with self._lock:
            self._tell_waiters()

    def _tell_waiters(self) -> None:
        if any(not cohort.unanswered() for cohort in self._closed):
            self._closed = [cohort for cohort in self._closed if cohort.unanswered()]
            self._answered.notify_all()
        if self._room_at is not None and len(self._library) <= self._room_at:
            self._room_at = None
            self._room.notify_all()

    def _settle(self, cohort: Cohort, callback: SendCallback, error: KafkaError | None, message: Message) -> None:
        """Answer, whatever it is."""
        if error is None:
            self._call(callback, to_metadata(message), None)
        else:
            self._call(callback, None, self._explain(error, message))
        cohort.left += 1

    def _call(self, callback: SendCallback, metadata: RecordMetadata | None, error: QueueError | None) -> None:
        """A caller's bug must not stop the thread that serves every caller."""
        try:
            callback(metadata, error)
        except BaseException:
            logger.exception("a send callback raised; its message was %s", "stored" if metadata else "refused")

    def _explain(self, error: KafkaError, message: Message) -> QueueError:
        doing = f"send to {place_of(message)}"
        if error.code() in PURGED and self._stopped.is_set():
            return ProviderUnavailable(
                f"cannot {doing}: the producer was stopped before Kafka acknowledged the message, which may still be "
                "stored; send it again if it may come twice"
            )
        if error.code() in PURGED and (failure := self._library.failure) is not None:
            kind = MEANING.get(failure.code(), ProviderUnavailable)
            return kind(f"cannot {doing}: the producer has failed for good, {failure.str()}; send it again")
        told = self._connection.explain(error, doing)
        if isinstance(told, ProviderUnavailable):
            self._connection.outage.report(told)
        elif isinstance(told, InvalidMessage):
            self._keyless.forget(message.topic() or "")
        return told
