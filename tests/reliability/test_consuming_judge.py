"""The judge finds what is planted, and nothing else."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from queuecore.delivery import Delivery
from queuecore.processing import processing_strategy
from queuecore.submit import SubmitStrategyType
from tests.reliability.consuming_judge import Event, Message, Promise, Story, What, judge, read_journal

# One lane for each key: 0, 2, 4 and 1, 3, 5.
MESSAGES = [Message(number, 0, f"key-{number % 2}", "tenant") for number in range(6)]
ENDINGS = {"ok": What.SUCCEEDED, "fails": What.FAILED, "late": What.TIMED_OUT, "broken": What.UNDECODABLE}


def events(text: str) -> list[Event]:
    """A journal in short: `a+` is given the partition, `a-` gives it back, `a!` crashes; `a1` begins message 1, `a1.2`
    its second attempt, `a1:fails` ends it, and `a1=ok` does both."""
    found: list[Event] = []
    for word in text.split():
        who, rest = word[0], word[1:]
        if rest in "+-!":
            what = {"+": What.ASSIGNED, "-": What.RELEASED, "!": What.CRASHED}[rest]
            found.append(Event(what, who, 0))
            continue
        message, _, ending = rest.replace("=", ":").partition(":")
        number, _, attempt = message.partition(".")
        begun = Event(What.BEGUN, who, 0, int(number), int(attempt or 1))
        if ":" not in rest:
            found.append(begun)
        if ending:
            found.append(Event(ENDINGS[ending], who, 0, begun.number, begun.attempt))
    return found


def promise(submit: str = "BURST", processing: str = "RETRY_FAILED", delivery: str = "at_least_once") -> Promise:
    return Promise(SubmitStrategyType(submit), processing_strategy(processing, retries=2), Delivery(delivery))


def story(journal: str, outputs: Iterable[int] = range(6), letters: Iterable[int] = ()) -> Story:
    return Story(MESSAGES, events(journal), Counter(outputs), Counter(letters))


def sequential(journal: str, processing: str = "RETRY_FAILED", **rest: Any) -> list[str]:
    return judge(promise("SEQUENTIAL", processing, **rest), story(journal))


ALL_WELL = "a+ a0=ok a1=ok a2=ok a3=ok a4=ok a5=ok"


@pytest.mark.parametrize("submit", list(SubmitStrategyType))
@pytest.mark.parametrize("delivery", list(Delivery))
def test_where_all_is_well_nothing_is_found(submit: str, delivery: str) -> None:
    assert judge(promise(submit, delivery=delivery), story(ALL_WELL)) == []


def test_a_journal_is_read_as_it_was_written() -> None:
    written = events(ALL_WELL + " a! b+ b5=late b-")
    assert read_journal(b"".join(event.line() for event in written).decode()) == written


def test_half_a_line_is_left_out() -> None:
    first, second = (event.line().decode() for event in events("a+ a0"))
    assert read_journal(first[:20] + second) == events("a0")
    assert read_journal(first + second[:20]) == events("a+")


class TestNothingIsLost:
    @pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
    def test_a_lost_message_is_found(self, delivery: str) -> None:
        found = judge(promise(delivery=delivery), story(ALL_WELL, outputs=[0, 1, 2, 4, 5]))
        assert found == ["3 is lost"]

    def test_its_handler_having_returned_is_not_enough(self) -> None:
        assert judge(promise(), story(ALL_WELL, outputs=[])) == [f"{number} is lost" for number in range(6)]

    def test_a_letter_is_no_loss(self) -> None:
        assert judge(promise(), story(ALL_WELL, outputs=range(5), letters=[5])) == []


class TestAtMostOnceLosesInACrashOnly:
    def losses(self, journal: str, outputs: Iterable[int]) -> list[str]:
        return judge(promise(delivery="at_most_once"), story(journal, outputs))

    def test_what_was_under_way_or_committed(self) -> None:
        assert self.losses("a+ a0=ok a1 a! b+ b4=ok b5=ok", [0, 4, 5]) == []

    def test_without_a_crash_nothing_may_be_lost(self) -> None:
        [found] = self.losses(ALL_WELL, range(5))
        assert found == "5 is lost, and nobody crashed while they held partition 0"

    def test_nor_by_one_that_had_given_the_partition_back_before(self) -> None:
        found = self.losses("a+ a0=ok a- a! b+ b2=ok b3=ok b4=ok b5=ok", [0, 2, 3, 4, 5])
        assert found == ["1 is lost, and nobody crashed while they held partition 0"]

    def test_nor_what_another_had(self) -> None:
        [found] = self.losses("a+ a0=ok a! b+ b1=ok b2=ok b3=ok b4=ok b5=ok", range(5))
        assert found == "5 is lost, and b, who had it, did not crash"


class TestNothingIsDoubled:
    def test_at_least_once_may_do_anything_twice(self) -> None:
        journal = "a+ a0=ok a! b+ b0=ok b1=ok b2=ok b3=ok b4=ok b5=ok"
        assert judge(promise(), story(journal, outputs=[*range(6), 0], letters=[1])) == []

    def test_exactly_once_may_handle_twice_but_not_send(self) -> None:
        journal = "a+ a0=ok a! b+ b0=ok b1=ok b2=ok b3=ok b4=ok b5=ok"
        exactly_once = promise(delivery="exactly_once")
        assert judge(exactly_once, story(journal)) == []
        assert judge(exactly_once, story(journal, outputs=[*range(6), 0])) == ["0 has 2 outputs and 0 letters"]
        assert judge(exactly_once, story(journal, letters=[0])) == ["0 has 1 outputs and 1 letters"]

    @pytest.mark.parametrize("again", ["a0.2=ok", "a! b+ b0=ok"])
    def test_at_most_once_handles_nothing_twice(self, again: str) -> None:
        journal = f"{ALL_WELL} {again}"
        assert judge(promise(delivery="at_most_once"), story(journal)) == ["0 was delivered 2 times"]


class TestOrderInASequence:
    def test_a_swapped_order_is_found(self) -> None:
        assert sequential("a+ a0=ok a2=ok a1=ok a3=ok a4=ok a5=ok") == [
            "a was given 2 (attempt 1) before 1 was done",
            "a was given 1 (attempt 1) after 2",
        ]

    def test_two_side_by_side_are_found(self) -> None:
        assert sequential("a+ a0=ok a1 a2 a1:ok a2:ok a3=ok a4=ok a5=ok") == [
            "a was given 2 (attempt 1) while 1 was under way"
        ]

    @pytest.mark.parametrize("ending", ["fails", "late"])
    def test_what_will_be_tried_again_holds_back_the_rest(self, ending: str) -> None:
        journal = f"a+ a0={ending} a1=ok a0.2=ok a2=ok a3=ok a4=ok a5=ok"
        [found] = sequential(journal, "RETRY_FAILED_AND_TIMED_OUT")
        assert found == "a was given 1 (attempt 1) before 0 was done"

    @pytest.mark.parametrize(
        ("processing", "endings"),
        [
            ("SKIP_ALL_FAILURES", "a0=fails"),
            ("SKIP_ALL_FAILURES_AND_TIMED_OUT", "a0=late"),
            ("RETRY_FAILED", "a0=late"),
            ("RETRY_TIMED_OUT", "a0=fails"),
            ("RETRY_FAILED", "a0=broken"),
            ("RETRY_FAILED", "a0=fails a0.2=fails a0.3=fails"),
            ("RETRY_ALL", "a0=late a0.2=fails a0.3=late"),
        ],
    )
    def test_what_is_given_up_holds_back_nothing(self, processing: str, endings: str) -> None:
        assert sequential(f"a+ {endings} a1=ok a2=ok a3=ok a4=ok a5=ok", processing) == []

    def test_a_retry_too_few_is_found(self) -> None:
        found = sequential("a+ a0=fails a0.2=fails a1=ok a2=ok a3=ok a4=ok a5=ok")
        assert found[0] == "a was given 1 (attempt 1) before 0 was done"

    def test_a_pack_may_be_tried_again_from_its_beginning(self) -> None:
        assert sequential("a+ a0=ok a1=fails a0.2=ok a1.2=ok a2=ok a3=ok a4=ok a5=ok", "RETRY_ALL") == []

    def test_but_in_order(self) -> None:
        [found] = sequential("a+ a0=ok a1=fails a1.2 a0.2=ok a1.2:ok a2=ok a3=ok a4=ok a5=ok", "RETRY_ALL")
        assert found == "a was given 0 (attempt 2) while 1 was under way"


class TestOrderAcrossOwners:
    def test_the_next_goes_on_where_all_before_is_done(self) -> None:
        assert sequential("a+ a0=ok a1=ok a- b+ b2=ok b3=ok a+ a4=ok b- a5=ok") == []

    def test_or_before(self) -> None:
        assert sequential("a+ a0=ok a1=ok a2 a! b+ b1=ok b2=ok b3=ok b4=ok b5=ok") == []

    def test_one_that_skips_what_was_under_way_is_found(self) -> None:
        found = sequential("a+ a0=ok a1=ok a2 a! b+ b3=ok b4=ok b5=ok")
        assert found[0] == "b was given 3 (attempt 1) before 2 was done"

    def test_one_that_skips_what_was_to_be_tried_again_is_found(self) -> None:
        found = sequential("a+ a0=ok a1=fails a- b+ b2=ok b3=ok b4=ok b5=ok")
        assert found[0] == "b was given 2 (attempt 1) before 1 was done"

    def test_one_that_repeats_in_another_order_is_found(self) -> None:
        [found] = sequential("a+ a0=ok a1=ok a2=ok a! b+ b1=ok b0=ok b2=ok b3=ok b4=ok b5=ok")
        assert found == "b was given 0 (attempt 1) after 1"

    def test_one_that_does_not_hold_the_partition_is_found(self) -> None:
        [found] = sequential("a+ a0=ok a- a1=ok b+ b1=ok b2=ok b3=ok b4=ok b5=ok")
        assert found == "a was given 1 and does not hold partition 0"

    def test_at_most_once_goes_on_behind_what_it_lost(self) -> None:
        journal = "a+ a0=ok a1 a! b+ b3=ok b4=ok b5=ok"
        at_most_once = promise("SEQUENTIAL", delivery="at_most_once")
        assert judge(at_most_once, story(journal, outputs=[0, 3, 4, 5])) == []

    @pytest.mark.parametrize("begun", ["a0", ""], ids=["begun", "not even that"])
    def test_what_a_crash_caught_may_be_given_up_for_it(self, begun: str) -> None:
        journal = f"a+ {begun} a! b+ b1=ok b2=ok b3=ok b4=ok b5=ok"
        assert judge(promise("SEQUENTIAL"), story(journal, outputs=range(1, 6), letters=[0])) == []


class TestLanes:
    SIDE_BY_SIDE = "a+ a0 a1 a0:ok a2=ok a1:ok a3=ok a4=ok a5=ok"
    SWAPPED_IN_ONE = "a+ a2=ok a0=ok a1=ok a3=ok a4=ok a5=ok"

    @pytest.mark.parametrize(
        ("submit", "is_breach"),
        [("BURST", False), ("BATCH", False), ("SEQUENTIAL_BY_ORIGINATOR", False), ("SEQUENTIAL_BY_TENANT", True)],
    )
    def test_lanes_go_side_by_side(self, submit: str, is_breach: bool) -> None:
        assert bool(judge(promise(submit), story(self.SIDE_BY_SIDE))) == is_breach

    @pytest.mark.parametrize(
        ("submit", "is_breach"),
        [("BURST", False), ("BATCH", False), ("SEQUENTIAL_BY_ORIGINATOR", True), ("SEQUENTIAL_BY_TENANT", True)],
    )
    def test_each_in_its_order(self, submit: str, is_breach: bool) -> None:
        assert bool(judge(promise(submit), story(self.SWAPPED_IN_ONE))) == is_breach
