"""The judge of clusters finds what is planted, and nothing else."""

from collections.abc import Collection
from pathlib import Path

import pytest

from tests.reliability.cluster_journal import Event, Journal, What, read_journals
from tests.reliability.cluster_judge import Story, judge

_PIDS = {"a": 1, "b": 2}
_PLAIN = {"+": What.GIVEN, "!": What.OVER, "p": What.PAUSED, "r": What.RESUMED}


def events(text: str) -> list[Event]:
    """A journal in short, one word a second. Host `a` is given the partition under epoch 3 (`a+3`), learns that its
    lease is over (`a!`), stands still (`ap`) and goes on (`ar`). It begins message 1 (`a1`), ends it (`a1.`), or both
    (`a1=`). It begins to commit to 2 (`a>2/3`, the epoch behind), has committed (`a<2/3`), or was refused (`ax2/3`).
    `s1` is stored. Message 1 is the second of its entity, at offset 1."""
    return [_event(word, float(second)) for second, word in enumerate(text.split()) for word in _both(word)]


def _both(word: str) -> list[str]:
    return [word[:-1], word[:-1] + "."] if word.endswith("=") else [word]


def _event(word: str, at: float) -> Event:
    who, rest = word[0], word[1:]
    pid = _PIDS.get(who, 0)
    if rest[0] in _PLAIN:
        return Event(_PLAIN[rest[0]], at, who, pid, "p", epoch=int(rest[1:] or 0), since=at)
    if rest[0] in "<>x":
        what = {">": What.COMMITTING, "<": What.COMMITTED, "x": What.REFUSED}[rest[0]]
        offset, _, epoch = rest[1:].partition("/")
        return Event(what, at, who, pid, "p", int(epoch), int(offset), call=100 + int(offset))
    number = int(rest.rstrip("."))
    what = What.STORED if who == "s" else What.ENDED if rest.endswith(".") else What.BEGUN
    return Event(what, at, who, pid, "p", offset=number, entity="e", number=number, call=number)


def found(text: str, letters: Collection[str] = ()) -> list[str]:
    return judge(Story(events(text), letters))


ALL_WELL = "s0 s1 s2 a+1 a0= a>1/1 a<1/1 a1= a2= a>3/1 a<3/1"


def test_where_all_is_well_nothing_is_found() -> None:
    assert found(ALL_WELL) == []


def test_a_journal_is_read_as_it_was_written_whoever_wrote_it(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    first, second = (Journal(path, path.name) for path in paths)
    second.note(What.BEGUN, at=2.0, entity="e", number=4)
    first.note(What.GIVEN, at=1.0, place="p", epoch=7, since=0.5)
    with paths[1].open("a") as half:
        half.write('\n{"what": "ended", "at": 3')
    assert [(event.what, event.who) for event in read_journals(paths)] == [(What.GIVEN, "one"), (What.BEGUN, "two")]
    first.close()
    second.close()


class TestFencing:
    def test_an_older_epoch_that_is_accepted_after_a_newer_one_is_found(self) -> None:
        [breach] = found("a+1 b+2 b>1/2 b<1/2 a>1/1 a<1/1")
        assert breach.startswith("a's commit of p to 1 under epoch 1 at 4.000 was accepted after b's commit of p to 1")

    def test_one_that_is_refused_is_as_it_should_be(self) -> None:
        assert found("a+1 b+2 b>1/2 b<1/2 a>1/1 ax1/1") == []

    def test_before_the_first_commit_of_the_newer_one_the_older_may_commit(self) -> None:
        assert found("a+1 b+2 a>1/1 a<1/1 b>1/2 b<1/2") == []

    @pytest.mark.parametrize("journal", ["a+1 b+2 a>1/1 b>1/2 b<1/2 a<1/1", "a+1 b+2 b>1/2 a>1/1 a<1/1 b<1/2"])
    def test_of_those_that_are_under_way_together_either_may_be_first(self, journal: str) -> None:
        assert found(journal) == []

    def test_what_became_of_one_whose_process_was_killed_is_not_known(self) -> None:
        assert found("a+1 b+2 b>1/2 a>1/1 a<1/1") == []

    def test_an_offset_that_goes_back_is_found(self) -> None:
        [breach] = found("a+1 a>2/1 a<2/1 a>1/1 a<1/1")
        assert "goes back behind a's commit of p to 2" in breach


class TestNothingIsLost:
    def test_a_message_that_nobody_ended_is_found(self) -> None:
        assert found("s0 s1 a+1 a0= a1") == ["e/1 is lost, it was stored as p@1"]

    def test_a_letter_is_no_loss(self) -> None:
        assert found("s0 s1 s2 a+1 a0= a1 b+2 b2=", letters={"e/1"}) == []


class TestOrder:
    def test_what_is_begun_before_the_one_before_it_has_ended_is_found(self) -> None:
        [breach] = found("a+1 a0 b+2 b1=")
        assert breach.endswith("before the one before it had ended")

    def test_what_is_left_out_is_found(self) -> None:
        assert any("before the one before it had ended" in breach for breach in found("a+1 a0= a2= a1="))

    def test_a_tenure_that_begins_two_at_once_is_found(self) -> None:
        assert "while it was still at 0" in found("a+1 a0 a1 a0. a1.")[-1]

    def test_a_tenure_that_begins_one_twice_is_found(self) -> None:
        [breach] = found("a+1 a0= a1= a1=")
        assert breach.endswith("after 1 in the same tenure")

    def test_a_tenure_that_leaves_one_out_that_others_had_is_found(self) -> None:
        [breach] = found("a+1 a0= a1= a2= b+2 b0= b2=")
        assert breach.endswith("after 0 in the same tenure")

    def test_what_was_not_committed_comes_again(self) -> None:
        assert found("a+1 a0= a1= a>1/1 a<1/1 b+2 b1= b2=") == []

    def test_a_host_that_is_given_its_partition_again_repeats_what_was_not_committed(self) -> None:
        assert found("a+1 a0= a1= a+2 a0= a1=") == []

    def test_what_was_committed_and_comes_again_is_found(self) -> None:
        [breach] = found("a+1 a0= a1= a>2/1 a<2/1 b+2 b1=")
        assert "which was done when it was given the partition: a's commit of p to 2" in breach

    def test_what_an_owner_committed_that_had_lost_the_partition_may_come_again(self) -> None:
        assert found("a+1 a0= b+2 a>1/1 a<1/1 b0=") == []

    def test_who_has_lost_the_partition_and_goes_on_is_found(self) -> None:
        [breach] = found("a+1 a0= b+2 b0= a1=")
        assert breach.endswith("and b had the partition, since 2.000 under epoch 2")

    def test_who_stood_still_meanwhile_cannot_know(self) -> None:
        assert found("a+1 a0= ap b+2 b0= ar a1=") == []

    def test_who_stood_still_before_it_was_given_the_partition_can_know(self) -> None:
        [breach] = found("ap ar a+1 a0= b+2 a1=")
        assert "and b had the partition" in breach

    def test_who_knows_that_its_lease_is_over_and_goes_on_is_found(self) -> None:
        assert found("a+1 a0= a! a1= a2=") == []
        [breach] = found("a+1 a0= a! a1= a2= a3=")
        assert breach.endswith("and knew that its lease was over")

    def test_one_that_begins_without_being_given_anything_is_found(self) -> None:
        [breach] = found("a0=")
        assert breach.endswith("and was not given the partition")
