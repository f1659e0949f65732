"""Retention: which segments go, what readers see of it, and what a death half-way leaves."""

import logging
import os
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore.errors import OffsetOutOfRange, UnknownTopic
from queuecore.messages import QueueMessage
from queuecore.providers.base import FOR_EVER, TopicSpec
from queuecore.providers.log import LogProvider, removal
from queuecore.providers.log.batch import MAGIC
from queuecore.providers.log.cleaning import clean_partition
from queuecore.providers.log.files import FileLock, index_path, partition_dir, topics_dir
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.log.segment import HEAD_SIZE
from queuecore.providers.log.writer import PartitionWriter
from queuecore.sending import send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.unit.queuecore.log_kit import PLACE, Partition, Steps, plain, read

MINUTE_MS = 60_000
DELETED = TopicSpec(PLACE.topic, retention_ms=3 * MINUTE_MS)
KEPT = replace(DELETED, retention_ms=FOR_EVER)
COMPACTED = replace(DELETED, cleanup="compact")


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    with closing(Partition(tmp_path / "log")) as partition:
        yield partition


def clean(partition: Partition, spec: TopicSpec = DELETED) -> int:
    return clean_partition(partition.root, PLACE, spec, partition.clock.now_ms())


def pass_minutes(partition: Partition, minutes: float) -> None:
    partition.clock.advance(minutes * 60)


# --- by age


def test_a_segment_goes_when_all_of_it_is_older_than_the_retention(partition: Partition) -> None:
    partition.segment(plain("old"))
    pass_minutes(partition, 1)
    partition.segment(plain("younger"))
    partition.append(plain("new"))
    pass_minutes(partition, 2)
    assert clean(partition) == 0, "3 minutes are not more than 3 minutes"
    partition.clock.advance(0.001)
    assert clean(partition) == 1
    assert partition.data() == ["younger", "new"]
    assert partition.bases() == [1, 2]


def test_one_young_record_holds_its_segment_and_all_that_follow(partition: Partition) -> None:
    old_ms = partition.clock.now_ms()
    pass_minutes(partition, 10)
    partition.segment(plain("old"), plain("young"))
    # A producer whose clock is behind.
    late = Partition(partition.root, ManualClock(old_ms))
    late.segment(plain("older, but behind it"))
    late.close()
    assert clean(partition) == 0
    assert partition.data() == ["old", "young", "older, but behind it"]


@pytest.mark.parametrize("spec", [KEPT, COMPACTED], ids=["for ever", "compacted only"])
def test_age_is_no_reason_where_the_topic_says_so(partition: Partition, spec: TopicSpec) -> None:
    partition.segment(plain("old"))
    partition.append(plain("new"))
    pass_minutes(partition, 1_000)
    assert clean(partition, spec) == 0
    assert partition.data() == ["old", "new"]


def test_an_idle_topic_empties_and_its_offsets_go_on(partition: Partition) -> None:
    partition.segment(plain("one", "two"))
    partition.append(plain("three"))
    pass_minutes(partition, 4)
    assert clean(partition) == 2
    assert partition.read() == []
    assert partition.bases() == [3]
    assert partition.append(plain("four")) == 3
    assert partition.data() == ["four"]


def test_cleaning_an_empty_partition_again_changes_nothing(partition: Partition) -> None:
    partition.append(plain("one"))
    pass_minutes(partition, 4)
    clean(partition)
    before = partition.files()
    pass_minutes(partition, 4)
    assert clean(partition) == 0
    assert partition.files() == before


def test_the_active_segment_stays_while_anything_in_it_is_young(partition: Partition) -> None:
    partition.append(plain("old"))
    pass_minutes(partition, 4)
    partition.append(plain("young"))
    before = partition.files()
    assert clean(partition) == 0
    assert partition.files() == before


# --- where the index does not tell


def test_a_missing_index_costs_a_look_at_the_headers(partition: Partition) -> None:
    partition.segment(plain("old"))
    pass_minutes(partition, 10)
    partition.segment(plain("young"))
    for base in (0, 1):
        index_path(partition.folder, base).unlink()
    assert clean(partition) == 1
    assert partition.data() == ["young"]


def test_an_index_that_is_missing_or_not_complete_is_made_anew(partition: Partition) -> None:
    for _ in range(3):
        partition.segment(*[plain("x" * 1_500) for _ in range(20)])
    partition.append(plain("active"))
    before = partition.files()
    index_path(partition.folder, 0).unlink()
    index = index_path(partition.folder, 20)
    index.write_bytes(index.read_bytes()[:-28])
    index_path(partition.folder, 40).write_bytes(b"")
    clean(partition)
    assert partition.files() == before


def test_a_segment_that_is_harmed_gets_no_index(partition: Partition) -> None:
    partition.segment(plain("one"), plain("two"))
    index_path(partition.folder, 0).unlink()
    path = partition.path(0)
    path.write_bytes(path.read_bytes().replace(MAGIC, b"gone"))
    clean(partition)
    assert not index_path(partition.folder, 0).exists()
    assert not list(partition.folder.glob("*.new"))


def test_a_damaged_index_is_not_believed(partition: Partition) -> None:
    """It would say that the segment is much older than it is."""
    partition.segment(plain("young"))
    index = index_path(partition.folder, 0)
    index.write_bytes(index.read_bytes()[:-12] + bytes(8) + index.read_bytes()[-4:])
    assert clean(partition) == 0
    assert partition.data() == ["young"]


def test_a_harmed_segment_without_an_index_is_as_young_as_its_file(partition: Partition) -> None:
    partition.segment(plain("old"), plain("unreadable, and perhaps young"))
    partition.append(plain("new"))
    index_path(partition.folder, 0).unlink()
    path = partition.path(0)
    raw = path.read_bytes()
    path.write_bytes(raw[:-40] + bytes(40))
    pass_minutes(partition, 4)
    stamp = partition.clock.now_ms() * 1_000_000
    os.utime(path, ns=(stamp, stamp))
    partition.append(plain("young"))
    assert clean(partition) == 0
    pass_minutes(partition, 2)
    partition.append(plain("younger"))
    pass_minutes(partition, 2)
    assert clean(partition) == 1


# --- by size


def test_the_oldest_go_while_what_follows_has_the_bytes_to_keep(partition: Partition) -> None:
    for number in range(5):
        partition.segment(plain(f"{number}" * 1_000))
    partition.append(plain("x" * 1_000))
    size = partition.path(0).stat().st_size
    assert partition.path(5).stat().st_size == size
    spec = replace(KEPT, retention_bytes=3 * size)
    assert clean(partition, spec) == 3
    assert partition.bases() == [3, 4, 5]
    assert clean(partition, spec) == 0
    assert clean(partition, replace(spec, retention_bytes=3 * size - 1)) == 0, "less than promised would be left"


def test_however_small_the_limit_the_active_segment_stays(partition: Partition) -> None:
    partition.segment(plain("closed"))
    partition.append(plain("active"))
    assert clean(partition, replace(KEPT, retention_bytes=0)) == 1
    assert partition.data() == ["active"]


def test_size_is_no_reason_on_a_topic_that_is_compacted_only(partition: Partition) -> None:
    partition.segment(plain("closed"))
    assert clean(partition, replace(COMPACTED, retention_bytes=0)) == 0
    assert partition.data() == ["closed"]


# --- deleted records


@pytest.mark.parametrize("spec", [DELETED, KEPT, COMPACTED], ids=["delete", "for ever", "compact"])
def test_segments_below_the_beginning_go_whatever_the_topic_keeps(partition: Partition, spec: TopicSpec) -> None:
    partition.segment(plain("0"), plain("1"))
    partition.segment(plain("2"), plain("3"))
    partition.append(plain("4"))
    partition.writer.begin_at(3)
    assert clean(partition, spec) == 1
    assert partition.bases() == [2, 4]
    assert partition.data() == ["3", "4"]


def test_an_active_segment_below_the_beginning_goes_too(partition: Partition) -> None:
    partition.append(plain("0", "1"))
    partition.writer.begin_at(2)
    assert clean(partition, KEPT) == 1
    assert partition.bases() == [2]
    assert partition.append(plain("2")) == 2


# --- what readers see


def test_a_reader_goes_on_in_the_segment_it_has_open_and_over_to_the_next(partition: Partition) -> None:
    partition.segment(plain("0"), plain("1"), plain("2"))
    pass_minutes(partition, 4)
    partition.append(plain("3"))
    with closing(PartitionReader(partition.root, PLACE)) as reader:
        assert len(reader.read(0, 1)) == 1
        assert clean(partition) == 1
        assert [record.offset for record in reader.read(1, 10)] == [1, 2, 3]


def test_a_reader_whose_next_segment_is_gone_gets_what_it_has_open_and_is_told_then(partition: Partition) -> None:
    partition.segment(plain("0"), plain("1"))
    partition.segment(plain("2"))
    pass_minutes(partition, 4)
    partition.append(plain("3"))
    with closing(PartitionReader(partition.root, PLACE)) as reader:
        reader.read(0, 1)
        clean(partition)
        assert [record.offset for record in reader.read(1, 10)] == [1]
        for _ in range(2):
            with pytest.raises(OffsetOutOfRange, match="begins at offset 3; 2 has been removed") as refused:
                reader.read(2, 10)
            assert refused.value.fields["beginning"] == 3
        assert [record.offset for record in reader.read(3, 10)] == [3]


def test_a_new_reader_below_the_beginning_is_told(partition: Partition) -> None:
    partition.segment(plain("0"))
    pass_minutes(partition, 4)
    partition.append(plain("1"))
    clean(partition)
    with pytest.raises(OffsetOutOfRange) as refused:
        partition.read(0)
    assert refused.value.fields["beginning"] == 1


# --- what the dead left


def test_unfinished_files_and_indexes_without_a_segment_are_swept_away(partition: Partition) -> None:
    partition.segment(plain("0"))
    partition.append(plain("1"))
    before = partition.files()
    (partition.folder / "00000000000000000007.log.new").write_bytes(b"half")
    index_path(partition.folder, 7).write_bytes(b"stray")
    (partition.folder / "compacted.new").mkdir()
    (partition.folder / "compacted.new" / "00000000000000000000.log").write_bytes(b"half")
    clean(partition)
    assert partition.files() == before


def test_nothing_is_swept_while_a_writer_may_be_making_it(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    (partition.folder / "00000000000000000007.log.new").write_bytes(b"half")
    unlink, is_locked = os.unlink, []

    def look_and_unlink(path: Path) -> None:
        with closing(FileLock(partition.folder / "append.lock")) as lock:
            is_locked.append(not lock.try_lock())
        unlink(path)

    monkeypatch.setattr(os, "unlink", look_and_unlink)
    clean(partition)
    assert is_locked == [True]


def test_a_kill_at_any_point_leaves_a_partition_that_begins_later(partition: Partition, tmp_path: Path) -> None:
    for number in range(4):
        partition.segment(plain(f"{number} one"), plain(f"{number} two"))
    partition.append(plain("active"))
    pass_minutes(partition, 4)
    everything = partition.data()
    steps = Steps(partition.root, tmp_path / "copies")
    with steps.recorded():
        clean(partition)
    assert len(steps.taken) > 10
    for copy in steps.taken:
        found = [record.data.decode() for record in read(copy)]
        assert found == everything[len(everything) - len(found) :], copy
        with closing(PartitionWriter(copy, PLACE)) as writer:
            writer.recover()
        clean_partition(copy, PLACE, DELETED, partition.clock.now_ms())
        assert read(copy) == []
        left = {path.name for path in partition_dir(copy, PLACE).iterdir()}
        assert left == {path.name for path in partition.folder.iterdir()}, copy


# --- the whole log

INFO = TopicPartitionInfo("orders", 0, use_internal_partition=True)


def open_log(root: Path, clock: ManualClock, clean_every_s: float = 60.0) -> LogProvider:
    return LogProvider(root, clock=clock, clean_every_s=clean_every_s)


def segments(root: Path, place: ProviderPartition = INFO.place) -> list[Path]:
    return sorted(partition_dir(root, place).glob("*.log"))


def is_empty(root: Path) -> bool:
    """What was there may be taken away while it is looked at."""
    with suppress(FileNotFoundError):
        return segments(root)[0].stat().st_size == HEAD_SIZE
    return False


def send(provider: LogProvider, info: TopicPartitionInfo, data: bytes = b"x") -> int:
    return send_and_wait(provider.producer(), info, QueueMessage(None, data), DEADLINE_S).offset


def test_cleaning_goes_over_all_partitions_of_all_topics(tmp_path: Path) -> None:
    clock = ManualClock()
    with closing(open_log(tmp_path, clock)) as provider:
        admin = provider.admin()
        admin.create_topics([TopicSpec("orders", 2, retention_ms=MINUTE_MS), TopicSpec("letters")])
        places = [("orders", 0), ("orders", 1), ("letters", 0)]
        infos = [TopicPartitionInfo(*place, use_internal_partition=True) for place in places]
        for info in infos:
            send(provider, info)
        clock.advance(120)
        admin.clean()
        assert admin.beginning_offsets([info.place for info in infos]) == {
            infos[0].place: 1, infos[1].place: 1, infos[2].place: 0,
        }  # fmt: skip


def test_a_consumer_whose_records_went_goes_on_with_those_that_are_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    with closing(open_log(tmp_path, clock)) as provider:
        admin = provider.admin()
        admin.create_topics([TopicSpec("orders", retention_ms=MINUTE_MS)])
        send(provider, INFO, b"old")
        admin.alter_group_offsets("group", {INFO.place: 0})
        clock.advance(120)
        admin.clean()
        send(provider, INFO, b"new")
        consumer = provider.consumer("group")
        consumer.subscribe([INFO])
        assert [record.data for record in wait_until(lambda: consumer.poll(10))] == [b"new"]
        assert "group group goes on at 1" in caplog.text
        consumer.stop()


def test_trouble_with_one_partition_is_told_and_is_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    with closing(open_log(tmp_path, clock)) as provider:
        admin = provider.admin()
        admin.create_topics([TopicSpec("orders", 2, retention_ms=MINUTE_MS)])
        infos = [TopicPartitionInfo("orders", number, use_internal_partition=True) for number in range(2)]
        for info in infos:
            send(provider, info)
            with closing(PartitionWriter(tmp_path, info.place)) as writer:
                writer.roll()
        [closed, _] = segments(tmp_path)
        closed.write_bytes(b"not a segment" * 10)
        clock.advance(120)
        admin.clean()
        assert len(segments(tmp_path, infos[1].place)) == 1
        [message] = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert message.startswith("cannot clean orders[0]: ")
        assert str(closed) in message
        assert message.endswith("; it takes up space until it can")


def test_one_process_cleans_at_a_time(tmp_path: Path) -> None:
    clock = ManualClock()
    with closing(open_log(tmp_path, clock)) as provider:
        provider.admin().create_topics([TopicSpec("orders", retention_ms=0)])
        send(provider, INFO)
        clock.advance(1)
        with closing(FileLock(tmp_path / "clean.lock")) as other, other:
            assert not provider._cleaner.clean_unless_busy()
            assert segments(tmp_path)[0].stat().st_size > HEAD_SIZE
        assert provider._cleaner.clean_unless_busy()
        assert segments(tmp_path)[0].stat().st_size == HEAD_SIZE


def test_a_process_that_produces_cleans_now_and_then_until_it_is_closed(tmp_path: Path) -> None:
    clock = ManualClock()
    with closing(open_log(tmp_path, clock, clean_every_s=0.01)) as provider:
        provider.admin().create_topics([TopicSpec("orders", retention_ms=MINUTE_MS)])
        send(provider, INFO)
        thread = provider._cleaning._thread
        assert segments(tmp_path)[0].stat().st_size > HEAD_SIZE
        clock.advance(120)
        wait_until(lambda: is_empty(tmp_path))
        assert thread.is_alive()
    assert not thread.is_alive()


def test_the_thread_survives_what_goes_wrong(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    with closing(open_log(tmp_path, clock, clean_every_s=0.01)) as provider:
        provider.admin().create_topics([TopicSpec("orders", retention_ms=MINUTE_MS)])
        send(provider, INFO)
        lock = tmp_path / "clean.lock"
        lock.unlink(missing_ok=True)
        lock.mkdir()
        wait_until(lambda: "cannot clean the log; it grows until that works again" in caplog.text)
        lock.rmdir()
        clock.advance(120)
        wait_until(lambda: is_empty(tmp_path))


# --- deleted topics


def test_a_topic_named_like_an_unfinished_one_survives_its_neighbour(tmp_path: Path) -> None:
    with closing(open_log(tmp_path, ManualClock())) as provider:
        neighbour = TopicPartitionInfo("orders.new", 0, use_internal_partition=True)
        provider.admin().create_topics([TopicSpec("orders"), TopicSpec("orders.new")])
        send(provider, neighbour)
        provider.admin().delete_topics(["orders"])
        provider.admin().clean()
        with closing(provider.reader()) as reader:
            assert [record.data for record in reader.read(neighbour.place, 0, 10)] == [b"x"]
        assert [path.name for path in topics_dir(tmp_path).iterdir()] == ["orders.new"]


DELETION = ["mark_removed", "delete_topic", "topic_changed", "retire_folder", "rmtree"]


@pytest.mark.parametrize("dies_at", DELETION)
@pytest.mark.parametrize("then", ["clean", "create", "delete"])
def test_a_deletion_that_was_begun_is_finished_by_whoever_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: str, then: str
) -> None:
    class Killed(BaseException):
        pass

    def die(*args: object, **kwargs: object) -> None:
        raise Killed

    with closing(open_log(tmp_path, ManualClock())) as provider:
        admin = provider.admin()
        admin.create_topics([TopicSpec("orders", 2)])
        send(provider, INFO, b"of the deleted topic")
        admin.alter_group_offsets("group", {INFO.place: 1})
        where = {
            "mark_removed": PartitionWriter, "delete_topic": provider._catalog, "topic_changed": provider._groups,
            "retire_folder": removal, "rmtree": removal.shutil,
        }  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(where[dies_at], dies_at, die)
            with pytest.raises(Killed):
                admin.delete_topics(["orders"])
        deleted = dies_at != "mark_removed"
        if then == "clean":
            admin.clean()
            assert ("orders" in admin.topics()) == (not deleted)
        elif then == "create":
            admin.create_topics([TopicSpec("orders", 2)])
            assert admin.end_offsets([INFO.place]) == {INFO.place: 0 if deleted else 1}
            assert send(provider, INFO) == (0 if deleted else 1)
        else:
            admin.delete_topics(["orders"])
            assert "orders" not in admin.topics()
            with pytest.raises(UnknownTopic):
                send(provider, INFO)
        admin.clean()
        assert not list(topics_dir(tmp_path).glob("~*"))
        assert [path.name for path in topics_dir(tmp_path).iterdir()] == list(admin.topics())


# --- members


def test_files_of_members_that_died_go_and_living_ones_stay(tmp_path: Path) -> None:
    with closing(open_log(tmp_path, ManualClock())) as provider:
        provider.admin().create_topics([TopicSpec("orders")])
        consumer = provider.consumer("living")
        consumer.subscribe([INFO])
        members = tmp_path / "members"
        (members / "dead").mkdir()
        (members / "dead" / uuid4().hex).touch()
        (members / "living" / uuid4().hex).touch()
        (members / "empty").mkdir()
        provider.admin().clean()
        assert [path.name for path in members.iterdir()] == ["living"]
        assert [path.name for path in (members / "living").iterdir()] == [consumer.membership.name]
        consumer.stop()
        provider.admin().clean()
        assert list(members.iterdir()) == []
        consumer = provider.consumer("living")
        consumer.subscribe([INFO])
        send(provider, INFO)
        assert wait_until(lambda: consumer.poll(10))
        consumer.stop()
