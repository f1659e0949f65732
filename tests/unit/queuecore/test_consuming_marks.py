"""What a process was at when it was killed: found by the next one, and only then."""

import os
import signal
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.marks import FileMarks, Mark, NoMarks
from queuecore.deadletter.envelope import Stage
from queuecore.messages import Record
from queuecore.providers.log import LogProvider
from queuecore.providers.options import ConsumerOptions
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition
from tests.processes import Child
from tests.unit.queuecore.consuming_kit import GROUP, Bench

PLACE = ProviderPartition("in.0", 0)


@pytest.fixture
def marks(tmp_path: Path) -> FileMarks:
    return FileMarks(tmp_path / "marks")


def set_and_wait(pipe: Connection, folder: Path, first: int, last: int, alone: bool) -> None:
    """A process that has messages with handlers until it is killed."""
    FileMarks(folder).open(GROUP, PLACE).set(first, last, alone=alone)
    pipe.send("set")
    pipe.recv()


def killed(folder: Path, first: int, last: int, *, alone: bool = False) -> None:
    with Child(set_and_wait, folder, first, last, alone) as child:
        assert child.hear() == "set"
        child.kill()


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
        with Child(set_and_wait, tmp_path / "marks", 3, 7, False) as zombie:
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
