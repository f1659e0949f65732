"""Requests over confluent-kafka alone, as one who needs nothing else would write them.

A request has its id and where the answer goes in headers; who asks has a dict of those that are pending, a thread that
reads the answers, and the partitions in turn. Who answers commits a pack when its last answer is stored: there is one
response partition, so all before it are. Batches, lingering, acknowledgements and fetching are ours. There are no
timeouts, no limit, and nobody is told of an error but on the console.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from queuecore.providers.kafka.settings import consumer_settings, producer_settings
from queuecore.providers.options import DEFAULT_CONSUMING, DEFAULT_KAFKA
from tests.benchmarks.kafka_broker import BY_DEFAULT
from tests.benchmarks.requests_load import Load, one_by_one
from tests.benchmarks.requests_ours import Measured, warmed

_NOTHING: Final[Mapping[str, bool]] = {}
_ID: Final = "id"
_REPLY_TO: Final = "reply-to"
_POLL_S: Final = 0.1
# How many are taken at once; of more than these, each takes longer.
_PIECE: Final = 512
_PRODUCER_POLL_EVERY: Final = 1_000
_COMMIT_EVERY_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Topics:
    """Both exist, the one for answers with one partition."""

    servers: str
    requests: str
    partitions: int
    responses: str


class Asking:
    """For one thread that asks. Callbacks get the answer's data, on the thread that reads."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        # What was stored is told by its answer.
        self._producer = _producer(topics.servers, {"delivery.report.only.error": True})
        self._life = os.urandom(8)
        self._numbers = itertools.count()
        self._pending: dict[bytes, Callable[[Any], None]] = {}
        self._is_stopping = False
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> "Asking":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_stopping = True
        self._thread.join()
        self._producer.flush()

    def ask(self, data: bytes, told: Callable[[bytes], None]) -> None:
        number = next(self._numbers)
        request_id = self._life + number.to_bytes(8)
        self._pending[request_id] = told
        topics = self._topics
        headers: dict[str, str | bytes | None] = {_ID: request_id, _REPLY_TO: topics.responses}
        # By position: named arguments take longer.
        self._producer.produce(topics.requests, data, None, number % topics.partitions, _delivered, None, 0, headers)
        if number % _PRODUCER_POLL_EVERY == 0:
            self._producer.poll(0)

    def _read(self) -> None:
        pending = self._pending
        with closing(_consumer(self._topics.servers, f"{self._topics.responses}-reader")) as consumer:
            consumer.assign([TopicPartition(self._topics.responses, 0, 0)])
            while not self._is_stopping:
                for message in _take(consumer):
                    pending.pop(_headers(message)[_ID])(message.value())


class Answering:
    """On a thread of its own."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._producer = _producer(topics.servers)
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        # Up to where requests have their answers stored, and this is not committed.
        self._stored: dict[tuple[Any, Any], int] = {}
        self._committed_at = time.monotonic()

    def __enter__(self) -> "Answering":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_stopping = True
        self._thread.join()

    def _run(self) -> None:
        with closing(_consumer(self._topics.servers, f"{self._topics.requests}-responders")) as consumer:
            consumer.subscribe([self._topics.requests])
            while not self._is_stopping:
                if pack := _take(consumer):
                    self._answer(pack)
                self._producer.poll(0)
                self._commit(consumer)
            self._producer.flush()
            self._commit(consumer, at_once=True)

    def _answer(self, pack: list[Message]) -> None:
        produce = self._producer.produce
        for message in pack[:-1]:
            headers = _headers(message)
            produce(headers[_REPLY_TO].decode(), message.value(), None, 0, _delivered, None, 0, {_ID: headers[_ID]})
        ends = {(one.topic(), one.partition()): (one.offset() or 0) + 1 for one in pack}
        last = _headers(pack[-1])

        def stored(error: KafkaError | None, _message: Message) -> None:
            _delivered(error, _message)
            self._stored |= ends

        produce(last[_REPLY_TO].decode(), pack[-1].value(), None, 0, stored, None, 0, {_ID: last[_ID]})

    def _commit(self, consumer: Consumer, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._stored and (at_once or now - self._committed_at >= _COMMIT_EVERY_S):
            self._committed_at = now
            offsets = [TopicPartition(topic, partition, end) for (topic, partition), end in self._stored.items()]
            self._stored = {}
            consumer.commit(offsets=offsets, asynchronous=True)


@contextmanager
def answering(topics: Topics) -> Iterator[Callable[[], None]]:
    with Answering(topics):
        yield lambda: None


@contextmanager
def asking(topics: Topics, measured: Measured) -> Iterator[Callable[[], float]]:
    with Asking(topics) as requests:
        load = warmed(Load(one_by_one(requests.ask), lambda data: data))
        yield lambda: measured(load)


def _take(consumer: Consumer) -> list[Message]:
    """What is there, or what comes first: `consume` alone would wait until it has as many as it may give."""
    first = consumer.poll(_POLL_S)
    if first is None:
        return []
    pack = [first, *consumer.consume(_PIECE - 1, 0)]
    for message in pack:
        if (error := message.error()) is not None:
            raise KafkaException(error)
    return pack


def _headers(message: Message) -> dict[str, Any]:
    return dict(message.headers() or ())


def _delivered(error: KafkaError | None, _message: Message) -> None:
    if error is not None:
        raise KafkaException(error)


def _producer(servers: str, further: Mapping[str, bool] = _NOTHING) -> Producer:
    settings: dict[str, Any] = dict(producer_settings(BY_DEFAULT, DEFAULT_KAFKA))
    return Producer({**settings, **further, "bootstrap.servers": servers})


def _consumer(servers: str, group: str) -> Consumer:
    settings: dict[str, Any] = dict(consumer_settings(DEFAULT_CONSUMING, DEFAULT_KAFKA, grows=False))
    return Consumer(settings | {"bootstrap.servers": servers, "group.id": group})
