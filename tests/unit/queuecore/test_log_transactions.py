"""Transactions in the log: all or nothing, whoever dies, whoever is late, whatever becomes of the catalog."""

import errno
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecore.errors import NotOwner, ProducerFenced, ProviderUnavailable, TransactionAborted
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider, outcomes
from queuecore.providers.log.active import ActiveSegment
from queuecore.providers.log.database import Database
from queuecore.providers.log.transactions import TIMEOUT_MS, LogTransactionalProducer
from queuecore.providers.log.writers import Writers
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.sending import send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.kill_points import KillPoint, die_at
from tests.log_partitions import texts
from tests.processes import Child

IN = TopicPartitionInfo("in", 0)
OUT = [TopicPartitionInfo("out", number, use_internal_partition=True) for number in range(2)]
FAST = ProducerOptions(acks="1")
ALL = ConsumerOptions(isolation="read_uncommitted")
GROUP = "group"


def create(root: Path) -> None:
    with closing(LogProvider(root, FAST)) as provider:
        provider.admin().create_topics([TopicSpec(IN.full_topic_name), TopicSpec("out", partitions=2)])


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LogProvider]:
    create(tmp_path)
    with closing(LogProvider(tmp_path, FAST)) as provider:
        yield provider


def read(provider: LogProvider, info: TopicPartitionInfo) -> list[str]:
    with closing(provider.reader()) as reader:
        return texts(reader.read(info.place, 0, 1_000))


def outputs(provider: LogProvider) -> list[list[str]]:
    return [read(provider, info) for info in OUT]


def message(data: str) -> QueueMessage:
    return QueueMessage(None, data.encode())


def transact(producer: LogTransactionalProducer, data: str) -> None:
    with producer.begin() as transaction:
        for info in OUT:
            transaction.send(info, message(data))


# --- producers that die


def copy_and_die(parent: Connection, root: Path, arm: Callable[[], None]) -> None:
    """Take one record and write it to both outputs, in one transaction with its offset; die somewhere."""
    with closing(LogProvider(root, FAST)) as provider:
        consumer = provider.consumer(GROUP)
        consumer.subscribe([IN])
        producer = provider.transactional_producer("copier")
        transact(producer, "before")
        [record] = consumer.poll(0)
        arm()
        with producer.begin() as transaction:
            for info in OUT:
                transaction.send(info, QueueMessage(None, record.data))
            transaction.commit_offsets(consumer, {IN.place: record.offset + 1})
        parent.send("still alive")


def before_begin() -> None:
    die_at(outcomes, "begin", "before")


def after_begin() -> None:
    die_at(outcomes, "begin", "after")


def in_the_commit() -> None:
    """The rows are there, but not committed."""
    die_at(outcomes, "finish", "after")


def before_the_commit() -> None:
    die_at(outcomes, "finish", "before")


def after_the_commit() -> None:
    die_at(Writers, "ring", "before")


@pytest.mark.parametrize(
    ("arm", "is_done"),
    [
        (before_begin, False),
        (after_begin, False),
        (KillPoint("write", "half-way").arm, False),
        (KillPoint("write", "after").arm, False),
        (KillPoint("publish", "after").arm, False),
        (KillPoint("publish", "after", 2).arm, False),
        (KillPoint("sync", "before").arm, False),
        (KillPoint("sync", "after", 2).arm, False),
        (before_the_commit, False),
        (in_the_commit, False),
        (after_the_commit, True),
    ],
    ids=lambda value: getattr(value, "__name__", "") if not hasattr(value, "__self__") else str(value.__self__),
)
def test_a_transaction_of_a_killed_producer_took_effect_whole_or_not_at_all(
    tmp_path: Path, arm: Callable[[], None], is_done: bool
) -> None:
    create(tmp_path)
    with closing(LogProvider(tmp_path, FAST)) as provider:
        send_and_wait(provider.producer(), IN, message("copied"), DEADLINE_S)
    with Child(copy_and_die, tmp_path, arm) as child:
        assert child.join() == -9, "it should have died there"
        assert child.hear_all() == []
    expected = ["before", "copied"] if is_done else ["before"]
    with closing(LogProvider(tmp_path, FAST)) as provider:
        assert outputs(provider) == [expected] * 2
        committed = provider.admin().committed_offsets({GROUP: [IN.place]})[GROUP]
        assert committed == ({IN.place: 1} if is_done else {})
        # The next one of its name makes an end of what was left open: what comes behind can be read.
        producer = provider.transactional_producer("copier")
        transact(producer, "behind")
        assert outputs(provider) == [[*expected, "behind"]] * 2
        producer.stop()


# --- who is late


class Clocks:
    """A producer and a reader, whose clocks need not agree."""

    def __init__(self, root: Path) -> None:
        self.producing, self.reading = ManualClock(), ManualClock()
        self.provider = LogProvider(root, FAST, clock=self.producing)
        self.readers = LogProvider(root, FAST, clock=self.reading)
        self.producer = self.provider.transactional_producer("late")

    def close(self) -> None:
        self.producer.stop()
        self.provider.close()
        self.readers.close()


@pytest.fixture
def clocks(tmp_path: Path) -> Iterator[Clocks]:
    create(tmp_path)
    with closing(Clocks(tmp_path)) as clocks:
        yield clocks


def test_a_transaction_may_take_until_its_deadline(clocks: Clocks) -> None:
    transaction = clocks.producer.begin()
    transaction.send(OUT[0], message("in time"))
    for clock in (clocks.producing, clocks.reading):
        clock.advance(TIMEOUT_MS / 1000)
    assert read(clocks.readers, OUT[0]) == []
    transaction.commit()
    assert read(clocks.readers, OUT[0]) == ["in time"]


def test_a_transaction_that_takes_longer_is_aborted(clocks: Clocks) -> None:
    transaction = clocks.producer.begin()
    transaction.send(OUT[0], message("too late"))
    clocks.producing.advance(TIMEOUT_MS / 1000 + 0.001)
    with pytest.raises(TransactionAborted, match="open for too long and is aborted; nothing of it took effect"):
        transaction.commit()
    transact(clocks.producer, "next")
    assert outputs(clocks.readers) == [["next"]] * 2


@pytest.mark.parametrize("first", ["the reader", "the producer"])
def test_who_is_first_at_the_deadline_decides_for_all(clocks: Clocks, first: str) -> None:
    """The reader's clock is ahead: for it the transaction is over, for its producer it is not."""
    transaction = clocks.producer.begin()
    transaction.send(OUT[0], message("decided"))
    transaction._write(OUT[0].place)
    clocks.reading.advance(TIMEOUT_MS / 1000 + 1)
    if first == "the reader":
        assert read(clocks.readers, OUT[0]) == []
        with pytest.raises(TransactionAborted):
            transaction.commit()
        expected = []
    else:
        transaction.commit()
        expected = ["decided"]
    assert read(clocks.readers, OUT[0]) == expected
    assert read(clocks.provider, OUT[0]) == expected


def test_a_commit_in_the_middle_of_the_question_is_never_taken_for_an_abort(
    clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = clocks.producer.begin()
    transaction.send(OUT[0], message("committed"))
    transaction._write(OUT[0].place)
    for name in ("_deadline", "_is_done"):
        ask = getattr(outcomes, name)

        def ask_and_commit(*args: object, ask: Callable[..., object] = ask) -> object:
            answer = ask(*args)
            if not transaction.is_over:
                transaction.commit()
            return answer

        monkeypatch.setattr(outcomes, name, ask_and_commit)
    with closing(clocks.readers.reader()) as reader:
        assert texts(reader.read(OUT[0].place, 0, 10)) in ([], ["committed"])
        assert transaction.is_over
        assert texts(reader.read(OUT[0].place, 0, 10)) == ["committed"]


# --- who was replaced


def hold_a_transaction_open(parent: Connection, root: Path) -> None:
    with closing(LogProvider(root, FAST)) as provider:
        producer = provider.transactional_producer("one at a time")
        transaction = producer.begin()
        transaction.send(OUT[0], message("of the older"))
        transaction._write(OUT[0].place)
        parent.send("open")
        parent.recv()
        for attempt in (transaction.commit, producer.begin):
            try:
                attempt()
            except ProducerFenced as error:
                parent.send(str(error))


def test_a_newer_producer_in_another_process_fences_the_older(tmp_path: Path) -> None:
    create(tmp_path)
    with Child(hold_a_transaction_open, tmp_path) as older:
        assert older.hear() == "open"
        with closing(LogProvider(tmp_path, FAST)) as provider:
            newer = provider.transactional_producer("one at a time")
            transact(newer, "of the newer")
            assert outputs(provider) == [["of the newer"]] * 2
            older.say("go on")
            for _ in range(2):
                assert "a newer producer has the transactional id 'one at a time'" in older.hear()
            transact(newer, "again")
            assert outputs(provider) == [["of the newer", "again"]] * 2
            newer.stop()


def test_offsets_of_a_partition_that_moved_away_are_not_committed(provider: LogProvider) -> None:
    """The consumer knows it already: it saw the group as it is now."""
    send_and_wait(provider.producer(), IN, message("x"), DEADLINE_S)
    consumer, producer = provider.consumer(GROUP), provider.transactional_producer("mover")
    consumer.subscribe([IN])
    consumer.poll(0)
    transaction = producer.begin()
    transaction.send(OUT[0], message("not done"))
    transaction.commit_offsets(consumer, {IN.place: 1})
    consumer.subscribe([OUT[1]])
    wait_until(lambda: consumer.poll(20) == [] and consumer.partitions)
    with pytest.raises(NotOwner):
        transaction.commit()
    assert outputs(provider) == [[], []]
    assert provider.admin().committed_offsets({GROUP: [IN.place]}) == {GROUP: {}}


# --- disks and catalogs that fail


def test_nothing_is_committed_before_all_of_it_is_on_disk(
    provider: LogProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = provider.transactional_producer("careful")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", _fail)
        with pytest.raises(ProviderUnavailable, match="did not confirm"):
            transact(producer, "lost")
    transact(producer, "kept")
    assert outputs(provider) == [["kept"]] * 2


def _fail(_: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_transaction_over_more_partitions_than_can_be_open_brings_all_of_them_to_disk(
    provider: LogProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.admin().create_topics([TopicSpec("wide", partitions=80)])
    infos = [TopicPartitionInfo("wide", number, use_internal_partition=True) for number in range(80)]
    synced: set[Path] = set()
    sync = ActiveSegment.sync

    def noting(segment: ActiveSegment) -> None:
        synced.add(segment._segment.path)
        sync(segment)

    monkeypatch.setattr(ActiveSegment, "sync", noting)
    with provider.transactional_producer("wide").begin() as transaction:
        for info in infos:
            transaction.send(info, message("wide"))
    assert len(synced) == 80
    assert [read(provider, info) for info in infos] == [["wide"]] * 80


def test_a_producer_goes_on_after_a_catalog_that_could_not_be_written(
    provider: LogProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = provider.transactional_producer("persistent")
    with monkeypatch.context() as patch:
        patch.setattr(Database, "writing", _refuse)
        for _ in range(2):
            with pytest.raises(ProviderUnavailable, match="full"):
                producer.begin()
    transact(producer, "after")
    assert outputs(provider) == [["after"]] * 2


def _refuse(*_: object, **__: object) -> None:
    raise ProviderUnavailable("the disk is full")


def test_a_transaction_number_is_never_given_again_though_the_catalog_forgot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut takes from the catalog what was not durable: of this transaction everything but its number. Were
    that given again, its records would come back with another transaction's commit."""
    create(tmp_path)
    log, saved = tmp_path, tmp_path.with_name("saved")
    begin = outcomes.begin
    numbers: list[int] = []

    def save_and_begin(database: Database, transaction: int, *args: int) -> None:
        numbers.append(transaction)
        if len(numbers) == 1:
            saved.mkdir()
            for path in log.glob("catalog.sqlite3*"):
                shutil.copy(path, saved)
        begin(database, transaction, *args)

    monkeypatch.setattr(outcomes, "begin", save_and_begin)
    provider = LogProvider(log, FAST)
    producer = provider.transactional_producer("unlucky")
    for _ in range(3):
        transaction = producer.begin()
        transaction.send(OUT[0], message("aborted"))
        transaction._write(OUT[0].place)
        transaction.abort()
    provider.close()
    for path in log.glob("catalog.sqlite3*"):
        path.unlink()
    for path in saved.iterdir():
        shutil.copy(path, log)

    with closing(LogProvider(log, FAST)) as provider:
        again = provider.transactional_producer("unlucky")
        for number in range(5):
            transact(again, f"committed {number}")
        assert len(set(numbers)) == len(numbers) == 8
        assert read(provider, OUT[0]) == [f"committed {number}" for number in range(5)]


# --- how outcomes are kept


@settings(max_examples=50)
@given(st.lists(st.booleans(), max_size=40), st.randoms(use_true_random=False))
def test_outcomes_are_kept_in_as_few_rows_as_there_are_ranges(
    tmp_path_factory: pytest.TempPathFactory, is_committed: list[bool], chance: random.Random
) -> None:
    with closing(Database(tmp_path_factory.mktemp("outcomes"))) as database:
        expected = dict(enumerate(is_committed, 1))
        producers = {number: outcomes.take_over(database, str(number)) for number in expected}
        for number, (producer, epoch) in producers.items():
            outcomes.begin(database, number, producer, epoch, 10)
        order = list(expected)
        chance.shuffle(order)
        asked = outcomes.Outcomes(database, ManualClock(now_ms=0))
        for number in order:
            assert asked(number) is None
            if expected[number]:
                with database.writing() as db:
                    outcomes.finish(db, number, *producers[number], 0)
            else:
                outcomes.abort(database, number)
            assert asked(number) is expected[number]
        fresh = outcomes.Outcomes(database, ManualClock(now_ms=0))
        assert {number: fresh(number) for number in expected} == expected
        assert fresh(len(expected) + 1) is False
        with database.reading() as db:
            [(rows,)] = db.execute("select count(*) from done")
        assert rows == len("".join("x" if one else " " for one in is_committed).split())


def test_who_reads_uncommitted_sees_everything(tmp_path: Path) -> None:
    create(tmp_path)
    with closing(LogProvider(tmp_path, FAST, ALL)) as provider:
        producer = provider.transactional_producer("id")
        transaction = producer.begin()
        transaction.send(OUT[0], message("open"))
        transaction._write(OUT[0].place)
        assert read(provider, OUT[0]) == ["open"]
        transaction.abort()
        assert read(provider, OUT[0]) == ["open"]
        producer.stop()
