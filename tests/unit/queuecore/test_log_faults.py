"""Deaths and errors at the worst moment, on the log."""

import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from queuecore.errors import CorruptLog, ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider, removal
from queuecore.providers.log.files import partition_dir, segment_path
from queuecore.providers.log.index import IndexWriter
from queuecore.providers.log.page import PartitionPage
from queuecore.providers.log.writer import PartitionWriter
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo

INFO = TopicPartitionInfo("topic", 0, use_internal_partition=True)
PLACE = INFO.place
POLL_MS = 50


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def provider(root: Path) -> Iterator[LogProvider]:
    with closing(LogProvider(root)) as provider:
        provider.admin().create_topics([TopicSpec("topic")])
        yield provider


def put(provider: LogProvider, *data: bytes) -> list[int]:
    return [send_and_wait(provider.producer(), INFO, QueueMessage(None, one), DEADLINE_S).offset for one in data]


def got(provider: LogProvider, group: str, count: int) -> list[bytes]:
    consumer = provider.consumer(group)
    consumer.subscribe([INFO])
    found: list[bytes] = []

    def enough() -> bool:
        found.extend(record.data for record in consumer.poll(POLL_MS))
        return len(found) >= count

    try:
        wait_until(enough)
        consumer.commit()
    finally:
        consumer.stop()
    return found


def forget_the_boot(root: Path) -> None:
    """As after a restart of the machine: neither the log nor the partition's page is of this one."""
    (root / "boot").write_bytes(bytes(16))
    page = partition_dir(root, PLACE) / "state"
    raw = bytearray(page.read_bytes())
    raw[32:48] = bytes(16)
    page.write_bytes(raw)


def test_a_topic_whose_deletion_was_cut_short_is_created_anew_without_its_past(provider: LogProvider) -> None:
    put(provider, b"old", b"old")
    assert got(provider, "group", 2) == [b"old", b"old"]
    with closing(PartitionWriter(provider._root, PLACE)) as writer:
        writer.mark_removed()
    provider.admin().create_topics([TopicSpec("topic", retention_ms=1_000_000)])
    assert provider.admin().topics()["topic"].retention_ms == 1_000_000
    assert put(provider, b"new") == [0]
    assert got(provider, "group", 1) == [b"new"]


def test_a_commit_in_the_middle_of_a_deletion_does_not_outlive_it(
    provider: LogProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(provider, b"old")
    consumer = provider.consumer("group")
    consumer.subscribe([INFO])
    wait_until(lambda: consumer.poll(POLL_MS))
    forgotten = provider._catalog.delete_topic

    def forget_and_commit(name: str) -> None:
        forgotten(name)
        consumer.commit()

    monkeypatch.setattr(provider._catalog, "delete_topic", forget_and_commit)
    provider.admin().delete_topics(["topic"])
    assert provider.admin().committed_offsets({"group": [PLACE]}) == {"group": {}}
    consumer.stop()


def test_after_a_power_cut_no_group_passes_over_what_takes_the_place_of_lost_records(root: Path) -> None:
    with closing(LogProvider(root, ProducerOptions(acks="1"))) as provider:
        provider.admin().create_topics([TopicSpec("topic")])
        put(provider, *[b"before"] * 5)
        size = segment_path(partition_dir(root, PLACE), 0).stat().st_size
        put(provider, *[b"lost"] * 5)
        assert len(got(provider, "group", 10)) == 10
    with segment_path(partition_dir(root, PLACE), 0).open("r+b") as segment:
        segment.truncate(size)
    forget_the_boot(root)
    with closing(LogProvider(root)) as provider:
        assert put(provider, b"after") == [5]
        assert got(provider, "group", 1) == [b"after"]


def test_what_was_on_disk_is_never_taken_for_a_torn_tail(root: Path) -> None:
    with closing(LogProvider(root)) as provider:
        provider.admin().create_topics([TopicSpec("topic")])
        put(provider, b"0", b"1", b"2")
    path = segment_path(partition_dir(root, PLACE), 0)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    forget_the_boot(root)
    with closing(LogProvider(root)) as provider, pytest.raises(CorruptLog):
        put(provider, b"3")
    assert path.read_bytes() == raw


def test_a_batch_that_was_stored_in_spite_of_an_error_is_not_taken_for_the_next(
    provider: LogProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = provider.transactional_producer("mine")
    transaction = producer.begin()
    transaction.send(INFO, QueueMessage(None, b"interrupted"))

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PartitionPage, "publish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            transaction.commit()
    with producer.begin() as transaction:
        transaction.send(INFO, QueueMessage(None, b"committed"))
    producer.stop()
    assert got(provider, "group", 1) == [b"committed"]


def test_an_index_that_cannot_be_opened_closes_nobody_elses_file(
    root: Path, provider: LogProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(provider, b"0")
    with closing(PartitionWriter(root, PLACE)) as writer:
        writer.recover()

        def refuse(*_: Any) -> None:
            raise OSError(24, "Too many open files")

        with monkeypatch.context() as patched:
            patched.setattr(IndexWriter, "__init__", refuse)
            with pytest.raises(OSError, match="Too many"):
                writer.roll()
        innocents = [path.open("wb") for path in (root / "a", root / "b", root / "c")]
        writer.recover()
        for one in innocents:
            one.write(b"still mine")
            one.close()
    assert put(provider, b"1") == [1]


def test_waiting_for_a_partition_whose_topic_is_deleted(provider: LogProvider) -> None:
    consumer = provider.consumer("group")
    consumer.subscribe([INFO])
    wait_until(lambda: consumer.poll(POLL_MS) == [] and consumer.partitions)
    deleting = threading.Timer(0.1, provider.admin().delete_topics, [["topic"]])
    deleting.start()
    assert consumer.poll(1_000) == []
    deleting.join()
    wait_until(lambda: consumer.poll(POLL_MS) == [] and not consumer.partitions)
    consumer.stop()


def test_a_callback_that_ends_its_thread_ends_nothing_else(provider: LogProvider) -> None:
    def leave(_metadata: RecordMetadata | None, _error: QueueError | None) -> None:
        raise SystemExit

    provider.producer().send(INFO, QueueMessage(None, b"0"), leave)
    assert put(provider, b"1") == [1]


def test_what_is_no_partition_is_refused_at_once(provider: LogProvider) -> None:
    with pytest.raises(AttributeError):
        provider.producer().send(None, QueueMessage(None, b"0"), lambda *_: None)  # type: ignore[arg-type]
    assert put(provider, b"1") == [0]


def test_a_callback_may_close_the_provider(provider: LogProvider) -> None:
    closed = threading.Event()

    def close(_metadata: RecordMetadata | None, _error: QueueError | None) -> None:
        provider.close()
        closed.set()

    provider.producer().send(INFO, QueueMessage(None, b"0"), close)
    assert closed.wait(DEADLINE_S)


def test_a_callback_waits_for_nothing_that_waits_for_it(root: Path) -> None:
    options = ProducerOptions(buffer_memory=1_000, max_request_size=1_000)
    answers: list[object] = []
    with closing(LogProvider(root, options)) as provider:
        provider.admin().create_topics([TopicSpec("topic")])
        producer = provider.producer()

        def ask(_metadata: RecordMetadata | None, _error: QueueError | None) -> None:
            answers.append(producer.flush(DEADLINE_S))
            with suppress(ProviderUnavailable):
                producer.send(INFO, QueueMessage(None, bytes(900)), lambda *_: None)
                answers.append("sent")

        producer.send(INFO, QueueMessage(None, bytes(800)), ask)
        wait_until(lambda: answers)
    assert answers == [False]


def test_members_that_judge_silence_differently_leave_each_other_alone(root: Path, provider: LogProvider) -> None:
    provider.admin().alter_topics([TopicSpec("topic", partitions=2)])
    quick = LogProvider(root, consuming=ConsumerOptions(session_timeout_ms=200))
    patient, hasty = provider.consumer("group", "topic"), quick.consumer("group", "topic")
    lost: list[object] = []

    class Listener:
        def assigned(self, partitions: object) -> None: ...

        def revoked(self, partitions: object) -> None: ...

        def lost(self, partitions: object) -> None:
            lost.append(partitions)

    patient.subscribe(listener=Listener())
    hasty.subscribe()
    wait_until(
        lambda: not patient.poll(POLL_MS) and not hasty.poll(POLL_MS) and patient.partitions and hasty.partitions
    )
    for _ in range(20):
        patient.poll(POLL_MS)
        hasty.poll(POLL_MS)
    assert not lost
    patient.stop()
    hasty.stop()
    quick.close()


def test_a_deletion_is_finished_by_whoever_cleans(root: Path, provider: LogProvider) -> None:
    put(provider, b"0")
    with closing(PartitionWriter(root, PLACE)) as writer:
        writer.mark_removed()
    assert removal.is_marked(root, "topic")
    provider.admin().clean()
    assert provider.admin().topics() == {}
