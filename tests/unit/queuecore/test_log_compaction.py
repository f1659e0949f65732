"""Compaction: what stays, what readers see of it, and what a death half-way leaves."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecore.errors import CorruptLog, OutOfSequence
from queuecore.messages import QueueMessage, Record
from queuecore.providers.base import DAY_MS, MIN_SEGMENT_BYTES, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.batch import ANONYMOUS, NO_PRODUCER, NO_TRANSACTION, Origin, encode_body
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.cleaning import clean_partition
from queuecore.providers.log.compaction import compact_partition
from queuecore.providers.log.database import Database
from queuecore.providers.log.reader import Outcome, PartitionReader, everything
from queuecore.providers.log.segment import Segment
from queuecore.providers.log.writer import PartitionWriter
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo
from tests.unit.queuecore.log_kit import PLACE, Partition, Steps, keyed, plain, read

COMPACTED = TopicSpec(PLACE.topic, segment_bytes=MIN_SEGMENT_BYTES, cleanup="compact")


class Compacted(Partition):
    """A partition with the catalog that compaction notes its progress in."""

    def __init__(self, root: Path, clock: ManualClock | None = None) -> None:
        super().__init__(root, clock)
        self._database = Database(root)
        self.catalog = Catalog(self._database)

    def compact(self, outcome: Outcome = everything, ratio: float = 0, spec: TopicSpec = COMPACTED) -> bool:
        return compact_partition(
            self.root, PLACE, spec, self.catalog, outcome, self.clock.now_ms(), min_cleanable_ratio=ratio
        )

    def transaction(self, number: int, *pairs: str) -> int:
        return self.append(keyed(*pairs), Origin(transaction=number))

    def pairs(self, offset: int | None = None, outcome: Outcome = everything) -> list[str]:
        """As they were given to `keyed`."""
        return shown(self.read(offset, outcome))

    def close(self) -> None:
        super().close()
        self._database.close()


def shown(records: list[Record]) -> list[str]:
    return [one.key.decode() + ("" if one.is_tombstone else f"={one.data.decode()}") for one in records]


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Compacted]:
    with closing(Compacted(tmp_path / "log")) as partition:
        yield partition


# --- what stays


def test_the_last_record_of_each_key_stays_where_it_was(partition: Compacted) -> None:
    partition.segment(keyed("a=1", "b=1"), keyed("a=2"))
    partition.segment(keyed("c=1"), keyed("b=2", "c=2"))
    partition.append(keyed("a=3"))
    before = {record.offset: record for record in partition.read()}
    assert partition.compact()
    assert partition.pairs() == ["a=2", "b=2", "c=2", "a=3"]
    assert all(record == before[record.offset] for record in partition.read())


def test_keys_headers_times_and_data_are_as_they_were(partition: Compacted) -> None:
    key = uuid4()
    sent = [
        QueueMessage(key, b"one", {"a": b"1", "\N{SNOWMAN}": b""}),
        QueueMessage(b"bytes", bytes(range(256))),
        QueueMessage(b"", b"an empty key is a key"),
    ]
    partition.segment([QueueMessage(key, b"zero"), sent[0]], compression="zstd")
    partition.clock.advance(5)
    partition.segment([sent[1]], [QueueMessage(b"", b""), sent[2]], compression="lz4")
    partition.compact()
    found = partition.read()
    assert [QueueMessage(one.key, one.data, dict(one.headers)) for one in found] == [
        replace_headers(one) for one in sent
    ]
    assert isinstance(found[0].key, UUID)
    first_ms = found[0].timestamp_ms
    assert [one.timestamp_ms - first_ms for one in found] == [0, 5_000, 5_000]
    assert [one.offset for one in found] == [1, 2, 4]


def replace_headers(message: QueueMessage) -> QueueMessage:
    return message._replace(headers=dict(message.headers))


def test_keys_are_told_apart_by_their_bytes(partition: Compacted) -> None:
    key = uuid4()
    partition.segment([QueueMessage(key, b"as a UUID")], [QueueMessage(key.bytes, b"as bytes")])
    partition.compact()
    assert partition.data() == ["as bytes"]


def test_the_active_segment_is_left_alone(partition: Compacted) -> None:
    partition.segment(keyed("a=1"))
    partition.append(keyed("a=2", "a=3"))
    active = partition.path(1).read_bytes()
    partition.compact()
    assert partition.pairs() == ["a=1", "a=2", "a=3"]
    assert partition.path(1).read_bytes() == active


def test_records_without_a_key_stay(partition: Compacted) -> None:
    partition.segment(plain("one", "two"), keyed("a=1", "a=2"))
    partition.compact()
    assert partition.data() == ["one", "two", "2"]


def test_records_below_the_beginning_go(partition: Compacted) -> None:
    partition.segment(keyed("a=1"), plain("without a key"), keyed("b=1"), keyed("c=1"))
    partition.writer.begin_at(2)
    partition.compact()
    assert partition.pairs() == ["b=1", "c=1"]
    with closing(Segment(partition.folder, 0)) as segment:
        assert sum(header.records for _, header in segment.headers()) == 2


# --- tombstones


def test_a_tombstone_removes_what_came_before_and_stays_for_a_day(partition: Compacted) -> None:
    partition.segment(keyed("a=1", "b=1"), keyed("a"))
    partition.compact()
    assert partition.pairs() == ["b=1", "a"]
    partition.clock.advance(DAY_MS / 1000)
    partition.segment(keyed("c=1"))
    partition.compact()
    assert partition.pairs() == ["b=1", "a", "c=1"], "a day is not more than a day"
    partition.clock.advance(0.001)
    partition.segment(keyed("d=1"))
    partition.compact()
    assert partition.pairs() == ["b=1", "c=1", "d=1"]


def test_a_key_that_came_back_after_its_tombstone_stays(partition: Compacted) -> None:
    partition.segment(keyed("a=1"), keyed("a"))
    partition.clock.advance(2 * DAY_MS / 1000)
    partition.segment(keyed("a=2"))
    partition.compact()
    assert partition.pairs() == ["a=2"]


def test_empty_data_is_no_tombstone(partition: Compacted) -> None:
    partition.segment([QueueMessage(b"a", b"")])
    partition.clock.advance(2 * DAY_MS / 1000)
    partition.segment(keyed("b=1"))
    partition.compact()
    assert partition.pairs() == ["a=", "b=1"]


# --- transactions


def test_what_was_committed_stays_and_what_was_aborted_goes(partition: Compacted) -> None:
    partition.append(keyed("a=1", "b=1"))
    partition.transaction(7, "a=2")
    partition.transaction(8, "b=aborted", "c=aborted")
    partition.writer.roll()
    outcomes = {7: True, 8: False}
    partition.compact(outcomes.__getitem__)
    assert partition.pairs() == ["b=1", "a=2"]
    with closing(Segment(partition.folder, 0)) as segment:
        assert {header.transaction for _, header in segment.headers()} == {NO_TRANSACTION}


def test_nothing_from_the_first_undecided_transaction_on_is_touched(partition: Compacted) -> None:
    partition.segment(keyed("a=1"), keyed("a=2"))
    partition.append(keyed("b=1"))
    partition.transaction(7, "c=1")
    partition.writer.roll()
    partition.segment(keyed("a=3"), keyed("a=4"))
    later = {base: partition.path(base).read_bytes() for base in partition.bases()[1:]}
    outcomes: dict[int, bool] = {}
    assert partition.compact(outcomes.get)
    assert partition.pairs() == ["a=2", "b=1", "c=1", "a=3", "a=4"]
    assert {base: partition.path(base).read_bytes() for base in partition.bases()[1:]} == later
    assert partition.catalog.compacted_to(PLACE) == 2

    assert not partition.compact(outcomes.get), "there is nothing new below it"
    outcomes[7] = False
    assert partition.compact(outcomes.get)
    assert partition.pairs() == ["b=1", "a=4"]


# --- when


def test_it_is_done_when_half_of_the_closed_bytes_are_new(partition: Compacted) -> None:
    def segment(name: str) -> None:
        partition.segment(keyed(f"{name}={'x' * 1_000}"))

    segment("a")
    segment("b")
    assert partition.compact(ratio=1), "all is new"
    assert partition.catalog.compacted_to(PLACE) == 2
    assert not partition.compact(ratio=0.5), "nothing is new"
    segment("c")
    assert not partition.compact(ratio=0.5), "a third is new"
    segment("d")
    assert partition.compact(ratio=0.5)
    assert partition.bases() == [0, 4]


def test_a_topic_that_was_created_again_is_compacted_from_its_beginning(partition: Compacted) -> None:
    partition.catalog.set_compacted_to(PLACE, 1_000)
    partition.segment(keyed("a=1"), keyed("a=2"))
    partition.segment(keyed("a=3"))
    assert partition.compact(ratio=0.5)
    assert partition.pairs() == ["a=3"]
    assert partition.catalog.compacted_to(PLACE) == 3


def test_a_partition_without_closed_segments_is_left_alone(partition: Compacted) -> None:
    assert not partition.compact()
    partition.append(keyed("a=1", "a=2"))
    assert not partition.compact()
    assert partition.pairs() == ["a=1", "a=2"]


def test_a_harmed_segment_stops_it_and_nothing_is_changed(partition: Compacted) -> None:
    partition.segment(keyed("a=1"), keyed("a=2"))
    partition.segment(keyed("a=3"))
    path = partition.path(0)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    before = partition.files()
    with pytest.raises(CorruptLog, match=str(path)):
        partition.compact()
    assert partition.files() == before


def test_it_can_be_stopped_and_goes_on_another_time(partition: Compacted) -> None:
    for number in range(6):
        partition.segment(keyed(f"a={number}"), keyed(f"{number}={'x' * 400_000}"))
    answers = iter([False] * 8 + [True] * 10)
    assert not compact_partition(
        partition.root, PLACE, COMPACTED, partition.catalog, everything, partition.clock.now_ms(),
        is_stopping=lambda: next(answers),
    )  # fmt: skip
    half_done = len(partition.bases())
    assert 3 < half_done < 7
    assert partition.compact()
    assert len(partition.bases()) < half_done
    assert [pair[:3] for pair in partition.pairs()] == ["0=x", "1=x", "2=x", "3=x", "4=x", "a=5", "5=x"]


# --- files


def test_segments_become_one_where_they_fit(partition: Compacted) -> None:
    for number in range(5):
        partition.segment(keyed(f"old={'x' * 300_000}"), keyed(f"{number}={'y' * 300_000}"))
    partition.compact()
    assert partition.bases() == [0, 6, 10], "three with 300 kB left of each fit into one, and two with the last 'old'"
    sizes = [partition.path(base).stat().st_size for base in partition.bases()]
    assert max(sizes) <= MIN_SEGMENT_BYTES
    assert [record.offset for record in partition.read()] == [1, 3, 5, 7, 8, 9]


def test_a_segment_that_would_come_out_the_same_is_not_written_again(partition: Compacted) -> None:
    for number in range(2):
        partition.segment(keyed(f"{number}={'y' * MIN_SEGMENT_BYTES}"))
    first = partition.path(0).stat()
    partition.segment(keyed("1=new"))
    partition.compact()
    assert partition.bases() == [0, 1, 3]
    assert partition.path(0).stat().st_ino == first.st_ino
    assert partition.path(1).stat().st_size < 1_000


def test_many_small_batches_become_few_large_ones(partition: Compacted) -> None:
    partition.segment(*[keyed(f"{number}=x") for number in range(1_000)])
    partition.segment(*[keyed(f"{number}=y") for number in range(500)])
    before = partition.path(0).stat().st_size + partition.path(1_000).stat().st_size
    partition.compact()
    with closing(Segment(partition.folder, 0)) as segment:
        assert [header.records for _, header in segment.headers()] == [1_000]
    assert partition.path(0).stat().st_size < before / 3


def test_every_offset_can_be_read_from_when_nothing_is_left(partition: Compacted) -> None:
    partition.segment(keyed("a=1"), keyed("a"))
    partition.clock.advance(2 * DAY_MS / 1000)
    partition.append(keyed("b=1"))
    partition.compact()
    for offset in range(3):
        assert partition.pairs(offset) == ["b=1"]
    assert partition.bases() == [0, 2]


def test_a_consumer_goes_over_the_gaps(tmp_path: Path) -> None:
    info = TopicPartitionInfo("topic", 0, use_internal_partition=True)
    with closing(LogProvider(tmp_path, clock=ManualClock())) as provider:
        provider.admin().create_topics([replace(COMPACTED, name="topic")])
        with closing(Partition(tmp_path)) as partition:
            for number in range(20):
                partition.segment(keyed(f"{number % 3}={number}"))
            provider.admin().clean()
            partition.append(keyed("3=20"))
        consumer = provider.consumer("group")
        consumer.subscribe([info])
        found: list[Record] = []
        while len(found) < 4:
            found += consumer.poll(100)
        assert shown(found) == ["2=17", "0=18", "1=19", "3=20"]
        consumer.commit()
        assert provider.admin().committed_offsets({"group": [info.place]}) == {"group": {info.place: 21}}
        consumer.stop()


def test_offsets_are_found_by_time_afterwards(partition: Compacted) -> None:
    start_ms = partition.clock.now_ms()
    for number in range(10):
        partition.segment(keyed(f"{number % 4}={number}"))
        partition.clock.advance(1)
    partition.compact()
    with closing(LogProvider(partition.root)) as provider:
        provider.admin().create_topics([COMPACTED])
        found = [provider.admin().offsets_for_times({PLACE: start_ms + 1_000 * number})[PLACE] for number in range(11)]
    assert found == [6, 6, 6, 6, 6, 6, 6, 7, 8, 9, 10]


# --- producers that send again


def batch_of(producer: int, sequence: int) -> Origin:
    return Origin(producer, 0, sequence)


def test_a_producer_is_recognised_by_what_was_not_compacted(partition: Compacted) -> None:
    partition.append(keyed("a=1", "a=2"), batch_of(7, 0))
    partition.writer.roll()
    partition.append(keyed("a=3"), batch_of(7, 2))
    partition.compact()
    with closing(PartitionWriter(partition.root, PLACE)) as other:
        assert other.append(encode_body(keyed("a=3")), 0, sync=False, origin=batch_of(7, 2)) == 2
        with pytest.raises(OutOfSequence):
            other.append(encode_body(keyed("a=9")), 0, sync=False, origin=batch_of(7, 9))
        assert other.append(encode_body(keyed("a=4")), 0, sync=False, origin=batch_of(7, 3)) == 3


def test_a_large_batch_that_stays_whole_is_nobody_s_afterwards_either(partition: Compacted) -> None:
    large = "x" * 300_000
    partition.append(keyed(f"a={large}", "b=1"), batch_of(7, 0))
    partition.append(keyed(f"c={large}", "d=1"), Origin(8, 0, 0, transaction=5))
    partition.writer.roll()
    before = partition.read()
    partition.compact(lambda _: True)
    with closing(Segment(partition.folder, 0)) as segment:
        origins = [header.origin for _, header in segment.headers()]
    assert origins == [ANONYMOUS, ANONYMOUS]
    assert partition.read(outcome=lambda _: False) == before


def test_a_producer_all_of_whose_batches_were_compacted_may_go_on(partition: Compacted) -> None:
    """What is left of its first batch would make the next look out of sequence."""
    partition.append(keyed("a=1", "b=1"), batch_of(7, 0))
    partition.append(keyed("a=2", "c=1"), batch_of(7, 2))
    partition.writer.roll()
    partition.compact()
    with closing(Segment(partition.folder, 0)) as segment:
        assert {header.producer for _, header in segment.headers()} == {NO_PRODUCER}
    with closing(PartitionWriter(partition.root, PLACE)) as other:
        assert other.append(encode_body(keyed("a=3")), 0, sync=False, origin=batch_of(7, 4)) == 4
    assert partition.pairs() == ["b=1", "a=2", "c=1", "a=3"]


# --- readers under way


@pytest.mark.parametrize("portion", [1, 2, 3, 5])
def test_a_reader_misses_nothing_wherever_it_is(tmp_path: Path, portion: int) -> None:
    """It may get records that are gone by now; never out of order, and never without one that is kept."""
    for started in range(1, 16, 2):
        with closing(Compacted(tmp_path / str(started))) as partition:
            for number in range(0, 15, 3):
                partition.segment(keyed(f"{number % 4}={number}"), keyed(f"{number % 5}=x", f"{number % 2}=y"))
            partition.append(keyed("z=1"))
            with closing(PartitionReader(partition.root, PLACE)) as reader:
                position = 0
                while position < started:
                    position = [record.offset for record in reader.read(position, 1)][-1] + 1
                partition.compact()
                kept = [record.offset for record in partition.read() if record.offset >= position]
                found: list[int] = []
                while records := reader.read(position, portion):
                    found += [record.offset for record in records]
                    position = reader.next_offset
            assert found == sorted(set(found))
            assert set(kept) <= set(found)


# --- dying


def check_copy(copy: Path, before: list[Record], kept: list[Record]) -> None:
    """Whatever was done or not: from every offset, everything that is kept is there, and nothing that never was."""
    offsets = {record.offset: record for record in before}
    for offset in range(before[-1].offset + 1):
        found = read(copy, offset)
        assert all(one.offset < other.offset for one, other in pairwise(found))
        assert all(record == offsets[record.offset] for record in found)
        assert {record.offset for record in kept if record.offset >= offset} <= {record.offset for record in found}
        if not offset:
            assert state_after(found) == state_after(kept), "a tombstone went before what it removed"


def test_a_kill_at_any_point_leaves_a_partition_with_everything_in_it(partition: Compacted, tmp_path: Path) -> None:
    for number in range(0, 8, 2):
        partition.segment(
            keyed(f"{number % 3}={number}"), keyed(f"only {number}=x"), keyed(f"large {number}={'x' * 270_000}")
        )
    partition.segment(keyed("only 0"))
    partition.clock.advance(2 * DAY_MS / 1000)
    partition.append(keyed("z=1"))
    before = partition.read()
    steps = Steps(partition.root, tmp_path / "copies")
    with steps.recorded():
        partition.compact()
    kept = partition.read()
    assert len(partition.bases()) == 3, "two groups, and the active segment"
    assert {"rename", "unlink", "writev", "mkdir"} <= {copy.name.split()[1] for copy in steps.taken}
    for copy in steps.taken:
        check_copy(copy, before, kept)
        clean_partition(copy, PLACE, COMPACTED, partition.clock.now_ms())
        with closing(Compacted(copy, partition.clock)) as again:
            again.compact()
            assert again.read() == kept, copy
            assert {path.name for path in again.folder.iterdir()} == {path.name for path in partition.folder.iterdir()}


@pytest.mark.parametrize("left", [[1, 2], [2]])
def test_segments_that_a_rewritten_one_stands_for_go_the_next_time(partition: Compacted, left: list[int]) -> None:
    """As after a death between putting the new segment in place and removing all of the old ones."""
    for number in range(3):
        partition.segment(keyed(f"a={number}"))
    old = {base: partition.path(base).read_bytes() for base in left}
    partition.append(keyed("b=1"))
    partition.compact()
    for base, raw in old.items():
        partition.path(base).write_bytes(raw)
    assert partition.pairs(0) == ["a=2", "b=1"]
    assert partition.pairs(1) == [*[f"a={number}" for number in left], "b=1"]
    partition.compact(ratio=1)
    assert partition.bases() == [0, 3]
    assert partition.pairs(1) == ["a=2", "b=1"]


def append_and_compact(root: Path, seed: int, calls: int) -> None:
    """Write, compact and remove until a call to change a file is the last: there the process is killed."""
    noise = random.Random(seed)
    left = [calls]

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*args: object, **kwargs: object) -> object:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return wrapped

    for name in Steps.CHANGES:
        setattr(os, name, counted(getattr(os, name)))
    with closing(Compacted(root)) as partition:
        end = partition.read()[-1].offset + 1 if partition.read() else 0
        while True:
            key = noise.randrange(8)
            assert partition.append(keyed(f"{key}={end}")) == end
            end += 1
            if noise.random() < 0.2:
                partition.writer.roll()
            if noise.random() < 0.1:
                clean_partition(root, PLACE, COMPACTED, partition.clock.now_ms())
                partition.compact()


@pytest.mark.parametrize("kills", [pytest.param(12), pytest.param(150, marks=pytest.mark.full)])
def test_killed_again_and_again_it_keeps_the_last_of_each_key(tmp_path: Path, kills: int) -> None:
    noise = random.Random(kills)
    fork = get_context("fork")
    newest: dict[bytes, int] = {}
    for seed in range(kills):
        child = fork.Process(target=append_and_compact, args=(tmp_path, seed, noise.randint(20, 900)))
        child.start()
        child.join(DEADLINE_S)
        assert child.exitcode == -signal.SIGKILL
        with closing(Compacted(tmp_path)) as partition:
            found = partition.read()
            assert all(one.offset < other.offset for one, other in pairwise(found))
            assert all(int(record.data) == record.offset for record in found)
            state = {record.key: record.offset for record in found}
            assert all(state.get(key, -1) >= offset for key, offset in newest.items()), "the last of a key is gone"
            newest = state
            if seed % 3 == 0:
                clean_partition(tmp_path, PLACE, COMPACTED, 0)
                partition.compact()
                assert {record.key: record.offset for record in partition.read()} == state
                assert not list(partition.folder.glob("*.new"))


# --- in any order

steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 4)),
        st.tuples(st.just("tombstone"), st.integers(0, 4)),
        st.tuples(st.just("transaction"), st.integers(0, 4)),
        st.tuples(st.sampled_from(["roll", "compact", "wait", "decide"]), st.booleans()),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(steps)
def test_whatever_happens_readers_of_committed_records_see_the_same_keys(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    outcomes: dict[int, bool | None] = {}
    with closing(Compacted(tmp_path_factory.mktemp("log"))) as partition:
        history: list[tuple[str, str | None, int]] = []
        for number, (step, what) in enumerate(steps):
            key = str(what)
            if step == "send":
                partition.append(keyed(f"{key}={number}"))
                history.append((key, str(number), NO_TRANSACTION))
            elif step == "tombstone":
                partition.append(keyed(key))
                history.append((key, None, NO_TRANSACTION))
            elif step == "transaction":
                partition.transaction(number + 1, f"{key}={number}")
                history.append((key, str(number), number + 1))
                outcomes[number + 1] = None
            elif step == "decide":
                outcomes |= {one: bool(what) for one, outcome in outcomes.items() if outcome is None}
            elif step == "wait":
                partition.clock.advance(DAY_MS / 1000)
            elif step == "roll":
                partition.writer.roll()
            else:
                partition.compact(outcomes.get)
            assert state_after(partition.read(outcome=outcomes.get)) == expected(history, outcomes)


def expected(history: list[tuple[str, str | None, int]], outcomes: dict[int, bool | None]) -> dict[str, str]:
    state: dict[str, str | None] = {}
    for key, value, transaction in history:
        seen = transaction == NO_TRANSACTION or outcomes[transaction]
        if seen is None:
            break
        if seen:
            state[key] = value
    return {key: value for key, value in state.items() if value is not None}


def state_after(records: list[Record]) -> dict[str, str]:
    """What someone knows who has read these."""
    state: dict[str, str] = {}
    for record in records:
        key = record.key.decode()
        if record.is_tombstone:
            state.pop(key, None)
        else:
            state[key] = record.data.decode()
    return state
