"""Sending to the in-memory provider, beyond the contract: it is bounded, and full is no dead end."""

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from queuecore.errors import ConfigurationError, InvalidMessage, PartitionFull, ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import TopicSpec
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.providers.options import ProducerOptions
from queuecore.sending import send
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo

INFO = TopicPartitionInfo("t")
PLACE = INFO.place
OTHER = TopicPartitionInfo("other")
LONG_MS = int(DEADLINE_S * 1000)


def open_memory(storage: MemoryStorage, producing: ProducerOptions | None = None) -> MemoryProvider:
    provider = MemoryProvider(storage, producing=producing or ProducerOptions())
    provider.admin().create_topics([TopicSpec("t"), TopicSpec("other"), TopicSpec("many", partitions=4)])
    return provider


@pytest.fixture
def small() -> Iterator[MemoryProvider]:
    """Three messages per partition; what does not fit is refused."""
    with closing(open_memory(MemoryStorage(capacity=3, when_full="reject"))) as provider:
        yield provider


def fill(provider: MemoryProvider, count: int = 3, info: TopicPartitionInfo = INFO) -> list[QueueError | None]:
    producer = provider.producer()
    sent = [send(producer, info, QueueMessage(None, b"%d" % number)) for number in range(count)]
    return [error if isinstance(error := one.exception(DEADLINE_S), QueueError) else None for one in sent]


def ends(provider: MemoryProvider, info: TopicPartitionInfo = INFO) -> tuple[int, int]:
    admin = provider.admin()
    return admin.beginning_offsets([info.place])[info.place], admin.end_offsets([info.place])[info.place]


def test_a_partition_that_no_group_reads_keeps_what_it_has(small: MemoryProvider) -> None:
    errors = fill(small, 5)
    assert [type(error) for error in errors] == [type(None)] * 3 + [PartitionFull] * 2
    assert "no group reads it" in str(errors[-1])
    assert errors[-1] is not None
    assert errors[-1].retryable
    assert fill(small, 1, OTHER) == [None]
    assert ends(small) == (0, 3)


def test_what_every_group_has_done_makes_room(small: MemoryProvider) -> None:
    fill(small)
    small.admin().alter_group_offsets("quick", {PLACE: 3})
    small.admin().alter_group_offsets("slow", {PLACE: 1})
    errors = fill(small, 2)
    assert errors[0] is None
    assert "group slow needs those from 1 on" in str(errors[1])
    assert ends(small) == (1, 4)
    small.admin().delete_group_offsets("slow", [PLACE])
    assert fill(small, 1) == [None]
    assert ends(small) == (3, 5)


def test_a_group_with_members_needs_everything_until_it_commits(small: MemoryProvider) -> None:
    consumer = small.consumer("g")
    consumer.subscribe([INFO])
    fill(small)
    assert [type(error) for error in fill(small, 1)] == [PartitionFull]
    consumer.poll(0)
    consumer.commit()
    assert fill(small, 3) == [None] * 3
    assert [record.offset for record in consumer.poll(0)] == [3, 4, 5]


def test_deleted_records_make_room(small: MemoryProvider) -> None:
    fill(small)
    small.admin().delete_records({PLACE: 2})
    assert [type(error) for error in fill(small)] == [type(None), type(None), PartitionFull]


def test_a_compacted_partition_is_full_when_it_has_that_many_keys(small: MemoryProvider) -> None:
    small.admin().create_topics([TopicSpec("state", cleanup="compact")])
    producer, info = small.producer(), TopicPartitionInfo("state")

    def put(key: bytes) -> type[BaseException]:
        return type(send(producer, info, QueueMessage(key, b"x")).exception(DEADLINE_S))

    assert {put(key) for key in (b"a", b"b", b"c") * 1_000} == {type(None)}
    small.admin().alter_group_offsets("done", {info.place: 3_000})
    assert put(b"d") is PartitionFull
    assert put(b"b") is type(None)
    small.admin().delete_records({info.place: 2_998})
    assert put(b"d") is type(None)
    assert put(b"e") is PartitionFull


def test_a_sender_waits_for_room_and_goes_on_when_there_is_some() -> None:
    with closing(open_memory(MemoryStorage(capacity=3))) as provider:
        consumer, producer = provider.consumer("g"), provider.producer()
        consumer.subscribe([INFO])
        answers: list[RecordMetadata | None] = []
        sender = threading.Thread(
            target=lambda: [
                producer.send(INFO, QueueMessage(None, b"x"), lambda metadata, _: answers.append(metadata))
                for _ in range(100)
            ]
        )
        sender.start()
        offsets: list[int] = []
        while len(offsets) < 100:
            pack = consumer.poll(LONG_MS)
            assert len(pack) <= 3
            offsets += [record.offset for record in pack]
            consumer.commit()
        sender.join()
        assert producer.flush(DEADLINE_S)
        assert offsets == list(range(100)) == [answer.offset for answer in answers if answer]


def test_a_sender_that_waited_in_vain_is_told_and_others_are_not_held_up() -> None:
    with closing(open_memory(MemoryStorage(capacity=1), ProducerOptions(max_block_ms=100))) as provider:
        producer = provider.producer()
        stored, waiting = [send(producer, INFO, QueueMessage(None, b"x")) for _ in range(2)]
        assert send(producer, OTHER, QueueMessage(None, b"x")).result(DEADLINE_S).offset == 0
        assert stored.result(DEADLINE_S).offset == 0
        # One that was handed in is answered; one that comes when the partition is known to be full is not taken.
        assert type(waiting.exception(DEADLINE_S)) is PartitionFull
        with pytest.raises(ProviderUnavailable, match=r"t\[0\] is full"):
            send(producer, INFO, QueueMessage(None, b"x"))
        provider.admin().delete_records({PLACE: 1})
        assert send(producer, INFO, QueueMessage(None, b"x")).result(DEADLINE_S).offset == 1


def test_stopping_waits_for_what_waits_for_room() -> None:
    with closing(open_memory(MemoryStorage(capacity=1))) as provider, ThreadPoolExecutor(1) as pool:
        producer = provider.producer()
        stored, waiting = [send(producer, INFO, QueueMessage(None, b"x")) for _ in range(2)]
        stored.result(DEADLINE_S)
        stopped = pool.submit(producer.stop)
        provider.admin().delete_records({PLACE: 1})
        assert waiting.result(DEADLINE_S).offset == 1
        stopped.result(DEADLINE_S)


def test_closing_the_provider_waits_for_no_room() -> None:
    provider = open_memory(MemoryStorage(capacity=1), ProducerOptions(max_block_ms=10 * LONG_MS))
    producer = provider.producer()
    sent = [send(producer, INFO, QueueMessage(None, b"x")) for _ in range(3)]
    wait_until(lambda: PLACE in producer._storing.full)
    with ThreadPoolExecutor() as pool:
        pool.submit(provider.close).result(DEADLINE_S)
    assert [type(one.exception(0)) for one in sent] == [type(None), PartitionFull, PartitionFull]
    provider.close()


def test_a_closed_provider_makes_nothing_new() -> None:
    provider = open_memory(MemoryStorage())
    provider.close()
    for make in (provider.producer, lambda: provider.consumer("g"), lambda: provider.transactional_producer("id")):
        with pytest.raises(QueueError, match="has been closed"):
            make()


def test_a_producer_that_is_dropped_leaves_no_thread() -> None:
    provider = open_memory(MemoryStorage())
    producer = provider.producer()
    thread = producer._thread
    sent = send(producer, INFO, QueueMessage(None, b"x"))
    del producer
    gc.collect()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()
    assert sent.result(0).offset == 0


def test_records_that_are_too_old_make_room() -> None:
    clock = ManualClock()
    with closing(open_memory(MemoryStorage(1, clock=clock), ProducerOptions(max_block_ms=0))) as provider:
        provider.admin().alter_topics([TopicSpec("t", retention_ms=1_000)])
        assert fill(provider, 1) == [None]
        assert [type(error) for error in fill(provider, 1)] == [PartitionFull]
        clock.advance(1.1)
        assert fill(provider, 1) == [None]
        clock.advance(1.1)
        assert ends(provider) == (2, 2)


def test_a_buffer_that_stays_full_is_said() -> None:
    """What fills it are sends whose callbacks have not run."""
    options = ProducerOptions(buffer_memory=1_000, max_request_size=1_000, max_block_ms=0)
    with closing(open_memory(MemoryStorage(), options)) as provider:
        producer, go_on = provider.producer(), threading.Event()
        producer.send(INFO, QueueMessage(None, bytes(600)), lambda *_: go_on.wait(DEADLINE_S) and None)
        with pytest.raises(ProviderUnavailable, match="600 bytes wait"):
            producer.send(INFO, QueueMessage(None, bytes(600)), lambda *_: None)
        assert not producer.flush(0)
        go_on.set()
        assert producer.flush(DEADLINE_S)
        assert send(producer, INFO, QueueMessage(None, bytes(600))).result(DEADLINE_S).offset == 1


def test_who_has_less_time_waits_no_longer_for_room() -> None:
    options = ProducerOptions(buffer_memory=1_000, max_request_size=1_000, max_block_ms=10 * LONG_MS)
    with closing(open_memory(MemoryStorage(), options)) as provider:
        producer, go_on = provider.producer(), threading.Event()
        producer.send(INFO, QueueMessage(None, bytes(600)), lambda *_: go_on.wait(DEADLINE_S) and None)
        with pytest.raises(ProviderUnavailable, match="no room for more after 20 ms"):
            producer.send(INFO, QueueMessage(None, bytes(600)), lambda *_: None, 0.02)
        go_on.set()


def test_a_callback_may_send_and_stop() -> None:
    with closing(open_memory(MemoryStorage())) as provider:
        producer = provider.producer()
        answers: list[RecordMetadata | None] = []

        def stop(metadata: RecordMetadata | None, _: QueueError | None) -> None:
            answers.append(metadata)
            producer.stop()

        producer.send(INFO, QueueMessage(None, b"1"), lambda *_: producer.send(OTHER, QueueMessage(None, b"2"), stop))
        wait_until(lambda: answers)
        assert answers == [RecordMetadata("other", 0, 0, answers[0].timestamp_ms if answers[0] else -1)]


def test_what_lingers_goes_together_when_somebody_flushes() -> None:
    with closing(open_memory(MemoryStorage(), ProducerOptions(linger_ms=LONG_MS))) as provider:
        producer = provider.producer()
        sent = [send(producer, INFO, QueueMessage(None, b"x")) for _ in range(3)]
        assert producer.flush(DEADLINE_S)
        assert [one.result(0).offset for one in sent] == [0, 1, 2]


def test_a_full_batch_does_not_linger() -> None:
    with closing(open_memory(MemoryStorage(), ProducerOptions(linger_ms=LONG_MS, batch_size=10))) as provider:
        producer = provider.producer()
        sent = [send(producer, INFO, QueueMessage(None, b"12345")) for _ in range(2)]
        assert [one.result(DEADLINE_S).offset for one in sent] == [0, 1]


def test_a_message_is_as_it_was_sent_whatever_is_done_to_its_headers() -> None:
    with closing(open_memory(MemoryStorage())) as provider:
        headers = {"producerId": b"me"}
        sent = send(provider.producer(), INFO, QueueMessage(None, b"x", headers))
        headers["producerId"] = b"changed"
        sent.result(DEADLINE_S)
        [record] = provider.reader().read(PLACE, 0, 1)
        assert record.headers == {"producerId": b"me"}
        with pytest.raises(TypeError):
            record.headers["producerId"] = b"changed"  # type: ignore[index]


@pytest.mark.parametrize(
    "message",
    [
        QueueMessage(None, "text"),  # type: ignore[arg-type]
        QueueMessage("text", b"x"),  # type: ignore[arg-type]
        QueueMessage(None, b"x", {"name": "text"}),  # type: ignore[dict-item]
    ],
    ids=["data", "key", "header"],
)
def test_what_is_not_bytes_is_refused(message: QueueMessage) -> None:
    with closing(open_memory(MemoryStorage())) as provider:
        assert type(send(provider.producer(), INFO, message).exception(DEADLINE_S)) is InvalidMessage


def test_a_capacity_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        MemoryStorage(capacity=0)


def test_a_storage_is_shared_by_its_providers_and_by_nobody_else() -> None:
    storage = MemoryStorage()
    with closing(open_memory(storage)) as one, closing(MemoryProvider(storage)) as other:
        fill(one)
        assert ends(other) == (0, 3)
    with closing(MemoryProvider()) as third:
        assert third.admin().topics() == {}


def test_a_transaction_that_does_not_fit_is_refused_as_a_whole(small: MemoryProvider) -> None:
    fill(small, 2)
    producer = small.transactional_producer("id")
    transaction = producer.begin()
    for info in (OTHER, INFO, INFO):
        transaction.send(info, QueueMessage(None, b"x"))
    with pytest.raises(PartitionFull):
        transaction.commit()
    assert (ends(small), ends(small, OTHER)) == ((0, 2), (0, 0))


def test_a_transaction_waits_for_room() -> None:
    with closing(open_memory(MemoryStorage(capacity=3))) as provider:
        fill(provider)
        transaction = provider.transactional_producer("id").begin()
        transaction.send(INFO, QueueMessage(None, b"x"))
        with ThreadPoolExecutor(1) as pool:
            committed = pool.submit(transaction.commit)
            provider.admin().alter_group_offsets("g", {PLACE: 1})
            committed.result(DEADLINE_S)
        assert ends(provider) == (1, 4)


def test_a_transaction_larger_than_a_partition_is_refused_at_once() -> None:
    with closing(open_memory(MemoryStorage(capacity=3))) as provider:
        transaction = provider.transactional_producer("id").begin()
        for _ in range(4):
            transaction.send(INFO, QueueMessage(None, b"x"))
        with pytest.raises(PartitionFull):
            transaction.commit()
