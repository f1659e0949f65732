"""The process's one library producer, and who waits for which answer of it."""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import InvalidMessage, ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import SendCallback, Sending
from queuecore.providers.kafka.codes import FATAL, MEANING, NO_SUCH_PARTITION, PURGED
from queuecore.providers.kafka.cohort import Cohort, Sent
from queuecore.providers.kafka.connection import Connection, logger
from queuecore.providers.kafka.inbox import Handed, Inbox
from queuecore.providers.kafka.keyless import KeylessTopics
from queuecore.providers.kafka.library_producer import LibraryProducer
from queuecore.providers.kafka.records import (
    Encoded,
    KafkaHeaders,
    encode,
    encode_within,
    not_encodable,
    place_of,
    to_metadata,
)
from queuecore.providers.kafka.settings import producer_settings
from queuecore.providers.kafka.singly import Singly
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo

# While answers are awaited: what is sent meanwhile waits as long before the library gets it.
_POLL_S: Final = 0.002
_POLL_EVERY: Final = 1_000
# The library answers what was purged at once, unless it is at fault.
_PURGE_S: Final = 10.0

_new = tuple.__new__


class Delivery:
    """Callers from any thread share batches. They hand their messages to the library themselves, one caller at a time.
    What it does not take at once, and what comes behind that, goes into the inbox: from there the delivery's own thread
    hands it over, which can wait. It alone runs callbacks.
    """

    def __init__(self, connection: Connection, options: ProducerOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = connection
        self._options = options
        self._clock = clock
        settings = producer_settings(options, connection.options)
        self._library = LibraryProducer(connection, settings, clock)
        self._singly = Singly(connection, settings, clock)
        self._keyless = KeylessTopics(connection, options, clock)
        self._inbox = Inbox(options)
        # Those sent since the last flush, and with each flush those before it, oldest first.
        self._cohort = Cohort()
        self._flushes: deque[tuple[Cohort, threading.Event]] = deque()
        self._heard_at = clock.monotonic()
        self._gives_up_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="kafka-producer", daemon=True)
        self._thread.start()

    def send(
        self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback, patience_s: float | None = None
    ) -> None:
        if self._inbox.pass_by(self._hand_at_once, ((info, message, callback),)):
            return
        handed, size = self._handed(info, message, callback)
        if not self._inbox.put(handed, size):
            patience_s = self._patience_s(patience_s)
            if not self._inbox.put(handed, size, patience_s):
                raise self._no_room(patience_s)

    def send_many(self, sends: Sequence[Sending], patience_s: float | None = None) -> None:
        left = sends[self._inbox.pass_by(self._hand_at_once, sends) :]
        if not left:
            return
        handed = [self._handed(*send) for send in left]
        if self._inbox.put_many([one for one, _ in handed], sum(size for _, size in handed)):
            return
        until = self._clock.monotonic() + self._options.patience_s(patience_s)
        for info, message, callback in left:
            try:
                self.send(info, message, callback, max(0.0, until - self._clock.monotonic()))
            except QueueError as error:
                callback(None, error)

    def flush(self, timeout_s: float) -> bool:
        """In a callback there is nothing to wait for: it runs on the very thread that answers."""
        marker = threading.Event()
        return self._inbox.mark(marker) or (not self._is_own_thread() and marker.wait(timeout_s))

    def drain(self) -> None:
        """Wait until every send so far has been answered, for at most as long as the brokers may take to answer."""
        self.flush(self._connection.timeout_s + self._options.linger_ms / 1000)

    def stop(self) -> None:
        """Answer everybody: as long as the brokers may take for an answer with what they say, then with an error."""
        self._inbox.close()
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
        """Answer, unless the message is worth another try."""

        def answered(error: KafkaError | None, message: Message) -> None:
            self._answer(cohort, callback, None if error is None else self._explain(error, message), message)

        if not self._singly.again(error, message, headers, answered):
            answered(error, message)

    def _is_own_thread(self) -> bool:
        return threading.get_ident() == self._thread.ident

    def _handed(self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback) -> tuple[Handed, int]:
        """What goes into the inbox, and its size."""
        place, size = info.place, 0
        content: Encoded | QueueError
        try:
            key, _, _, size = content = encode_within(message, self._options.max_request_size)
            if key is None and place.topic not in self._keyless.allowed and not self._is_own_thread():
                self._keyless.check(place.topic)
        except QueueError as error:
            content = error
        return (place, content, callback), size

    def _hand_at_once(self, sends: Sequence[Sending]) -> int:
        """How many the library takes without further ado. By one thread at a time, as `Inbox.pass_by` has it."""
        cohort, produce, number = self._cohort, self._library.produce, 0
        limit, takes_keyless = self._options.max_request_size, self._keyless.allowed
        try:
            for info, message, callback in sends:
                topic, partition = info.place
                key, value, headers, size = encode(message)
                if size > limit or (key is None and topic not in takes_keyless):
                    break
                # The library's reports have no headers, which are needed where a message is sent again.
                report: Sent = _new(Sent, (self, cohort, callback, headers))
                # Counted first: who is interrupted behind the call has handed it over.
                number += 1
                try:
                    # By position: named arguments cost the library half as much again.
                    produce(topic, value, key, partition, report, None, 0, headers)
                except Exception:
                    number -= 1
                    raise
        except Exception:
            # Whatever it is: the delivery's thread will see the same, and has the time to do something about it.
            return number
        finally:
            cohort.sent += number
        return number

    def _patience_s(self, at_most_s: float | None) -> float:
        return 0 if self._is_own_thread() else self._options.patience_s(at_most_s)

    def _no_room(self, patience_s: float) -> ProviderUnavailable:
        error = ProviderUnavailable(
            f"{len(self._library) + len(self._inbox)} messages wait for Kafka at "
            f"{self._connection.bootstrap_servers}, which has answered none for "
            f"{self._clock.monotonic() - self._heard_at:.0f} s, and there is no room for more after "
            f"{patience_s * 1000:.0f} ms; check that the brokers run, then send again"
        )
        self._connection.outage.report(error)
        return error

    # --- on the delivery's thread alone

    def _run(self) -> None:
        try:
            while not self._inbox.is_closed:
                self._serve()
            while self._is_awaited() and not self._gives_up():
                self._serve()
            while self._is_awaited() and not self._gives_up(_PURGE_S):
                self._library.purge()
                self._singly.purge()
                self._serve()
        finally:
            self._inbox.end()
            for _, marker in self._flushes:
                marker.set()

    def _gives_up(self, later_s: float = 0) -> bool:
        """Whether the brokers have had their time since the stop."""
        if not self._inbox.is_closed:
            return False
        now = self._clock.monotonic()
        if self._gives_up_at is None:
            self._gives_up_at = now + self._connection.timeout_s
        return now >= self._gives_up_at + later_s

    def _is_awaited(self) -> bool:
        """Whether somebody has not been answered."""
        return self._is_unanswered() or bool(len(self._inbox))

    def _is_unanswered(self) -> bool:
        """Whether somebody has not whose message the library has."""
        return bool(self._cohort.unanswered or self._flushes)

    def _serve(self) -> None:
        for number, handed in enumerate(self._inbox.take(self._is_unanswered)):
            if isinstance(handed, threading.Event):
                self._flushes.append((self._cohort, handed))
                self._cohort = Cohort()
            else:
                self._hand_over(handed)
            if number % _POLL_EVERY == _POLL_EVERY - 1:
                self._poll(0)
        self._inbox.passed()
        self._poll(_POLL_S if self._is_unanswered() else 0)

    def _poll(self, timeout_s: float) -> None:
        """Run the callbacks of what was stored or failed since the last time."""
        awaited = len(self._library)
        self._library.poll(timeout_s)
        self._singly.poll()
        if len(self._library) < awaited or not awaited:
            self._heard_at = self._clock.monotonic()
        while self._flushes and not self._flushes[0][0].unanswered:
            self._flushes.popleft()[1].set()

    def _hand_over(self, handed: Handed) -> None:
        place, content, callback = handed
        cohort = self._cohort
        cohort.sent += 1
        if isinstance(content, QueueError):
            self._answer(cohort, callback, content)
            return
        key, value, headers, _ = content
        report: Sent = _new(Sent, (self, cohort, callback, headers))
        try:
            self._library.produce(place.topic, value, key, place.partition, report, None, 0, headers)
        except (BufferError, KafkaException) as error:
            try:
                self._insist(place, content, report, error)
            except KafkaException as refusal:
                self._answer(cohort, callback, self._connection.explain(refusal, f"send to {place}"))
            except QueueError as refusal:
                self._answer(cohort, callback, refusal)
        except Exception as error:
            # Whatever the library makes of its types: it is this message's fault.
            self._answer(cohort, callback, not_encodable(error))

    def _insist(self, place: ProviderPartition, message: Encoded, report: Sent, error: Exception) -> None:
        """Hand over what the library did not take at once, waiting for whatever keeps it: those behind it wait as well,
        which keeps their order, and the inbox fills. KafkaException when it never will."""
        looked_again = False
        while True:
            code = None if isinstance(error, BufferError) else error.args[0].code()
            if code in (None, FATAL):
                if self._gives_up():
                    raise _stopped(f"send to {place}")
                self._poll(_POLL_S)
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

    def _answer(
        self, cohort: Cohort, callback: SendCallback, error: QueueError | None, message: Message | None = None
    ) -> None:
        """A caller's bug must not stop the thread that serves every caller."""
        metadata: RecordMetadata | None = None if error is not None or message is None else to_metadata(message)
        try:
            callback(metadata, error)
        except BaseException:
            logger.exception("a send callback raised; its message was %s", "stored" if metadata else "refused")
        cohort.answered += 1

    def _explain(self, error: KafkaError, message: Message) -> QueueError:
        doing = f"send to {place_of(message)}"
        if error.code() in PURGED and self._gives_up_at is not None:
            return _stopped(doing)
        if error.code() in PURGED and (failure := self._library.failure) is not None:
            kind = MEANING.get(failure.code(), ProviderUnavailable)
            return kind(f"cannot {doing}: the producer has failed for good, {failure.str()}; send it again")
        told = self._connection.explain(error, doing)
        if isinstance(told, ProviderUnavailable):
            self._connection.outage.report(told)
        elif isinstance(told, InvalidMessage):
            self._keyless.forget(message.topic() or "")
        return told


def _stopped(doing: str) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"cannot {doing}: the producer was stopped before Kafka acknowledged the message, which may still be stored; "
        "send it again if it may come twice"
    )
