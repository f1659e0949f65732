"""Sending to the log: what waits for company, what waits for room, what is tried again, what is refused."""

import errno
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from queuecore.errors import InvalidMessage, PayloadTooLarge, ProviderUnavailable, QueueError, UnknownTopic
from queuecore.messages import UNKNOWN_OFFSET, QueueMessage, RecordMetadata
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.buffer import SendBuffer
from queuecore.providers.log.files import partition_dir, segment_bases
from queuecore.providers.log.segment import Segment
from queuecore.providers.log.sequences import Sequences
from queuecore.providers.options import ProducerOptions
from queuecore.sending import send, send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.log_partitions import INFO, PLACE, texts
from tests.processes import Child

OTHER = TopicPartitionInfo("other", 0)
TABLE = TopicPartitionInfo("table", 0)
# Longer than any test runs.
LONG_MS = int(10 * DEADLINE_S * 1000)


class Log:
    """Providers on one folder, each with its own options."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._open: list[LogProvider] = []
        self.open().admin().create_topics(
            [TopicSpec(PLACE.topic), TopicSpec("other.0"), TopicSpec("table.0", cleanup="compact")]
        )

    def open(self, **options: object) -> LogProvider:
        self._open.append(LogProvider(self.root, ProducerOptions(**options)))  # type: ignore[arg-type]
        return self._open[-1]

    def stored(self, info: TopicPartitionInfo = INFO) -> list[str]:
        with closing(self._open[0].reader()) as reader:
            return texts(reader.read(info.place, 0, 1_000_000))

    def batches(self) -> list[int]:
        """How many records there are in each."""
        folder = partition_dir(self.root, PLACE)
        sizes = []
        for base in segment_bases(folder):
            with closing(Segment(folder, base)) as segment:
                sizes += [header.records for _, header in segment.headers()]
        return sizes

    def close(self) -> None:
        for provider in self._open:
            provider.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with closing(Log(tmp_path)) as log:
        yield log


class Disk:
    """A disk that can be stopped, and can fail so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.goes = threading.Event()
        self.goes.set()
        self.waits = 0
        self.failures = 0
        self._fdatasync = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", self._wait)

    def _wait(self, descriptor: int) -> None:
        self.waits += 1
        assert self.goes.wait(DEADLINE_S)
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._fdatasync(descriptor)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(monkeypatch)
    yield disk
    disk.goes.set()


def ask(provider: LogProvider, *data: str, info: TopicPartitionInfo = INFO) -> "list[Future[RecordMetadata]]":
    producer = provider.producer()
    return [send(producer, info, QueueMessage(None, one.encode())) for one in data]


def results(futures: "list[Future[RecordMetadata]]") -> list[int]:
    return [future.result(DEADLINE_S).offset for future in futures]


# --- waiting for company


def test_what_is_sent_within_the_lingering_is_written_together(log: Log) -> None:
    provider, other = log.open(linger_ms=LONG_MS), log.open(acks="1")
    futures = ask(provider, "a", "b") + ask(provider, "c")
    for turn in range(20):  # others have long been answered meanwhile
        assert results(ask(other, "x", info=OTHER)) == [turn]
    assert not any(future.done() for future in futures)
    assert provider.producer().flush(DEADLINE_S)
    assert results(futures) == [0, 1, 2]
    assert log.batches() == [3]


def test_lingering_ends_by_itself(log: Log) -> None:
    assert results(ask(log.open(linger_ms=50), "a", "b", "c")) == [0, 1, 2]
    assert log.batches() == [3]


def test_enough_bytes_for_one_partition_end_the_lingering_of_all(log: Log) -> None:
    provider = log.open(linger_ms=LONG_MS, batch_size=10_000)
    few = ask(provider, "few", info=OTHER)
    many = ask(provider, *["x" * 1_000] * 20)
    assert results(few) == [0]
    assert results(many[:5]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("how", ["stop", "close"])
def test_stopping_does_not_wait_for_company(log: Log, how: str) -> None:
    provider = log.open(linger_ms=LONG_MS)
    producer = provider.producer()
    future = send(producer, INFO, QueueMessage(None, b"a"))
    producer.stop() if how == "stop" else provider.close()
    assert future.result(0).offset == 0
    with pytest.raises(ProviderUnavailable, match="stopped; open a new one"):
        producer.send(INFO, QueueMessage(None, b"b"), lambda *_: None)


def test_a_batch_of_a_partition_is_no_larger_than_a_request_may_be(log: Log, disk: Disk) -> None:
    provider = log.open(max_request_size=20_000)
    disk.goes.clear()
    futures = ask(provider, *["x" * 1_000] * 100)
    disk.goes.set()
    assert results(futures) == list(range(100))
    assert max(log.batches()) <= 20
    assert len(log.batches()) < 20


# --- waiting for room


def test_a_full_buffer_makes_senders_wait_until_there_is_room(log: Log, disk: Disk) -> None:
    provider = log.open(buffer_memory=20_000, max_request_size=20_000, max_block_ms=LONG_MS)
    producer = provider.producer()
    disk.goes.clear()
    futures: list[Future[RecordMetadata]] = []

    def flood() -> None:
        futures.extend(send(producer, INFO, QueueMessage(None, bytes(1_000))) for _ in range(100))

    sender = threading.Thread(target=flood)
    sender.start()
    wait_until(lambda: len(futures) == 17)
    assert not producer.flush(0.05)
    assert len(futures) == 17
    disk.goes.set()
    sender.join(DEADLINE_S)
    assert results(futures) == list(range(100))


def test_a_buffer_that_stays_full_refuses_and_takes_again_once_there_is_room(log: Log, disk: Disk) -> None:
    provider = log.open(buffer_memory=10_000, max_request_size=10_000, max_block_ms=50)
    disk.goes.clear()
    accepted = ask(provider, *["x" * 1_000] * 8)
    with pytest.raises(ProviderUnavailable, match=r"9024 bytes wait to be written and made no room for 50 ms; look at"):
        ask(provider, "x" * 1_000)
    disk.goes.set()
    assert results(accepted) == list(range(8))
    assert results(ask(provider, "again")) == [8]


def test_who_has_less_time_waits_no_longer_for_room(log: Log, disk: Disk) -> None:
    provider = log.open(buffer_memory=10_000, max_request_size=10_000, max_block_ms=10 * LONG_MS)
    disk.goes.clear()
    accepted = ask(provider, *["x" * 1_000] * 8)
    with pytest.raises(ProviderUnavailable, match="made no room for 20 ms"):
        provider.producer().send(INFO, QueueMessage(None, bytes(1_000)), lambda *_: None, 0.02)
    disk.goes.set()
    assert results(accepted) == list(range(8))


def test_one_message_as_large_as_the_buffer_is_taken_when_nothing_else_waits(log: Log) -> None:
    provider = log.open(buffer_memory=1_000, max_request_size=1_000)
    for _ in range(3):
        assert provider.producer().flush(DEADLINE_S)
        [future] = ask(provider, "x" * 980)
        future.result(DEADLINE_S)
    assert [len(one) for one in log.stored()] == [980] * 3


def test_who_waits_for_room_is_told_when_the_producer_is_closed() -> None:
    options = ProducerOptions(buffer_memory=1_000, max_request_size=1_000, max_block_ms=LONG_MS)
    buffer = SendBuffer(options, ManualClock())
    buffer.put(INFO, QueueMessage(None, bytes(800)), lambda *_: None)
    told: Future[None] = Future()

    def put() -> None:
        try:
            buffer.put(INFO, QueueMessage(None, bytes(800)), lambda *_: None)
        except ProviderUnavailable as error:
            told.set_exception(error)

    threading.Thread(target=put, daemon=True).start()
    assert not told.done()
    buffer.close()
    with pytest.raises(ProviderUnavailable, match="stopped"):
        told.result(DEADLINE_S)


@pytest.mark.parametrize("when", ["before the last look", "after it"])
def test_a_message_that_comes_while_the_buffer_closes_is_written_or_refused(when: str) -> None:
    """Its sender saw room, and another thread had its turn before it put the message there."""
    buffer = SendBuffer(ProducerOptions(), ManualClock())
    answers: list[QueueError | None] = []
    observer = Observer()

    def put_late(inbox: list[object]) -> None:
        inbox.extend((PLACE, QueueMessage(None, b"late"), lambda _, error: answers.append(error), observer))
        if buffer._taker_sleeps:
            buffer._wake_taker()

    class Inbox(list[object]):
        looks = 0

        def __getitem__(self, part: object) -> object:
            found = super().__getitem__(part)  # type: ignore[index]
            Inbox.looks += 1
            if when == "before the last look" and Inbox.looks == 1:
                put_late(self)
            return found

    buffer._inbox = Inbox()
    buffer.close()
    taken = buffer.take()
    if when == "after it":
        put_late(buffer._inbox)
    written = [message.data for chunk in taken for message in chunk.messages]
    assert (written, len(answers)) in (([b"late"], 0), ([], 1))
    assert observer.told == [("refused", PLACE.topic, [b"late"])] * len(answers)
    assert buffer.take() == []


# --- acks


def test_acks_all_waits_for_the_disk_and_acks_1_does_not(log: Log, disk: Disk) -> None:
    disk.goes.clear()
    assert results(ask(log.open(acks="1"), "at once")) == [0]
    [waiting] = ask(log.open(acks="all"), "later")
    wait_until(lambda: disk.waits == 1)
    assert not waiting.done()
    assert log.stored() == ["at once"]
    disk.goes.set()
    assert results([waiting]) == [1]
    assert log.stored() == ["at once", "later"]


def test_acks_0_is_answered_before_anyone_knows_where(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    provider = log.open(acks="0")
    assert results(ask(provider, "a", "b")) == [UNKNOWN_OFFSET] * 2
    assert provider.producer().flush(DEADLINE_S)
    assert log.stored() == ["a", "b"]
    (partition_dir(log.root, PLACE) / "append.lock").unlink()
    [segment] = partition_dir(log.root, PLACE).glob("*.log")
    segment.write_bytes(b"")
    [unknown] = ask(log.open(acks="0"), "lost")
    assert unknown.result(DEADLINE_S).offset == UNKNOWN_OFFSET
    wait_until(lambda: "1 messages that were sent with acks=0 to topic.0[0] are lost" in caplog.text)


# --- trying again


def test_a_failed_wait_for_the_disk_is_tried_again_and_stores_once(log: Log, disk: Disk) -> None:
    provider = log.open(retries=2)
    disk.failures = 2
    assert results(ask(provider, "a", "b")) in ([0, 1], [0, 2], [1, 2])
    assert sorted(log.stored()) == ["a", "b"]


def test_what_is_given_up_is_told_and_the_next_is_not_taken_for_it(log: Log, disk: Disk) -> None:
    """The first is in the log after all, but was never confirmed; the second must be stored, not mistaken for it."""
    provider = log.open(retries=1)
    results(ask(provider, "before"))
    disk.failures = 2
    [given_up] = ask(provider, "given up")
    with pytest.raises(ProviderUnavailable, match=r"did not confirm that offset 1 is stored: .*; mend the disk"):
        given_up.result(DEADLINE_S)
    [stored] = ask(provider, "the next")
    assert results([stored]) == [2]
    assert log.stored() == ["before", "given up", "the next"]
    assert results(ask(provider, "and on")) == [3]


def test_without_retries_a_failure_is_told_at_once(log: Log, disk: Disk) -> None:
    provider = log.open(retries=0)
    disk.failures = 1
    with pytest.raises(ProviderUnavailable):
        results(ask(provider, "a"))
    assert disk.waits == 1
    results(ask(provider, "b"))
    assert log.stored()[-1] == "b"


def test_a_write_that_failed_is_tried_again(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = log.open(retries=1)
    results(ask(provider, "before"))
    writev, failures = os.writev, [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))]

    def failing(descriptor: int, parts: list[bytes]) -> int:
        if failures:
            os.write(descriptor, b"half")
            raise failures.pop()
        return writev(descriptor, parts)

    monkeypatch.setattr(os, "writev", failing)
    assert results(ask(provider, "again")) == [1]
    assert log.stored() == ["before", "again"]


# --- flushing


def test_flush_waits_for_what_was_sent_before_it_and_not_for_what_others_go_on_sending(log: Log) -> None:
    provider = log.open(acks="1")
    over = threading.Event()

    def go_on(info: TopicPartitionInfo) -> None:
        producer = provider.producer()
        while not over.is_set():
            producer.send(info, QueueMessage(None, b"others"), lambda *_: None)

    others = [threading.Thread(target=go_on, args=[info]) for info in (OTHER, INFO)]
    for thread in others:
        thread.start()
    try:
        for _ in range(30):
            futures = ask(provider, "mine", "mine")
            assert provider.producer().flush(DEADLINE_S)
            assert all(future.done() for future in futures)
    finally:
        over.set()
        for thread in others:
            thread.join(DEADLINE_S)


def test_flush_says_when_the_time_was_not_enough(log: Log, disk: Disk) -> None:
    provider = log.open()
    disk.goes.clear()
    futures = ask(provider, "a")
    assert not provider.producer().flush(0.02)
    disk.goes.set()
    assert provider.producer().flush(DEADLINE_S)
    assert futures[0].done()


def test_a_stopped_producer_leaves_the_others_alone(log: Log) -> None:
    provider = log.open()
    one, other = provider.producer(), provider.producer()
    one.stop()
    one.stop()
    assert send_and_wait(other, INFO, QueueMessage(None, b"a"), DEADLINE_S).offset == 0
    with pytest.raises(ProviderUnavailable, match="stopped"):
        one.send(INFO, QueueMessage(None, b"b"), lambda *_: None)


# --- callbacks


def test_a_callback_that_raises_harms_nobody_else(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    provider = log.open(linger_ms=LONG_MS)
    producer = provider.producer()

    def fail(metadata: RecordMetadata | None, error: QueueError | None) -> None:
        raise ValueError("a bug of the caller's")

    first = send(producer, INFO, QueueMessage(None, b"first"))
    producer.send(INFO, QueueMessage(None, b"second"), fail)
    third = send(producer, INFO, QueueMessage(None, b"third"))
    producer.send(TopicPartitionInfo("nothing", 0), QueueMessage(None, b"refused"), fail)
    assert producer.flush(DEADLINE_S)
    assert results([first, third]) == [0, 2]
    assert "a send callback raised; its message was stored" in caplog.text
    assert "a send callback raised; its message was refused" in caplog.text
    ask(provider, "fourth")
    assert producer.flush(DEADLINE_S)
    assert log.stored() == ["first", "second", "third", "fourth"]


def stop_in_a_callback(parent: Connection, root: Path) -> None:
    with closing(LogProvider(root)) as provider:
        producer = provider.producer()
        done: Future[RecordMetadata] = Future()

        def answer(metadata: RecordMetadata | None, error: QueueError | None) -> None:
            message = QueueMessage(None, b"sent by a callback")
            producer.send(INFO, message, lambda metadata, _: done.set_result(metadata))
            producer.stop()

        producer.send(INFO, QueueMessage(None, b"first"), answer)
        parent.send(done.result(DEADLINE_S).offset)


def test_a_callback_may_send_and_stop(tmp_path: Path) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
    with Child(stop_in_a_callback, tmp_path) as child:
        assert child.hear() == 1


# --- many partitions


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_more_partitions_than_can_be_open_are_written_in_turn(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(sequences: Sequences, producer: int) -> None:
        raise AssertionError("a producer knows what it wrote, and need not look for it")

    monkeypatch.setattr(Sequences, "_search", search)
    provider = log.open(acks="1")
    provider.admin().create_topics([TopicSpec("many", partitions=150)])
    infos = [TopicPartitionInfo("many", number, use_internal_partition=True) for number in range(150)]
    before = open_descriptors()
    for turn in range(3):
        futures = [ask(provider, f"{turn} {number}", info=info)[0] for number, info in enumerate(infos)]
        assert results(futures) == [turn] * 150
    assert open_descriptors() - before < 70 * 5
    for number in (0, 77, 149):
        assert log.stored(infos[number]) == [f"{turn} {number}" for turn in range(3)]


# --- what is refused


def test_a_compacted_topic_takes_no_message_without_a_key(log: Log) -> None:
    provider = log.open(linger_ms=LONG_MS)
    producer = provider.producer()
    good = [send(producer, TABLE, QueueMessage(key, b"good")) for key in (b"a", b"b")]
    bad = send(producer, TABLE, QueueMessage(None, b"bad"))
    more = send(producer, TABLE, QueueMessage(b"c", b"good"))
    assert producer.flush(DEADLINE_S)
    assert results([*good, more]) == [0, 1, 2]
    with pytest.raises(InvalidMessage, match="give the message a key"):
        bad.result(0)
    assert log.stored(TABLE) == ["good"] * 3


@pytest.mark.parametrize(
    "bad",
    [
        QueueMessage("text", b""),
        QueueMessage(None, b"", {"name": "text"}),
        QueueMessage(None, b"", {"n" * 70_000: b""}),
        QueueMessage(None, "text"),
    ],
    ids=["key", "header", "header name", "data"],
)
def test_a_message_that_cannot_be_encoded_is_refused_alone(log: Log, bad: QueueMessage) -> None:
    provider = log.open(linger_ms=LONG_MS)
    futures = ask(provider, "before")
    refused = send(provider.producer(), INFO, bad)
    futures += ask(provider, "behind")
    assert provider.producer().flush(DEADLINE_S)
    assert results(futures) == [0, 1]
    with pytest.raises(InvalidMessage, match=r"the message cannot be encoded: .*; mend its key, headers or data"):
        refused.result(0)


@pytest.mark.parametrize("where", ["data", "key", "headers"])
def test_a_message_that_is_too_large_is_refused_alone(log: Log, where: str) -> None:
    provider = log.open(max_request_size=1_000, linger_ms=LONG_MS)
    large = {
        "data": QueueMessage(None, bytes(1_000)),
        "key": QueueMessage(bytes(1_000), b""),
        "headers": QueueMessage(None, b"", {"name": bytes(1_000)}),
    }[where]
    futures = ask(provider, "before")
    refused = send(provider.producer(), INFO, large)
    futures += ask(provider, "behind")
    assert provider.producer().flush(DEADLINE_S)
    assert results(futures) == [0, 1]
    with pytest.raises(PayloadTooLarge, match=r"the message has 1\d\d\d bytes with key and headers; 1000 is the most"):
        refused.result(0)


# --- topics that change


def test_a_topic_that_is_deleted_and_made_anew_is_written_from_its_beginning(log: Log) -> None:
    provider, admin = log.open(), log.open().admin()
    assert results(ask(provider, "old", "old")) == [0, 1]
    admin.delete_topics([PLACE.topic])
    [lost] = ask(provider, "lost")
    with pytest.raises(UnknownTopic, match="create it first"):
        lost.result(DEADLINE_S)
    admin.create_topics([TopicSpec(PLACE.topic)])
    assert results(ask(provider, "new")) == [0]
    admin.delete_topics([PLACE.topic])
    admin.create_topics([TopicSpec(PLACE.topic)])
    assert results(ask(provider, "newer", "newer still")) == [0, 1]
    assert log.stored() == ["newer", "newer still"]


def test_a_change_of_a_topic_is_noticed_after_a_while(tmp_path: Path) -> None:
    clock = ManualClock()
    with closing(LogProvider(tmp_path, clock=clock)) as provider:
        spec = TopicSpec(PLACE.topic, segment_bytes=10 * 1024 * 1024)
        provider.admin().create_topics([spec])
        folder = partition_dir(tmp_path, PLACE)
        results(ask(provider, *["x" * 1_000_000] * 3))
        provider.admin().alter_topics([TopicSpec(PLACE.topic, segment_bytes=1024 * 1024)])
        clock.advance(11)
        results(ask(provider, "small"))
        assert len(segment_bases(folder)) == 2


def test_no_thread_of_the_log_dies_of_an_error_of_ours(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    provider = log.open()
    results(ask(provider, "before"))
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr("queuecore.providers.log.writers.PartitionWriter.append", _fail)
        with pytest.raises(QueueError, match=r"cannot write topic\.0\[0\]: .*; the log has the details"):
            results(ask(provider, "refused"))
    assert "1 messages were refused" in caplog.text
    assert results(ask(provider, "after")) == [1]


_fail: Callable[..., int] = {}.__getitem__


class Observer:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, list[bytes]]] = []

    def stored(self, place: ProviderPartition, messages: Sequence[QueueMessage]) -> None:
        self.told.append(("stored", place.topic, [message.data for message in messages]))

    def refused(self, place: ProviderPartition, messages: Sequence[QueueMessage]) -> None:
        self.told.append(("refused", place.topic, [message.data for message in messages]))


class TestObserved:
    def test_of_each_message_once_and_before_its_callback(self, log: Log) -> None:
        observer, heard = Observer(), list[int]()
        producer = log.open().producer().observed(observer)
        messages = [QueueMessage(b"k", data) for data in (b"a", b"b", b"c")]
        producer.send_many(
            [
                (INFO, message, lambda *_: heard.append(sum(len(one[2]) for one in observer.told)))
                for message in messages
            ]
        )
        send_and_wait(producer, OTHER, QueueMessage(None, b"d"), DEADLINE_S)
        assert [one for one in observer.told if one[1] == "other.0"] == [("stored", "other.0", [b"d"])]
        told = [
            data for how, topic, batch in observer.told if (how, topic) == ("stored", PLACE.topic) for data in batch
        ]
        assert told == [b"a", b"b", b"c"]
        assert len(heard) == 3
        assert min(heard) > 0

    def test_not_of_what_others_send(self, log: Log) -> None:
        observer, other = Observer(), Observer()
        provider = log.open(linger_ms=LONG_MS)
        plain = provider.producer()
        for producer, data in ((plain.observed(observer), b"a"), (plain, b"b"), (plain.observed(other), b"c")):
            producer.send(INFO, QueueMessage(None, data), lambda *_: None)
        assert plain.flush(DEADLINE_S)
        assert log.stored() == ["a", "b", "c"]
        assert log.batches() == [3]
        assert (observer.told, other.told) == (
            [("stored", PLACE.topic, [b"a"])],
            [("stored", PLACE.topic, [b"c"])],
        )

    def test_what_cannot_be_stored_is_refused_beside_what_can(self, log: Log) -> None:
        observer = Observer()
        producer = log.open(linger_ms=LONG_MS).producer().observed(observer)
        answers: list[QueueError | None] = []
        for message in (QueueMessage(b"k", b"good"), QueueMessage(None, b"no key")):
            producer.send(TABLE, message, lambda _, error: answers.append(error))
        producer.send(TopicPartitionInfo("nowhere"), QueueMessage(None, b"x"), lambda _, error: answers.append(error))
        assert producer.flush(DEADLINE_S)
        assert sorted(observer.told) == [
            ("refused", "nowhere", [b"x"]),
            ("refused", "table.0", [b"no key"]),
            ("stored", "table.0", [b"good"]),
        ]
        assert [type(error) for error in answers] == [InvalidMessage, type(None), UnknownTopic]

    def test_what_finds_no_room_is_refused(self, log: Log) -> None:
        observer = Observer()
        provider = log.open(buffer_memory=1_000, max_request_size=1_000, max_block_ms=0, linger_ms=LONG_MS)
        producer = provider.producer().observed(observer)
        producer.send(INFO, QueueMessage(None, bytes(800)), lambda *_: None)
        with pytest.raises(ProviderUnavailable):
            producer.send(INFO, QueueMessage(None, b"x" * 800), lambda *_: None)
        producer.send_many([(INFO, QueueMessage(None, b"y" * 800), lambda *_: None)])
        assert observer.told == [("refused", PLACE.topic, [b"x" * 800]), ("refused", PLACE.topic, [b"y" * 800])]

    def test_one_that_raises_costs_nobody_an_answer(self, log: Log, caplog: pytest.LogCaptureFixture) -> None:
        class Raising(Observer):
            def stored(self, place: ProviderPartition, messages: Sequence[QueueMessage]) -> None:
                raise ValueError("no")

            def refused(self, place: ProviderPartition, messages: Sequence[QueueMessage]) -> None:
                raise ValueError("no")

        provider = log.open(buffer_memory=1_000, max_request_size=1_000, max_block_ms=0, linger_ms=LONG_MS)
        producer = provider.producer().observed(Raising())
        answers: list[QueueError | None] = []
        sends = [(INFO, QueueMessage(None, data), lambda _, error: answers.append(error)) for data in 2 * [bytes(800)]]
        producer.send_many(sends)
        with pytest.raises(ProviderUnavailable, match="wait to be written"):
            producer.send(*sends[0])
        assert producer.flush(DEADLINE_S)
        assert [type(error) for error in answers] == [ProviderUnavailable, type(None)]
        assert caplog.text.count("who observes what is sent to") == 3

    def test_what_is_sent_after_the_end_is_refused(self, log: Log) -> None:
        observer = Observer()
        producer = log.open().producer().observed(observer)
        producer.stop()
        answers: list[QueueError | None] = []
        with pytest.raises(ProviderUnavailable, match="has been stopped"):
            producer.send(INFO, QueueMessage(None, b"a"), lambda *_: None)
        producer.send_many([(INFO, QueueMessage(None, b"b"), lambda _, error: answers.append(error))])
        assert observer.told == [("refused", PLACE.topic, [b"a"]), ("refused", PLACE.topic, [b"b"])]
        assert [type(error) for error in answers] == [ProviderUnavailable]
