"""Consuming from the in-memory provider, beyond the contract: it wakes at once, sessions end, threads do no harm."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

import pytest

from queuecore.errors import GroupActive, NotOwner, OffsetOutOfRange, QueueError
from queuecore.messages import QueueMessage, Record
from queuecore.providers.base import QueueConsumer, TopicSpec
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.providers.options import ConsumerOptions
from queuecore.sending import send
from queuecore.testing.clock import ManualClock
from queuecore.testing.contract.kit import Heard
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

INFO = TopicPartitionInfo("t")
PLACE = INFO.place
MANY = [TopicPartitionInfo("many", number, use_internal_partition=True) for number in range(4)]
EVERYTHING = frozenset(info.place for info in MANY)
LONG_MS = int(DEADLINE_S * 1000)
SESSION_S = ConsumerOptions().session_timeout_ms / 1000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def provider(clock: ManualClock) -> Iterator[MemoryProvider]:
    with closing(MemoryProvider(MemoryStorage(clock=clock))) as provider:
        provider.admin().create_topics([TopicSpec("t"), TopicSpec("many", partitions=4)])
        yield provider


def put(provider: MemoryProvider, info: TopicPartitionInfo, *data: bytes) -> None:
    producer = provider.producer()
    for future in [send(producer, info, QueueMessage(None, one)) for one in data]:
        future.result(DEADLINE_S)


def subscribed(provider: MemoryProvider, *infos: TopicPartitionInfo, listener: Heard | None = None) -> QueueConsumer:
    consumer = provider.consumer("g")
    consumer.subscribe(infos, listener)
    consumer.poll(0)
    return consumer


def polling(pool: ThreadPoolExecutor, provider: MemoryProvider, consumer: QueueConsumer) -> "Future[list[Record]]":
    """A poll that has begun to wait."""
    future = pool.submit(consumer.poll, LONG_MS)
    partition = provider._storage.partition(PLACE)
    wait_until(lambda: partition.waiting)
    return future


def test_a_poll_that_waits_is_woken_by_a_message(provider: MemoryProvider) -> None:
    consumer = subscribed(provider, INFO)
    with ThreadPoolExecutor(1) as pool:
        records = polling(pool, provider, consumer)
        put(provider, INFO, b"x")
        assert [record.data for record in records.result(DEADLINE_S)] == [b"x"]


def test_a_poll_that_waits_is_ended_by_stopping(provider: MemoryProvider) -> None:
    consumer = subscribed(provider, INFO)
    with ThreadPoolExecutor(1) as pool:
        records = polling(pool, provider, consumer)
        consumer.stop()
        assert records.result(DEADLINE_S) == []


def test_a_poll_that_is_interrupted_leaves_no_member_that_lives_for_ever(
    provider: MemoryProvider, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = subscribed(provider, INFO)

    def interrupt(wake: threading.Condition, timeout: float) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Condition, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            interrupted.poll(LONG_MS)
    assert not provider._storage.partition(PLACE).waiting
    clock.advance(SESSION_S)
    assert subscribed(provider, INFO).partitions == {PLACE}


def test_a_poll_may_wait_for_longer_than_a_thread_can(provider: MemoryProvider) -> None:
    with ThreadPoolExecutor() as pool:
        consumer = subscribed(provider, INFO)
        waiting = pool.submit(consumer.poll, 10**15)
        wait_until(lambda: waiting.done() or provider._storage.partition(PLACE).waiting)
        put(provider, INFO, b"at last")
        assert [record.data for record in waiting.result(DEADLINE_S)] == [b"at last"]


def test_a_poll_that_waits_is_woken_by_a_transaction(provider: MemoryProvider) -> None:
    consumer = subscribed(provider, INFO)
    with ThreadPoolExecutor(1) as pool:
        records = polling(pool, provider, consumer)
        with provider.transactional_producer("id").begin() as transaction:
            transaction.send(INFO, QueueMessage(None, b"x"))
        assert [record.data for record in records.result(DEADLINE_S)] == [b"x"]


def test_a_poll_that_waits_takes_over_when_another_member_goes(provider: MemoryProvider) -> None:
    put(provider, INFO, b"x")
    first, second = subscribed(provider, INFO), subscribed(provider, INFO)
    with ThreadPoolExecutor(1) as pool:
        records = pool.submit(second.poll, LONG_MS)
        first.stop()
        assert [record.data for record in records.result(DEADLINE_S)] == [b"x"]


def test_a_silent_member_is_out_when_another_looks(provider: MemoryProvider, clock: ManualClock) -> None:
    put(provider, INFO, b"x")
    heard = Heard()
    silent, other = subscribed(provider, INFO, listener=heard), subscribed(provider, INFO)
    clock.advance(SESSION_S - 0.1)
    other.poll(0)
    assert silent.partitions == {PLACE}
    clock.advance(0.2)
    assert [record.data for record in other.poll(0)] == [b"x"]
    with pytest.raises(NotOwner):
        silent.commit()
    for refused in (lambda: silent.seek(PLACE, 0), lambda: silent.pause([PLACE])):
        with pytest.raises(NotOwner):
            refused()
    assert silent.poll(0) == []
    assert (heard.gone, silent.partitions) == ({PLACE}, frozenset())
    other.stop()
    assert [record.data for record in silent.poll(0)] == [b"x"]
    silent.commit()


@pytest.mark.parametrize("sign", ["keep_alive", "commit", "poll"])
def test_any_sign_of_life_keeps_a_member_in(provider: MemoryProvider, clock: ManualClock, sign: str) -> None:
    put(provider, INFO, b"x")
    busy, other = subscribed(provider, INFO), subscribed(provider, INFO)
    signs = {"keep_alive": busy.keep_alive, "commit": busy.commit, "poll": lambda: busy.poll(0)}
    for _ in range(5):
        clock.advance(SESSION_S * 0.6)
        signs[sign]()
        assert other.poll(0) == []
    busy.commit({PLACE: 1})


def test_a_member_that_waits_for_long_is_alive(provider: MemoryProvider, clock: ManualClock) -> None:
    waiting, other = subscribed(provider, INFO), subscribed(provider, INFO)
    with ThreadPoolExecutor(1) as pool:
        records = polling(pool, provider, waiting)
        clock.advance(10 * SESSION_S)
        other.poll(0)
        put(provider, INFO, b"x")
        assert len(records.result(DEADLINE_S)) == 1
    waiting.commit()


def test_a_group_whose_members_are_all_silent_can_be_changed(provider: MemoryProvider, clock: ManualClock) -> None:
    subscribed(provider, INFO)
    with pytest.raises(GroupActive):
        provider.admin().alter_group_offsets("g", {PLACE: 0})
    clock.advance(SESSION_S)
    provider.admin().alter_group_offsets("g", {PLACE: 0})
    assert provider.admin().groups()["g"].members == {}


def test_a_listener_that_fails_still_gives_up_its_partitions(provider: MemoryProvider) -> None:
    class Broken(Heard):
        def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
            super().revoked(partitions)
            raise RuntimeError("a bug of the listener's")

    listener = Broken()
    first, second = subscribed(provider, *MANY, listener=listener), subscribed(provider, *MANY)
    with pytest.raises(RuntimeError):
        first.poll(0)
    second.poll(0)
    first.poll(0)
    assert second.partitions == listener.given_up == EVERYTHING - first.partitions


def test_a_topic_that_was_deleted_is_read_anew_when_it_is_created_anew(provider: MemoryProvider) -> None:
    heard = Heard()
    consumer = subscribed(provider, INFO, listener=heard)
    put(provider, INFO, b"old", b"old")
    consumer.poll(0)
    consumer.commit()
    provider.admin().delete_topics(["t"])
    assert consumer.poll(0) == []
    assert (heard.gone, consumer.partitions) == ({PLACE}, frozenset())
    with pytest.raises(NotOwner):
        consumer.commit({PLACE: 2})
    provider.admin().create_topics([TopicSpec("t")])
    put(provider, INFO, b"new")
    assert [(record.offset, record.data) for record in consumer.poll(0)] == [(0, b"new")]


def test_a_group_goes_on_where_something_is_left(provider: MemoryProvider, caplog: pytest.LogCaptureFixture) -> None:
    consumer = subscribed(provider, INFO)
    put(provider, INFO, *[b"%d" % number for number in range(5)])
    provider.admin().delete_records({PLACE: 3})
    assert [record.data for record in consumer.poll(0)] == [b"3", b"4"]
    assert "group g was at 0 and goes on from 3" in caplog.text
    with pytest.raises(OffsetOutOfRange, match=r"t\[0\] has offsets 3 to 5"):
        consumer.seek(PLACE, 99)


def test_every_partition_has_its_turn(clock: ManualClock) -> None:
    consuming = ConsumerOptions(max_poll_records=10)
    with closing(MemoryProvider(MemoryStorage(clock=clock), consuming=consuming)) as provider:
        provider.admin().create_topics([TopicSpec("many", partitions=4)])
        for info in MANY:
            put(provider, info, *[b"x"] * 20)
        consumer = subscribed(provider, *MANY)
        consumer.subscribe(MANY)
        packs = [consumer.poll(0) for _ in range(4)]
        assert {record.partition for pack in packs for record in pack} == {0, 1, 2, 3}


def test_a_consumer_of_another_kind_cannot_be_part_of_a_transaction(provider: MemoryProvider) -> None:
    transaction = provider.transactional_producer("id").begin()
    with pytest.raises(QueueError):
        transaction.commit_offsets(object(), {PLACE: 0})  # type: ignore[arg-type]


class Accepting:
    """What consumers on several threads polled and committed."""

    def __init__(self, expected: int) -> None:
        self.offsets: list[tuple[ProviderPartition, int]] = []
        self.done = threading.Event()
        self._expected = expected
        self._lock = threading.Lock()

    def accept(self, consumer: QueueConsumer) -> None:
        by_place: dict[ProviderPartition, list[int]] = defaultdict(list)
        for record in consumer.poll(5):
            by_place[ProviderPartition(record.topic, record.partition)].append(record.offset)
        for place, offsets in by_place.items():
            try:
                consumer.commit({place: offsets[-1] + 1})
            except NotOwner:
                continue
            with self._lock:
                self.offsets += [(place, offset) for offset in offsets]
                if len(self.offsets) >= self._expected:
                    self.done.set()


def test_members_come_and_go_and_every_record_is_accepted_once() -> None:
    """Three threads send to four small partitions; consumers on five threads come and go."""
    accepting = Accepting(expected=6_000)

    def produce() -> None:
        producer = provider.producer()
        for number in range(2_000):
            producer.send(MANY[number % 4], QueueMessage(None, b"x"), lambda *_: None)
        producer.stop()

    def consume(polls: int) -> None:
        while not accepting.done.is_set():
            consumer = provider.consumer("g")
            consumer.subscribe(MANY)
            for _ in range(polls):
                accepting.accept(consumer)
            consumer.stop()

    with closing(MemoryProvider(MemoryStorage(capacity=100))) as provider, ThreadPoolExecutor(8) as pool:
        provider.admin().create_topics([TopicSpec("many", partitions=4)])
        running = [pool.submit(produce) for _ in range(3)]
        running += [pool.submit(consume, polls) for polls in (3, 5, 10, 20, 50)]
        accepting.done.wait(DEADLINE_S)
        accepting.done.set()
        for one in running:
            one.result(DEADLINE_S)
    assert sorted(accepting.offsets) == [(place, offset) for place in sorted(EVERYTHING) for offset in range(1_500)]
