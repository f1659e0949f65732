"""Who asks: requests are sent as messages, and answers found by their ids."""

import itertools
import threading
from collections.abc import Sequence
from copy import copy
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from google.protobuf.message import Message

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.encoding import ErrorReply, encode
from queuecore.errors import QueueError, RequestFailed, RequestsStopped, RequestTimeout, TooManyRequests
from queuecore.hashing import partition_of
from queuecore.messages import (
    ERROR_CODE,
    EXPIRE_TS,
    NO_HEADERS,
    REQUEST_ID,
    RESPONSE_TOPIC,
    QueueMessage,
    Record,
    encode_millis,
)
from queuecore.providers.base import Brief, Provider, QueueProducer, Sending
from queuecore.requests.counts import LagHistogram, RequestCounts
from queuecore.requests.future import ResponseFuture, Wakes
from queuecore.requests.options import RequestOptions
from queuecore.requests.pending import PendingRequests
from queuecore.requests.reading import ResponseReader
from queuecore.requests.topics import RequestTopics
from queuecore.topics import TopicPartitionInfo

_DEFAULT_OPTIONS: Final = RequestOptions()
_STOP_WITHIN_S: Final = 10.0
# A named tuple's own runs in Python, and fifty thousand are made every second.
_new: Final = tuple.__new__
_stored: Final = ResponseFuture.stored


class RequestTemplate:
    """Sends requests to one request topic, and has a response topic of its own. `send` is safe from any thread;
    `start` and `stop` are for one at a time. Leaving its `with` block stops it.

    A request that was sent ends within its timeout and one poll interval, whatever happens to the provider, the
    responder or the answer. Nothing is ever sent twice: who got RequestTimeout knows best whether to ask again.
    """

    def __init__(
        self,
        provider: Provider,
        topics: RequestTopics,
        service_id: str,
        options: RequestOptions = _DEFAULT_OPTIONS,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`service_id` is the instance's: the response topic has it in its name, and two that run under one id take
        each other's answers. InvalidName where it cannot be part of a topic."""
        self.topics = topics
        self.service_id = service_id
        self.options = options
        self.response_topic = topics.response_spec(service_id).name
        self._provider = provider
        self._clock = clock
        self._producer: QueueProducer | None = None
        self._pending = PendingRequests(options.max_pending_requests)
        self._reader = ResponseReader(provider, topics.response_spec(service_id), options, self._complete, self._end)
        self._watcher = threading.Thread(target=self._watch, name=f"{topics.name}-timeouts", daemon=True)
        self._response_header = self.response_topic.encode()
        self._turns = itertools.count()
        # Why nothing is sent; None where it is.
        self._refusal: QueueError | None = RequestsStopped(
            f"requests to {topics.name} are not sent yet; call start() first"
        )
        self._lags = LagHistogram()
        # Written by the thread that reads answers.
        self._answered = self._failed = self._late = self._orphans = 0
        # Written by the thread that watches deadlines.
        self._timed_out = 0

    def start(self) -> None:
        """Create the topics where they are missing, and begin to read answers from now on. Once: RequestsStopped after
        that. Raises what the provider does."""
        if self._watcher.ident is not None:
            raise RequestsStopped(f"requests to {self.topics.name} have been started before; make a new template")
        self._provider.admin().create_topics(self.topics.specs)
        self._reader.join()
        # A request ends with its sender: none is left to be answered once the machine that keeps both has stopped.
        self._producer = self._provider.producer(self.topics.name, lasting=False)
        self._refusal = None
        self._reader.start()
        self._watcher.start()

    def send(
        self,
        message: QueueMessage | Message | bytes,
        *,
        timeout_ms: int | None = None,
        to: TopicPartitionInfo | None = None,
    ) -> ResponseFuture:
        """Ask. Whatever goes wrong is the future's: TooManyRequests at once where as many wait as may, RequestTimeout,
        RequestFailed with the responder's error, or what the provider says.

        timeout_ms  how long to wait for the answer; by default, and at most, `max_request_timeout_ms`
        to          the partition; by default that of the message's key, or each in turn for one without

        Waits only while the producer's buffer is full, and no longer than the timeout. ConfigurationError for a timeout
        that cannot be.
        """
        timeout_ms = self.options.timeout_ms(timeout_ms)
        key, data, headers = (None, message, NO_HEADERS) if type(message) is bytes else _parts(message)
        # Before it is pending: what cannot be made leaves nothing behind.
        place = to or self._place(key)
        producer, clock = self._producer, self._clock
        now = clock.monotonic()
        future = None if self._refusal is not None else self._pending.add(now, now + timeout_ms / 1000)
        if future is None or producer is None:
            return self._refused(now)
        made = {
            REQUEST_ID: future.request_id,
            RESPONSE_TOPIC: self._response_header,
            EXPIRE_TS: encode_millis(clock.now_ms() + timeout_ms),
        }
        if headers:
            made = {**headers, **made}
        try:
            asked = _new(QueueMessage, (key, data, made))
            producer.send(place, asked, _new(Brief, (_stored, future)), timeout_ms / 1000)
        except QueueError as error:
            future.stored(error)
        return future

    def send_many(
        self, messages: Sequence[QueueMessage | Message | bytes], *, timeout_ms: int | None = None
    ) -> list[ResponseFuture]:
        """As `send` for each, in this order, each with a future of its own: for who has many at once it is half the
        work. Those there is no room for end at once with TooManyRequests."""
        timeout_ms = self.options.timeout_ms(timeout_ms)
        producer, clock = self._producer, self._clock
        now = clock.monotonic()
        if self._refusal is not None or producer is None:
            return [self._refused(now) for _ in messages]
        parts = [(None, one, NO_HEADERS) if type(one) is bytes else _parts(one) for one in messages]
        # All before any is pending: what cannot be made leaves nothing behind.
        places = [self._place(key) for key, _, _ in parts]
        futures = self._pending.add_many(len(messages), now, now + timeout_ms / 1000)
        common = {RESPONSE_TOPIC: self._response_header, EXPIRE_TS: encode_millis(clock.now_ms() + timeout_ms)}
        sends: list[Sending] = [
            (
                place,
                _new(QueueMessage, (key, data, {**headers, **common, REQUEST_ID: future.request_id}))
                if headers
                else _new(QueueMessage, (key, data, {**common, REQUEST_ID: future.request_id})),
                _new(Brief, (_stored, future)),
            )
            for future, place, (key, data, headers) in zip(futures, places, parts, strict=False)
        ]
        producer.send_many(sends, timeout_ms / 1000)
        return futures + [self._refused(now) for _ in messages[len(futures) :]]

    @property
    def counts(self) -> RequestCounts:
        pending, lags = self._pending, self._lags
        ages = pending.ages(self._clock.monotonic())
        return RequestCounts(
            pending=len(pending),
            pending_memory=pending.memory_bytes,
            oldest_ms=ages.oldest_ms,
            age_buckets=ages.buckets,
            sent=pending.sent,
            answered=self._answered,
            failed=self._failed,
            timed_out=self._timed_out,
            not_stored=pending.not_stored,
            cancelled=pending.cancelled,
            refused=pending.refused,
            late=self._late,
            orphans=self._orphans,
            lag_buckets=tuple(lags.buckets),
            lag_total_ms=lags.total_ms,
            lag_longest_ms=lags.longest_ms,
        )

    @property
    def error(self) -> QueueError | None:
        """What ended it, if anything did: another instance with its service id. Make a new one then."""
        return self._reader.error

    def stop(self, timeout_s: float = 0.0) -> None:
        """Send no more, wait so long for the answers that are due, and end the others with RequestsStopped."""
        stopped = RequestsStopped(f"requests to {self.topics.name} have been stopped; their answers will be ignored")
        self._refusal = self._refusal or stopped
        self._reader.wait_for(lambda: not len(self._pending), timeout_s)
        self._fail_all(stopped)
        self._reader.stop(_STOP_WITHIN_S)
        if self._producer is not None:
            self._producer.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _place(self, key: UUID | bytes | None) -> TopicPartitionInfo:
        infos = self.topics.requests
        return infos[next(self._turns) % len(infos) if key is None else partition_of(key, len(infos))]

    def _refused(self, now: float) -> ResponseFuture:
        """One that has ended before it began."""
        limit = self.options.max_pending_requests
        full = TooManyRequests(
            f"{limit} requests to {self.topics.name} wait for their answers, which is the most; try again later, look "
            "at the responders, or raise max_pending_requests",
            limit=limit,
        )
        future = ResponseFuture(self._pending, b"", now, now)
        # Each has its own: tracebacks of all who are told would gather in one.
        future.fail(full if self._refusal is None else copy(self._refusal))
        return future

    def _complete(self, records: Sequence[Record]) -> None:
        """All answers of one look, on the reader's thread: times are taken once, and event loops woken once."""
        now, wakes = self._clock.monotonic(), Wakes()
        answers: list[tuple[ResponseFuture, Record]] = []
        failures: list[tuple[ResponseFuture, Record]] = []
        headers_of = [record.headers for record in records]
        ids = [headers.get(REQUEST_ID, b"") for headers in headers_of]
        for future, record, headers, request_id in zip(
            self._pending.take_each(ids), records, headers_of, ids, strict=True
        ):
            if future is None:
                self._count_stray(request_id)
            else:
                (failures if ERROR_CODE in headers else answers).append((future, record))
        # Counted first: who is told may look.
        self._lags.add([(now - future.sent_at) * 1000 for future, _ in itertools.chain(answers, failures)])
        self._failed += len(failures)
        self._answered += len(answers)
        ResponseFuture.complete_all(answers, wakes)
        for future, record in failures:
            future.fail(_failure(record), wakes)
        wakes.wake()

    def _count_stray(self, request_id: bytes) -> None:
        if self._pending.is_own(request_id):
            self._late += 1
        else:
            self._orphans += 1

    def _watch(self) -> None:
        """Deadlines have a thread of their own: they pass while a provider that is away keeps the reader waiting."""
        while self._pending.wait_until_due(self._clock, self.options.poll_interval_ms / 1000):
            self._end_expired()

    def _end_expired(self) -> None:
        """A call of its own: what waited is not kept until others' time is up."""
        wakes = Wakes()
        expired = self._pending.take_expired(self._clock.monotonic())
        # Counted first: who is told may look.
        self._timed_out += len(expired)
        for future in expired:
            future.fail(self._timeout(future), wakes)
        wakes.wake()

    def _timeout(self, future: ResponseFuture) -> RequestTimeout:
        waited_ms = round((future.deadline - future.sent_at) * 1000)
        return RequestTimeout(
            f"no answer from {self.topics.name} within {waited_ms} ms; whether it was worked on is not known, so ask "
            "again only what may be done twice",
            topic=self.topics.name,
            timeout_ms=waited_ms,
        )

    def _end(self, error: QueueError) -> None:
        """The reader cannot go on: no answer will be found any more."""
        self._refusal = error
        self._fail_all(error)

    def _fail_all(self, error: QueueError) -> None:
        wakes = Wakes()
        for future in self._pending.close():
            future.fail(copy(error), wakes)
        wakes.wake()


def _parts(message: QueueMessage | Message | bytes) -> QueueMessage:
    if isinstance(message, QueueMessage):
        return message
    return encode(message) if isinstance(message, Message) else QueueMessage(None, message)


def _failure(record: Record) -> RequestFailed:
    reply = ErrorReply.read(record.headers) or ErrorReply("", "")
    return RequestFailed(reply.message, error_code=reply.code)
