"""What was changed between two texts: all of it, and what stayed around it alone."""

import time

from hypothesis import given
from hypothesis import strategies as st

from console.comparing import Line, compared_lines

LINES = st.lists(st.sampled_from("abcd"), max_size=30)


def told(before: str, after: str) -> list[str]:
    signs = {"del": "-", "ins": "+", "same": " ", "gap": "@"}
    return [signs[line.kind] + line.text for line in compared_lines(before.split(), after.split())]


def test_what_changed_is_told_with_what_is_around_it() -> None:
    before = "1 2 3 4 5 6 7 8 9"
    assert told(before, before) == []
    assert told(before, before.replace("5", "x y")) == [
        *("@@@ -2,7 +2,8 @@", " 2", " 3", " 4", "-5", "+x", "+y", " 6", " 7", " 8")
    ]
    assert told("a b", "b") == ["@@@ -1,2 +1,1 @@", "-a", " b"]
    assert told("a", "a a") == ["@@@ -1,1 +1,2 @@", " a", "+a"]


def test_changes_far_from_each_other_are_told_apart() -> None:
    lines = [str(number) for number in range(40)]
    changed = ["x" if line in ("5", "30") else line for line in lines]
    assert [line.text for line in compared_lines(lines, changed) if line.kind == "gap"] == [
        *("@@ -3,7 +3,7 @@", "@@ -28,7 +28,7 @@")
    ]


@given(LINES, LINES)
def test_what_is_told_makes_the_one_of_the_other(before: list[str], after: list[str]) -> None:
    lines = compared_lines(before, after)
    assert (not lines) == (before == after)
    assert _changed(before, lines) == after


def test_what_is_long_and_much_alike_is_compared_at_once() -> None:
    before = [str(number % 150) for number in range(200_000)]
    started = time.process_time()
    lines = compared_lines(before, ["x", *before[1:-1], "y"])
    assert lines[-1] == Line("gap", "and 399,001 lines more, which are not shown")
    assert len(lines) == 1_001
    assert compared_lines(before, [*before[:100_000], "x", *before[100_000:]])[4] == Line("ins", "x")
    assert time.process_time() - started < 5


def _changed(before: list[str], lines: list[Line]) -> list[str]:
    """What it becomes by these changes: the last first, as places are those of what was."""
    made, new = list(before), list[str]()
    for line in reversed(lines):
        if line.kind == "gap":
            [start, length] = line.text.split()[1].removeprefix("-").split(",")
            first = int(start) - 1
            made[first : first + int(length)], new = new, []
        elif line.kind != "del":
            new.insert(0, line.text)
    return made
