"""The log provider under bad conditions: disks that are full or read-only, files that are not ours, topics that go."""

import fcntl
import json
import os
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from queuecore.errors import CorruptLog, ForeignFile, ProviderUnavailable, QueueError, UnknownTopic
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider, database
from queuecore.providers.log import page as page_module
from queuecore.providers.log.files import partition_dir
from queuecore.providers.options import ProducerOptions
from queuecore.sending import send, send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.log_partitions import INFO, PLACE, contents, texts
from tests.processes import Child, run_alone, run_with_mounts

OTHER = TopicPartitionInfo("other", 0)
FAST = ProducerOptions(acks="1")


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LogProvider]:
    with closing(LogProvider(tmp_path, FAST)) as provider:
        provider.admin().create_topics([TopicSpec(INFO.full_topic_name), TopicSpec(OTHER.full_topic_name)])
        yield provider


def store(provider: LogProvider, *data: str, info: TopicPartitionInfo = INFO) -> list[int]:
    producer = provider.producer()
    futures = [send(producer, info, QueueMessage(None, one.encode())) for one in data]
    return [future.result(DEADLINE_S).offset for future in futures]


def stored(root: Path, info: TopicPartitionInfo = INFO) -> list[str]:
    with closing(LogProvider(root)) as provider, closing(provider.reader()) as reader:
        return texts(reader.read(info.place, 0, 1_000))


# --- waiting for the disk


@pytest.mark.parametrize(("lasting", "waits"), [(True, 1), (False, 0)])
def test_who_need_not_outlive_the_machine_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lasting: bool, waits: int
) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        provider.admin().create_topics([TopicSpec(INFO.full_topic_name)])
        synced: list[int] = []
        monkeypatch.setattr(os, "fdatasync", synced.append)
        send_and_wait(provider.producer(lasting=lasting), INFO, QueueMessage(None, b"x"), DEADLINE_S)
        assert len(synced) == waits
        monkeypatch.undo()
    assert stored(tmp_path) == ["x"]


# --- full disks


def attempt(provider: LogProvider, data: bytes, info: TopicPartitionInfo = INFO) -> int | list[str]:
    """The offset, or the error's code and message."""
    try:
        return send_and_wait(provider.producer(), info, QueueMessage(None, data), DEADLINE_S).offset
    except QueueError as error:
        return [error.code, str(error)]


def send_to_a_disk_of_10_kb(root: str) -> None:
    """The kernel takes a part of a write and refuses the rest."""
    with closing(LogProvider(Path(root))) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
        provider.producer()
        [segment] = partition_dir(Path(root), PLACE).glob("*.log")
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
        answers, sizes = [], []
        for number in range(12):
            answers.append(attempt(provider, b"%d" % number + bytes(1_000)))
            sizes.append(segment.stat().st_size)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        answers.append(attempt(provider, b"12"))
    print(json.dumps([answers, sizes]))


def test_a_full_disk_stores_nothing_by_halves_and_passes(tmp_path: Path) -> None:
    answers, sizes = json.loads(run_alone(send_to_a_disk_of_10_kb, tmp_path))
    numbers = [number for number, answer in enumerate(answers) if isinstance(answer, int)]
    refused = [answer for answer in answers if not isinstance(answer, int)]
    assert numbers[-1] == 12
    assert 0 < len(refused) < 12
    assert len(set(sizes)) == 12 - len(refused), "a refused message left bytes behind"
    for code, message in refused:
        assert code == "provider_unavailable"
        assert "nothing of this batch was stored. Free space" in message
        assert str(partition_dir(tmp_path, PLACE)) in message
    assert [int(one.rstrip("\0")) for one in stored(tmp_path)] == numbers
    assert [answer for answer in answers if isinstance(answer, int)] == list(range(len(numbers)))


def fill_a_small_disk(root: str) -> None:
    ballast = Path(root) / "ballast"
    with closing(LogProvider(Path(root))) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
        before = attempt(provider, b"before")
        try:
            with ballast.open("wb") as file:
                while True:
                    file.write(bytes(4096))
                    file.flush()
        except OSError:
            pass
        full = [attempt(provider, bytes(20_000)) for _ in range(3)]
        try:
            provider.admin().create_topics([TopicSpec(OTHER.full_topic_name)])
        except QueueError as error:
            full.append([error.code, str(error)])
        known = sorted(provider.admin().topics())
        ballast.unlink()
        provider.admin().create_topics([TopicSpec(OTHER.full_topic_name)])
        after = [attempt(provider, b"after"), attempt(provider, b"other", OTHER)]
        with closing(provider.reader()) as reader:
            print(json.dumps([before, full, known, after, texts(reader.read(PLACE, 0, 10))]))


def test_a_really_full_disk_is_told_and_forgotten_once_there_is_room(tmp_path: Path) -> None:
    before, full, known, after, left = json.loads(
        run_with_mounts('mount -t tmpfs -o size=512k tmpfs "$1"', fill_a_small_disk, tmp_path)
    )
    assert before == 0
    assert len(full) == 4
    assert {code for code, _ in full} == {"provider_unavailable"}
    assert all("No space left on device" in message or "full" in message for _, message in full)
    assert known == [PLACE.topic], "a topic that cannot be made is not known"
    assert after == [1, 0]
    assert left == ["before", "after"]


# --- disks that cannot be written


def use_a_read_only_log(root: str) -> None:
    answers = []
    for use in (lambda: LogProvider(Path(root)), lambda: LogProvider(Path(root) / "new")):
        try:
            use()
        except QueueError as error:
            answers.append([error.code, str(error)])
    print(json.dumps(answers))


def test_a_read_only_folder_is_told(tmp_path: Path) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
        store(provider, "first")
    before = contents(tmp_path)
    mounts = 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"'
    answers = json.loads(run_with_mounts(mounts, use_a_read_only_log, tmp_path))
    assert [code for code, _ in answers] == ["provider_unavailable"] * 2
    for _, message in answers:
        assert f"cannot open the log under {tmp_path}" in message
        assert "Read-only file system" in message
        assert "check the folder" in message
    assert contents(tmp_path) == before


# --- what is in the way


def test_a_file_where_the_folder_should_be_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("not a folder")
    with pytest.raises(ProviderUnavailable, match=r"cannot open the log under .*/log: .*; check the folder"):
        LogProvider(tmp_path / "log")
    assert contents(tmp_path) == {"log": b"not a folder"}


def test_a_file_where_a_partition_should_be_is_a_clear_error(provider: LogProvider, tmp_path: Path) -> None:
    folder = partition_dir(tmp_path, PLACE)
    shutil.rmtree(folder)
    folder.write_text("not a folder")
    futures = [send(provider.producer(), info, QueueMessage(None, b"x")) for info in (INFO, OTHER)]
    with pytest.raises(ProviderUnavailable, match=r"cannot write topic\.0\[0\]: .*; mend the folder"):
        futures[0].result(DEADLINE_S)
    assert futures[1].result(DEADLINE_S).offset == 0
    folder.unlink()
    provider.admin().create_topics([TopicSpec(PLACE.topic)])
    assert store(provider, "after") == [0]


def test_a_topic_that_cannot_be_made_is_not_known(tmp_path: Path) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        (tmp_path / "topics").write_text("not a folder")
        with pytest.raises(ProviderUnavailable, match=r"cannot create topic\.0\[0\]: .*; mend the folder"):
            provider.admin().create_topics([TopicSpec(PLACE.topic)])
        assert provider.admin().topics() == {}


def not_a_database(path: Path) -> None:
    path.write_text("some notes of mine " * 100)


def a_short_file(path: Path) -> None:
    path.write_bytes(b"SQLite")


def another_programs_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("pragma journal_mode = wal")
        db.execute("create table theirs (x)")


def a_database_with_another_mark(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("pragma application_id = 12345")


def a_newer_catalog(path: Path) -> None:
    LogProvider(path.parent).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"pragma user_version = {database.VERSION + 1}")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (not_a_database, r"is not a catalog .* nothing was changed\. Choose another folder, or move the file away"),
        (a_short_file, r"is not a catalog .* nothing was changed\. Choose another folder, or move the file away"),
        (another_programs_database, r"is not a catalog .* nothing was changed\. Choose another folder"),
        (a_database_with_another_mark, r"is not a catalog .* nothing was changed\. Choose another folder"),
        (a_newer_catalog, r"written by version \d+ of the catalog.* nothing was changed\. Use the newer Switchyard"),
    ],
)
def test_a_catalog_that_is_not_ours_is_refused_and_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    path = tmp_path / "catalog.sqlite3"
    make(path)
    before = contents(tmp_path)
    with pytest.raises(ForeignFile, match=why) as no:
        LogProvider(tmp_path)
    assert str(path) in str(no.value)
    assert no.value.fields["file"] == str(path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("begun", [False, True], ids=["as it was", "by one that was killed"])
def test_a_catalog_from_before_epochs_is_brought_up_to_date(tmp_path: Path, *, begun: bool) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
        provider.admin().alter_group_offsets("g", {PLACE: 0})
    with closing(sqlite3.connect(tmp_path / "catalog.sqlite3")) as db:
        if not begun:
            db.execute("alter table committed drop column epoch")
        db.execute("pragma user_version = 1")
    with closing(LogProvider(tmp_path)) as provider:
        admin = provider.admin()
        assert admin.committed_offsets({"g": [PLACE]}) == {"g": {PLACE: 0}}
        assert admin.committed_epochs({"g": [PLACE]}) == {"g": {}}
        consumer = provider.consumer("g")
        consumer.subscribe([INFO], epochs={PLACE: 3})
        assert (consumer.poll(0), consumer.partitions) == ([], {PLACE})
        consumer.commit({PLACE: 0})
        consumer.stop()
        assert admin.committed_epochs({"g": [PLACE]}) == {"g": {PLACE: 3}}
    with closing(sqlite3.connect(tmp_path / "catalog.sqlite3")) as db:
        assert db.execute("pragma user_version").fetchone() == (database.VERSION,)


def test_looking_whose_catalog_it_is_does_not_drop_the_locks_of_those_who_use_it(tmp_path: Path) -> None:
    """Closing a file drops all of a process's locks on it: SQLite's, on a catalog that is open twice."""
    with closing(LogProvider(tmp_path)), closing(LogProvider(tmp_path)), Child(take_the_lock, tmp_path) as child:
        assert child.hear() == "refused"


def take_the_lock(parent: Connection, root: Path) -> None:
    """What a process does that believes to be the last to close the database, and then removes its newest part."""
    with (root / "catalog.sqlite3").open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)  # SQLite's range of shared locks
        except BlockingIOError:
            parent.send("refused")
        else:
            parent.send("taken")


def test_a_closed_provider_says_so(tmp_path: Path) -> None:
    provider = LogProvider(tmp_path)
    provider.admin().create_topics([TopicSpec(PLACE.topic)])
    producer = provider.producer()
    provider.close()
    provider.close()
    with pytest.raises(ProviderUnavailable, match=r"catalog.*cannot be used"):
        provider.admin().topics()
    with pytest.raises(ProviderUnavailable, match="stopped"):
        send_and_wait(producer, INFO, QueueMessage(None, b"x"), DEADLINE_S)


# --- several processes


def write_two_hundred(parent: Connection, root: Path, name: str) -> None:
    with closing(LogProvider(root, FAST)) as provider:
        producer = provider.producer()
        parent.send("ready")
        parent.recv()
        messages = [QueueMessage(None, f"{name} {number}".encode()) for number in range(200)]
        parent.send([send_and_wait(producer, INFO, message, DEADLINE_S).offset for message in messages])


def test_two_processes_share_a_partition_without_gaps(tmp_path: Path) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
    with Child(write_two_hundred, tmp_path, "one") as one, Child(write_two_hundred, tmp_path, "other") as other:
        for child in (one, other):
            assert child.hear() == "ready"
        for child in (one, other):
            child.say("go")
        told = {"one": one.hear(), "other": other.hear()}
    with closing(LogProvider(tmp_path)) as provider, closing(provider.reader()) as reader:
        records = reader.read(PLACE, 0, 1_000)
    assert [record.offset for record in records] == list(range(400))
    for name, offsets in told.items():
        mine = [record for record in records if record.data.startswith(name.encode() + b" ")]
        assert texts(mine) == [f"{name} {number}" for number in range(200)]
        assert [record.offset for record in mine] == offsets


def open_at_once(root: Path, barrier: Barrier) -> None:
    barrier.wait(DEADLINE_S)
    with closing(LogProvider(root)) as provider:
        provider.admin().create_topics([TopicSpec("topic.0")])


def test_processes_may_open_a_new_folder_at_once(tmp_path: Path) -> None:
    fork = get_context("fork")
    for number in range(20):
        barrier = fork.Barrier(6)
        children = [fork.Process(target=open_at_once, args=(tmp_path / str(number), barrier)) for _ in range(6)]
        for child in children:
            child.start()
        for child in children:
            child.join(DEADLINE_S)
        assert [child.exitcode for child in children] == [0] * 6


# --- topics that go and come back


def test_a_reader_follows_a_topic_that_is_deleted_and_made_anew(provider: LogProvider) -> None:
    with closing(provider.reader()) as reader:
        store(provider, "old", "older")
        assert texts(reader.read(PLACE, 0, 10)) == ["old", "older"]
        provider.admin().delete_topics([PLACE.topic])
        with pytest.raises(UnknownTopic):
            reader.read(PLACE, 0, 10)
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
        assert reader.read(PLACE, 0, 10) == []
        store(provider, "new")
        assert texts(reader.read(PLACE, 0, 10)) == ["new"]


def test_a_consumer_survives_a_topic_that_is_deleted_and_made_anew(tmp_path: Path) -> None:
    clock = ManualClock()
    with closing(LogProvider(tmp_path, FAST, clock=clock)) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic), TopicSpec(OTHER.full_topic_name)])
        consumer = provider.consumer("group")
        consumer.subscribe([INFO, OTHER])
        store(provider, "old")
        assert texts(consumer.poll(0)) == ["old"]
        provider.admin().delete_topics([PLACE.topic])
        store(provider, "still there", info=OTHER)
        assert texts(consumer.poll(0)) == ["still there"]
        clock.advance(1)
        assert consumer.poll(0) == []
        assert consumer.partitions == {OTHER.place}

        provider.admin().create_topics([TopicSpec(PLACE.topic)])
        store(provider, "new")
        clock.advance(1)
        assert texts(consumer.poll(0)) == ["new"]


def test_a_producer_does_not_bring_back_a_topic_that_was_deleted(tmp_path: Path) -> None:
    """It knows the topic, but has to open the partition anew: nobody told it that the topic is gone."""
    infos = [TopicPartitionInfo("many", number, use_internal_partition=True) for number in range(70)]
    with closing(LogProvider(tmp_path, FAST)) as provider, closing(LogProvider(tmp_path, FAST)) as other:
        provider.admin().create_topics([TopicSpec(PLACE.topic), TopicSpec("many", partitions=70)])
        assert store(provider, "old") == [0]
        for info in infos:
            store(provider, "x", info=info)
        other.admin().delete_topics([PLACE.topic])
        with pytest.raises(UnknownTopic):
            store(provider, "lost")
        other.admin().create_topics([TopicSpec(PLACE.topic)])
        assert store(provider, "new") == [0]
        assert stored(tmp_path) == ["new"]


# --- a partition that cannot be read


def test_a_partition_that_cannot_be_read_is_told_until_it_is_mended_and_the_others_are_read(tmp_path: Path) -> None:
    before, behind = TopicPartitionInfo("a", 0), TopicPartitionInfo("z", 0)
    infos = [before, INFO, behind]
    clock = ManualClock()
    with closing(LogProvider(tmp_path, FAST, clock=clock)) as provider:
        provider.admin().create_topics([TopicSpec(info.full_topic_name) for info in infos])
        for info in infos:
            store(provider, f"of {info.topic}", info=info)
        folder = partition_dir(tmp_path, PLACE)
        sound = contents(folder)
        [segment] = folder.glob("*.log")
        segment.write_bytes(b"not a segment at all")
        (folder / "state").write_bytes(b"")
        consumer = provider.consumer("group")
        consumer.subscribe(infos)
        for _ in range(3):
            clock.advance(1)
            with pytest.raises(ForeignFile, match="Move the file away, or restore it from a copy"):
                consumer.poll(0)
        assert sorted(texts(consumer.poll(0))) == ["of a", "of z"]
        segment.write_bytes(sound[segment.name])
        clock.advance(1)
        assert texts(consumer.poll(0)) == ["of topic"]


def test_what_other_partitions_gave_is_not_lost_for_one_that_is_harmed(provider: LogProvider, tmp_path: Path) -> None:
    consumer = provider.consumer("group")
    consumer.subscribe([INFO, OTHER])
    assert consumer.poll(0) == []
    store(provider, "harmed")
    [segment] = partition_dir(tmp_path, PLACE).glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    given: list[str] = []
    told = 0
    for number in range(5):
        store(provider, f"sound {number}", info=OTHER)
        try:
            given += texts(consumer.poll(0))
        except CorruptLog:
            told += 1
            given += texts(consumer.poll(0))
    assert given == [f"sound {number}" for number in range(5)]
    assert told >= 2


def test_a_group_that_was_ahead_of_a_power_cut_goes_on_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(LogProvider(tmp_path, FAST)) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
        store(provider, "kept")
        [segment] = partition_dir(tmp_path, PLACE).glob("*.log")
        size = segment.stat().st_size
        store(provider, "lost", "lost")
        provider.admin().alter_group_offsets("group", {PLACE: 3})
    with segment.open("r+b") as file:
        file.truncate(size)
    monkeypatch.setattr(page_module, "boot_id", lambda: b"after a restart.")
    with closing(LogProvider(tmp_path, FAST)) as provider:
        consumer = provider.consumer("group")
        consumer.subscribe([INFO])
        assert consumer.poll(0) == []
        store(provider, "new")
        assert [(record.offset, record.data) for record in consumer.poll(0)] == [(1, b"new")]


def test_a_place_that_is_not_there_is_an_unknown_topic(provider: LogProvider) -> None:
    with closing(provider.reader()) as reader:
        for place in (ProviderPartition("nothing", 0), ProviderPartition(PLACE.topic, 1)):
            with pytest.raises(UnknownTopic):
                reader.read(place, 0, 1)
            with pytest.raises(UnknownTopic):
                provider.admin().end_offsets([place])
