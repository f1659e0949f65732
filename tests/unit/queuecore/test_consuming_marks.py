"""What a process was at when it was killed: found by the next one, and only then."""

import os
import signal
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from queuecore import open_queues
from queuecore.consuming.consumption import Consumption
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.marks import FileMarks, Mark, NoMarks
from queuecore.deadletter.envelope import Stage
from queuecore.deadletter.policy import DeadLetterPolicy
from queuecore.messages import Record
from queuecore.providers.log import LogProvider
from queuecore.providers.options import ConsumerOptions
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition
from tests.processes import Child
from tests.unit.queuecore.consuming_kit import GROUP, NO_RETRY, SEQUENTIAL, Bench, Gate

PLACE = ProviderPartition("in.0", 0)


@pytest.fixture
def marks(tmp_path: Path) -> FileMarks:
    return FileMarks(tmp_path / "marks")


def set_and_wait(pipe: Connection, folder: Path, place: ProviderPartition, mark: Mark) -> None:
    """A process that has messages with handlers until it is killed."""
    FileMarks(folder).open(GROUP, place).set(mark.first, mark.last, alone=mark.alone)
    pipe.send("set")
    pipe.recv()


def killed(folder: Path, first: int, last: int, *, alone: bool = False, place: ProviderPartition = PLACE) -> None:
    with Child(set_and_wait, folder, place, Mark(first, last, alone)) as child:
        assert child.hear() == "set"
        child.kill()


class TestCompany:
    """Of other partitions of the process: one of theirs may be what kills it."""

    @pytest.mark.parametrize("comes", ["before", "after", "and goes"])
    def test_a_suspect_that_has_some_is_not_blamed(self, tmp_path: Path, comes: str) -> None:
        with Child(_in_company, tmp_path / "marks", comes) as child:
            assert child.hear() == "set"
            child.kill()
        found = FileMarks(tmp_path / "marks").open(GROUP, PLACE).left_behind()
        assert found == Mark(1, 1, alone=True, accompanied=comes != "and goes")

    def test_it_is_handled_again_with_nothing_beside_it(self, marks: FileMarks) -> None:
        suspect, other = marks.open(GROUP, PLACE), marks.open("another", PLACE)
        assert other.set(0, 9, alone=False)
        assert not suspect.claim(exclusive=True)
        assert not other.set(10, 19, alone=False), "what is new waits"
        other.clear()
        assert suspect.claim(exclusive=True)
        assert suspect.set(1, 1, alone=True)
        assert not other.set(10, 19, alone=False)
        suspect.clear()
        suspect.release()
        assert other.set(10, 19, alone=False)

    def test_who_waits_for_that_and_goes_holds_up_nobody(self, marks: FileMarks) -> None:
        suspect, other = marks.open(GROUP, PLACE), marks.open("another", PLACE)
        other.set(0, 9, alone=False)
        assert not suspect.claim(exclusive=True)
        suspect.close()
        assert other.set(10, 19, alone=False)

    def test_one_that_never_ends_is_not_waited_for_without_limit(
        self, marks: FileMarks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        suspect, endless = marks.open(GROUP, PLACE), marks.open("another", PLACE)
        endless.set(0, 9, alone=False)
        assert not suspect.claim(exclusive=True)
        monkeypatch.setattr("queuecore.consuming.marks._LONGEST_WAIT_S", 0.0)
        assert suspect.claim(exclusive=True)


def _in_company(pipe: Connection, folder: Path, comes: str) -> None:
    """A suspect under way, with another pack of the process that comes before or after it."""
    marks = FileMarks(folder)
    suspect, other = marks.open(GROUP, PLACE), marks.open("another", PLACE)
    if comes in ("before", "and goes"):
        other.set(0, 9, alone=False)
    if comes == "and goes":
        other.clear()
    assert suspect.claim()
    suspect.set(1, 1, alone=True)
    if comes == "after":
        other.set(0, 9, alone=False)
    pipe.send("set")
    pipe.recv()


class TestAMark:
    @pytest.mark.parametrize("alone", [True, False])
    def test_it_outlives_the_process_that_set_it(self, marks: FileMarks, tmp_path: Path, alone: bool) -> None:
        killed(tmp_path / "marks", 3, 7, alone=alone)
        assert marks.open(GROUP, PLACE).left_behind() == Mark(3, 7, alone=alone)

    def test_each_group_and_partition_has_its_own(self, marks: FileMarks, tmp_path: Path) -> None:
        killed(tmp_path / "marks", 3, 7)
        assert marks.open("another", PLACE).left_behind() is None
        assert marks.open(GROUP, ProviderPartition("in.0", 1)).left_behind() is None

    def test_one_whose_process_lives_says_nothing(self, marks: FileMarks, tmp_path: Path) -> None:
        """It is not dead of what it is at: only too slow for its group."""
        with Child(set_and_wait, tmp_path / "marks", PLACE, Mark(3, 7, alone=False)) as zombie:
            zombie.hear()
            assert marks.open(GROUP, PLACE).left_behind() is None
            zombie.kill()
        assert marks.open(GROUP, PLACE).left_behind() == Mark(3, 7, alone=False)

    def test_nor_does_ones_own(self, marks: FileMarks) -> None:
        marks.open(GROUP, PLACE).set(0, 1, alone=False)
        assert marks.open(GROUP, PLACE).left_behind() is None

    def test_cleared_it_is_gone(self, marks: FileMarks, tmp_path: Path) -> None:
        killed(tmp_path / "marks", 3, 7)
        mark = marks.open(GROUP, PLACE)
        mark.set(4, 5, alone=False)
        mark.clear()
        mark.close()
        assert marks.open(GROUP, PLACE).left_behind() is None

    def test_the_mark_of_a_later_owner_is_not_cleared(self, marks: FileMarks, tmp_path: Path) -> None:
        ours = marks.open(GROUP, PLACE)
        ours.set(0, 1, alone=False)
        killed(tmp_path / "marks", 3, 7)
        ours.clear()
        assert marks.open(GROUP, PLACE).left_behind() == Mark(3, 7, alone=False)

    @pytest.mark.parametrize("damage", [b"", b"torn", b"\0" * 40, b"\xff" * 40])
    def test_one_that_is_torn_says_nothing(self, marks: FileMarks, tmp_path: Path, damage: bytes) -> None:
        killed(tmp_path / "marks", 3, 7)
        [path] = (tmp_path / "marks").iterdir()
        path.write_bytes(damage + path.read_bytes()[len(damage) :] if damage else b"")
        assert marks.open(GROUP, PLACE).left_behind() is None

    def test_one_suspect_of_a_process_is_handled_at_a_time(self, marks: FileMarks) -> None:
        first, second = marks.open(GROUP, PLACE), marks.open("another", PLACE)
        assert first.claim()
        assert first.claim()
        assert not second.claim()
        second.release()
        assert not second.claim(), "it is not its to release"
        first.close()
        assert second.claim()

    def test_one_that_is_dead_and_not_yet_buried_is_dead(self, marks: FileMarks, tmp_path: Path) -> None:
        process = os.fork()
        if not process:
            FileMarks(tmp_path / "marks").open(GROUP, PLACE).set(3, 7, alone=False)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
        assert marks.open(GROUP, PLACE).left_behind() == Mark(3, 7, alone=False)
        os.waitpid(process, 0)

    def test_where_none_can_be_kept_that_is_said(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "file").write_text("in the way")
        mark = FileMarks(tmp_path / "file").open(GROUP, PLACE)
        mark.set(0, 1, alone=True)
        assert mark.left_behind() is None
        assert "a message that kills its process is not found" in caplog.text

    def test_without_a_store_there_is_none(self) -> None:
        mark = NoMarks().open(GROUP, PLACE)
        mark.set(0, 1, alone=True)
        assert mark.left_behind() is None


def opened(folder: Path) -> LogProvider:
    return LogProvider(folder / "log", consuming=ConsumerOptions(session_timeout_ms=500))


def consume(pipe: Connection, folder: Path) -> None:
    """Handles messages, and is killed by one of them. Ends well once all are committed."""

    def handle(record: Record, context: DeliveryContext) -> None:
        pipe.send(record.data.decode())
        if record.data == b"deadly":
            os.kill(os.getpid(), signal.SIGKILL)

    with closing(opened(folder)) as provider:
        bench = Bench(provider)
        made = Consumption(bench.plan(), provider, handle, marks=FileMarks(folder / "marks"))
        made.start()
        wait_until(lambda: bench.committed() == 5)
        assert made.stop(DEADLINE_S)


def heard_from(folder: Path) -> list[str]:
    with Child(consume, folder) as child:
        return child.hear_all()


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    with closing(opened(tmp_path)) as provider:
        Bench(provider).send("1", "2", "deadly", "4", "5")
    return tmp_path


def test_a_message_that_kills_its_worker_is_found_and_given_up(sent: Path) -> None:
    """The pack, then one by one, then without it."""
    first = heard_from(sent)
    assert "deadly" in first
    assert heard_from(sent) == ["1", "2", "deadly"]
    assert heard_from(sent)[-2:] == ["4", "5"]
    with closing(opened(sent)) as provider:
        bench = Bench(provider)
        stories = bench.stories()
        assert (list(stories), bench.committed()) == (["deadly"], 5)
    story = stories["deadly"]
    assert (story.reason, story.stage) == ("killed_worker", Stage.CRASH)
    assert "the only one under way; find out why before it is replayed" in story.exception_message


def subscribe(pipe: Connection, folder: Path) -> None:
    def handle(record: Record, context: DeliveryContext) -> None:
        if record.data == b"deadly":
            os.kill(os.getpid(), signal.SIGKILL)

    with open_queues("log", folder=folder) as queues:
        queues.create("orders")
        with queues.subscribe("orders", handle, group=GROUP) as subscription:
            subscription.drain()
        pipe.send([(letter.record.data, letter.story.reason) for letter in queues.dead_letters("orders")])


def test_so_it_is_by_the_library(tmp_path: Path) -> None:
    with open_queues("log", folder=tmp_path) as queues:
        queues.create("orders")
        for data in (b"1", b"deadly", b"2"):
            queues.publish("orders", None, data).result(DEADLINE_S)
    heard = []
    for _ in range(3):
        with Child(subscribe, tmp_path) as child:
            heard.append(child.hear_all())
    assert heard == [[], [], [[(b"deadly", "killed_worker")]]]


def test_while_messages_are_suspect_nothing_is_handled_beside_them(
    marks: FileMarks, tmp_path: Path, wide_bench: Bench
) -> None:
    """Else another would be blamed for what one of them does."""
    for info in wide_bench.infos:
        killed(tmp_path / "marks", 0, 1, place=info.place)
    wide_bench.send("a", "b", partition=0)
    wide_bench.send("x", "y", partition=1)
    gate = Gate("a", "x")
    consumption = wide_bench.consume(gate, marks=marks)
    wait_until(lambda: gate.seen)
    wait_until(lambda: consumption.counts.polled == 4)
    wait_until(lambda: consumption.budget.process > 0.05)
    assert len(gate.seen) == 1
    gate.open()
    wide_bench.wait_for_commit(2, partition=0)
    wide_bench.wait_for_commit(2, partition=1)


def test_one_that_killed_is_given_up_only_as_far_as_its_queue_allows(
    marks: FileMarks, tmp_path: Path, bench: Bench
) -> None:
    """It waits in a partition that stands still, and is not handed over then either."""
    killed(tmp_path / "marks", 1, 1, alone=True)
    bench.send("bad", "deadly", "good")
    handled: list[bytes] = []

    def handle(record: Record, context: DeliveryContext) -> None:
        handled.append(record.data)
        if record.data == b"bad":
            raise ValueError("no")

    policy = DeadLetterPolicy(max_count=1)
    consumption = bench.consume(
        handle, marks=marks, submit=SEQUENTIAL, processing=NO_RETRY, letters=policy, pack_size=1
    )
    wait_until(lambda: consumption.paused)
    consumption.resume()
    bench.wait_for_commit(3)
    assert sorted(handled) == [b"bad", b"good"]
    assert {data: story.reason for data, story in bench.stories().items()} == {
        "bad": "failed",
        "deadly": "killed_worker",
    }
