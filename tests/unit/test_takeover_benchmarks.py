"""What the benchmark of takeovers makes of what consumers noted."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks.takeover import Figures, Plot, Stage
from tests.reliability.journal import Begun, Journal


class Told:
    """A fleet of which only the notes are left."""

    coordinator = ""

    def __init__(self, notes: Mapping[str, Sequence[tuple[float, str]]]) -> None:
        self._begun = {name: [Begun(at, partition, "") for at, partition in said] for name, said in notes.items()}

    def start(self, name: str) -> None: ...

    def kill(self, name: str) -> float:
        return 0.0

    def begun(self) -> Mapping[str, Sequence[Begun]]:
        return self._begun


def plot() -> Plot:
    """`a` is consumed by host-1 until 2.0, from 6.0 on by host-2, which has `b` all the time."""
    ones = [(second / 10, "a") for second in range(10, 21)]
    twos = [(second / 10, "b") for second in range(10, 81, 2)] + [(6.0, "a"), (6.5, "a")]
    made = Plot(Told({"host-1": ones, "host-2": twos}))
    made.follow()
    made.follow()
    return made


def test_who_was_given_something_last_has_the_partition() -> None:
    assert plot().owners(2.5) == {"a": "host-1", "b": "host-2"}
    assert plot().owners(6.1) == {"a": "host-2", "b": "host-2"}
    assert plot().owners(0.5) == {}


def test_gaps_count_where_they_reach_into_the_window() -> None:
    assert round(plot().gap_s(["b"], 1.0, 8.0), 3) == 0.2
    assert round(plot().gap_s(["a", "b"], 1.0, 3.0), 3) == 4.0
    assert round(plot().gap_s(["a", "b"], 6.1, 8.0), 3) == 0.5


def test_a_pause_is_from_the_last_of_one_to_the_first_of_the_next() -> None:
    assert plot().first_s("a", 2.0, ["host-2"]) == 6.0
    assert plot().first_s("a", 2.0, ["host-3"]) is None
    assert plot().last_s("a", 6.0) == 2.0


def test_each_round_is_played_once_for_all_its_figures(tmp_path: Path) -> None:
    played: list[int] = []

    def perform(_folder: Path) -> Figures:
        played.append(len(played))
        return {"pause": played[-1], "gap": 10 + played[-1]}

    stage = Stage(perform)
    pause, gap = stage.figure("pause"), stage.figure("gap")
    assert [pause(tmp_path), pause(tmp_path)] == [0, 1]
    assert [gap(tmp_path), gap(tmp_path)] == [10, 11]
    assert played == [0, 1]


def test_a_journal_is_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    assert journal.begun == []
    path.write_text("1.5 in.0 first\n2.5 in.1 sec")
    assert journal.begun == [(1.5, "in.0", "first")]
    path.write_text("1.5 in.0 first\n2.5 in.1 second one\n")
    assert journal.begun == [(1.5, "in.0", "first"), (2.5, "in.1", "second one")]
