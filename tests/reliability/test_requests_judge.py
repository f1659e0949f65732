"""The judge finds what is planted, and nothing else."""

from pathlib import Path
from typing import Any

import pytest

from tests.reliability.requests_journal import Event, Journals, Notes, Plan, What, in_order
from tests.reliability.requests_judge import LATE_S, PATIENCE_S, Story, judge

ASKER, ANSWERER, OTHER = "ask-1.1", "answer-1.1", "answer-2.1"
COUNTS = {"pending": 0, "sent": 1, "answered": 1, "failed": 0, "timed_out": 0, "not_stored": 0, "cancelled": 0}
TIMEOUT_MS = 1_000
LONG_MS = 60_000


def started(at: float = 0.0, who: str = ANSWERER) -> Event:
    return Event(What.STARTED, at, who)


def sent(at: float = 1.0, timeout_ms: int = TIMEOUT_MS, plan: Plan = Plan.REPLY, number: int = 1) -> Event:
    return Event(What.SENT, at, ASKER, ASKER, number, plan=plan, timeout_ms=timeout_ms)


def begun(at: float = 1.1, who: str = ANSWERER, number: int = 1) -> Event:
    return Event(What.BEGUN, at, who, ASKER, number)


def ended(at: float = 1.2, outcome: str = "answer", answer: str = f"{ASKER}/1", number: int = 1) -> Event:
    return Event(What.ENDED, at, ASKER, ASKER, number, outcome=outcome, answer=answer if outcome == "answer" else "")


def told(outcome: str = "answer", at: float = 1.3) -> Event:
    return Event(What.TOLD, at, ASKER, ASKER, 1, outcome=outcome)


def stopped(at: float = 100.0, **counts: int) -> Event:
    return Event(What.STOPPED, at, ASKER, counts={**COUNTS, **counts})


def happens(what: What, at: float, who: str = ASKER, **said: Any) -> Event:
    return Event(what, at, who, **said)


def verdict(*events: Event) -> list[str]:
    return judge(Story(in_order([started(who=ASKER), started(), started(who=OTHER), *events])))


def timed_out(at: float) -> tuple[Event, Event]:
    return ended(at, "request_timeout"), stopped(answered=0, timed_out=1)


def test_where_all_is_well_nothing_is_found() -> None:
    assert verdict(sent(), begun(), ended(), told(), stopped()) == []


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    notes = Notes(tmp_path, ASKER)
    notes.note(What.SENT, asker=ASKER, number=3, plan=Plan.HANG, timeout_ms=7)
    notes.note(What.KILLED, ANSWERER)
    notes.note(What.STOPPED, counts=COUNTS)
    notes.close()
    notes.note(What.STOPPED)
    with (tmp_path / f"{ASKER}.journal").open("a") as journal:
        journal.write("12.5 half a li")
    sent_, killed, stopped_ = Journals(tmp_path).events()
    assert sent_ == Event(What.SENT, sent_.at, ASKER, ASKER, 3, plan="hang", timeout_ms=7)
    assert killed == Event(What.KILLED, killed.at, ANSWERER)
    assert stopped_ == Event(What.STOPPED, stopped_.at, ASKER, counts=COUNTS)


class TestEveryFutureEnds:
    def test_one_that_never_did_is_found_where_its_process_was_stopped_in_good_order(self) -> None:
        assert verdict(sent(), begun(), stopped(answered=0, timed_out=1)) == [
            "ask-1.1/1 never ended, and ask-1.1 was stopped in good order",
            "ask-1.1 counts 1 timed_out, and 0 are in its journal",
        ]

    def test_one_whose_process_was_killed_before_its_time_need_not(self) -> None:
        assert verdict(sent(), begun(), happens(What.KILLED, 1.5)) == []

    def test_one_whose_process_was_killed_long_after_its_time_is_found(self) -> None:
        killed = happens(What.KILLED, 2.0 + LATE_S + 1)
        assert verdict(sent(), begun(), killed) == [
            "ask-1.1/1 had not ended 6.0 s after its time, when ask-1.1 was killed"
        ]

    def test_one_that_ended_seconds_after_its_time_is_found(self) -> None:
        assert verdict(sent(), begun(), ended(2.0 + LATE_S + 1), stopped()) == [
            "ask-1.1/1 ended 6.0 s after its time, as answer"
        ]

    def test_the_time_in_which_its_process_stood_still_does_not_count(self) -> None:
        pause = happens(What.SUSPENDED, 1.5), happens(What.RESUMED, 30)
        assert verdict(sent(), begun(), *pause, ended(31), stopped()) == []
        assert len(verdict(sent(), begun(), *pause, ended(30 + LATE_S + 1), stopped())) == 1

    def test_a_pause_before_its_time_is_no_excuse(self) -> None:
        pause = happens(What.SUSPENDED, 1.2), happens(What.RESUMED, 1.9)
        assert len(verdict(sent(), begun(), *pause, ended(2.0 + LATE_S + 0.5), stopped())) == 1

    def test_one_that_timed_out_too_soon_is_found(self) -> None:
        end, stop = timed_out(1.5)
        assert verdict(sent(), begun(), end, stop) == ["ask-1.1/1 timed out before its time"]

    def test_a_thread_that_died_is_found(self) -> None:
        assert verdict(happens(What.BROKEN, 1, ANSWERER, outcome="KeyError: 7")) == [
            "a thread of answer-1.1 died of KeyError: 7"
        ]


class TestNoneTwice:
    def test_one_whose_callback_ran_twice_is_found(self) -> None:
        assert verdict(sent(), begun(), ended(), ended(2.1, "request_timeout"), stopped()) == [
            "ask-1.1/1 ended 2 times: answer, request_timeout"
        ]

    def test_a_caller_who_was_told_something_else_is_found(self) -> None:
        assert verdict(sent(), begun(), ended(), told("request_timeout"), stopped()) == [
            "ask-1.1/1 ended as answer, and its caller was told request_timeout"
        ]


class TestWithItsOwnAnswer:
    def test_another_answer_is_found(self) -> None:
        assert verdict(sent(), begun(), ended(answer="ask-1.1/2"), stopped()) == [
            "ask-1.1/1 got the answer to ask-1.1/2"
        ]

    def test_the_answer_of_an_earlier_life_is_found(self) -> None:
        assert verdict(sent(), begun(), ended(answer="ask-1.0/1"), stopped()) == [
            "ask-1.1/1 got the answer to ask-1.0/1"
        ]

    @pytest.mark.parametrize(
        ("plan", "outcome", "counts"),
        [
            (Plan.REPLY, "answer", {}),
            (Plan.BREAK, "request_failed/handler_failed", {"answered": 0, "failed": 1}),
        ],
    )
    def test_an_answer_to_what_nobody_handled_is_found(self, plan: Plan, outcome: str, counts: dict[str, int]) -> None:
        assert verdict(sent(plan=plan), ended(outcome=outcome), stopped(**counts)) == [
            f"ask-1.1/1 ended as {outcome}, and nobody handled it"
        ]

    def test_what_was_handled_and_never_sent_is_found(self) -> None:
        assert verdict(begun(number=9)) == ["ask-1.1/9 is begun by answer-1.1, and was never sent"]

    @pytest.mark.parametrize(
        ("plan", "outcome"),
        [
            (Plan.DAWDLE, "answer"),
            (Plan.REFUSE, "answer"),
            (Plan.REPLY, "request_failed/handler_failed"),
            (Plan.BREAK, "request_failed/as_planned"),
            (Plan.REFUSE, "request_failed/answer_refused"),
        ],
    )
    def test_what_its_handler_did_not_make_of_it_is_found(self, plan: Plan, outcome: str) -> None:
        counts = {} if outcome == "answer" else {"answered": 0, "failed": 1}
        assert verdict(sent(plan=plan), begun(), ended(outcome=outcome), stopped(**counts)) == [
            f"ask-1.1/1 ended as {outcome}, and its handler was to {plan}"
        ]

    @pytest.mark.parametrize("plan", list(Plan))
    def test_any_handler_may_have_taken_too_long(self, plan: Plan) -> None:
        end = ended(outcome="request_failed/handler_timed_out")
        assert verdict(sent(plan=plan), begun(), end, stopped(answered=0, failed=1)) == []

    def test_an_error_that_is_none_of_ours_is_found(self) -> None:
        end = ended(outcome="untyped KeyError")
        assert verdict(sent(), begun(), end, stopped(answered=0, not_stored=1)) == [
            "ask-1.1/1 ended as untyped KeyError, which is no error of ours"
        ]

    def test_one_that_nobody_cancelled_is_found(self) -> None:
        end, stop = ended(outcome="request_cancelled"), stopped(answered=0, cancelled=1)
        assert verdict(sent(), end, stop) == ["ask-1.1/1 ended as cancelled, and nobody did"]
        cancelled = happens(What.CANCELLED, 1.1, asker=ASKER, number=1)
        assert verdict(sent(), cancelled, end, stop) == []

    def test_one_that_was_stopped_in_a_process_that_was_not_is_found(self) -> None:
        end = ended(outcome="requests_stopped")
        assert verdict(sent(), end, happens(What.KILLED, 1.5)) == ["ask-1.1/1 ended as stopped, and ask-1.1 was not"]
        assert verdict(sent(), end, stopped(answered=0, cancelled=1)) == []


class TestNoneNeglected:
    """Two who answer; the one that has the request is killed."""

    killed = happens(What.KILLED, 1.5, ANSWERER)
    # The other one is there: it handles something else.
    busy = sent(1.2, number=2), begun(1.3, OTHER, 2), ended(1.4, "answer", f"{ASKER}/2", 2)

    def found(self, *events: Event, timeout_ms: int = LONG_MS) -> list[str]:
        deadline = 1 + timeout_ms / 1000
        end = ended(deadline, "request_timeout")
        stop = stopped(sent=2, answered=1, timed_out=1)
        return verdict(sent(timeout_ms=timeout_ms), begun(), *self.busy, end, stop, *events)

    def test_one_that_nobody_handled_again_is_found(self) -> None:
        assert self.found(self.killed) == ["ask-1.1/1 timed out, and answer-2.1 had 59.5 s for it; answer-1.1 had it"]

    def test_one_that_nobody_ever_handled_is_found(self) -> None:
        events = [sent(timeout_ms=LONG_MS), *self.busy, ended(61, "request_timeout")]
        assert verdict(*events, stopped(sent=2, answered=1, timed_out=1)) == [
            "ask-1.1/1 timed out, and answer-2.1 had 60.0 s for it; nobody had it"
        ]

    def test_one_that_was_handled_again_is_not_neglected(self) -> None:
        assert self.found(self.killed, begun(8, OTHER)) == []

    def test_one_that_is_with_somebody_who_still_runs_is_not_neglected(self) -> None:
        assert self.found() == []

    def test_there_must_have_been_time(self) -> None:
        assert self.found(self.killed, timeout_ms=int(PATIENCE_S * 1000)) == []

    def test_those_who_answer_must_have_been_left_alone(self) -> None:
        late = 61 - PATIENCE_S + 1
        for what in (What.KILLED, What.SUSPENDED, What.STARTED):
            assert self.found(self.killed, happens(what, late, "answer-3.1")) == []

    def test_another_must_have_been_there(self) -> None:
        assert self.found(self.killed, happens(What.KILLED, 1.6, OTHER)) == []
        assert self.found(self.killed, happens(What.SUSPENDED, 1.6, OTHER)) == []

    def test_who_asks_must_have_waited(self) -> None:
        assert self.found(self.killed, happens(What.SUSPENDED, 5), happens(What.RESUMED, 8)) == []


class TestTheCountsAddUp:
    @pytest.mark.parametrize(
        "counts",
        [{"sent": 2}, {"pending": 1}, {"cancelled": 1}, {"not_stored": 1}],
        ids=lambda counts: ",".join(counts),
    )
    def test_what_does_not_is_found(self, counts: dict[str, int]) -> None:
        [breach] = verdict(sent(), begun(), ended(), stopped(**counts))
        assert breach.startswith("ask-1.1 counts ")

    def test_they_are_those_of_the_journal(self) -> None:
        assert verdict(sent(), begun(), ended(), stopped(answered=0, failed=1)) == [
            "ask-1.1 counts 0 answered, and 1 are in its journal",
            "ask-1.1 counts 1 failed, and 0 are in its journal",
        ]
