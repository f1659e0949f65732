"""The six processing strategies: what becomes of messages that failed or timed out."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.consuming.work import Outcome, Work
from queuecore.errors import ConfigurationError, UndecodableMessage
from queuecore.messages import QueueMessage, Record
from queuecore.processing import ProcessingStrategy, ProcessingStrategyType, Verdict, processing_strategy
from queuecore.sending import Addressed
from queuecore.topics import TopicPartitionInfo
from tests.unit.counting import lines_run

NOT_SUBMITTED, SUCCEEDED, FAILED, TIMED_OUT = (
    Outcome.NOT_SUBMITTED,
    Outcome.SUCCEEDED,
    Outcome.FAILED,
    Outcome.TIMED_OUT,
)
PASSED_OVER, POSTPONED = Outcome.PASSED_OVER, Outcome.POSTPONED
TROUBLE: Final = {FAILED, TIMED_OUT}
CARRIED: Final = {NOT_SUBMITTED, POSTPONED}
NOW_S, NOW_MS = 1_000.0, 1_700_000_000_000
SENT = (Addressed(TopicPartitionInfo("out", 0), QueueMessage(None, b"sent")),)

RETRIED: Final = {
    "SKIP_ALL_FAILURES": set(),
    "SKIP_ALL_FAILURES_AND_TIMED_OUT": set(),
    "RETRY_ALL": {FAILED, TIMED_OUT},
    "RETRY_FAILED": {FAILED},
    "RETRY_TIMED_OUT": {TIMED_OUT},
    "RETRY_FAILED_AND_TIMED_OUT": {FAILED, TIMED_OUT},
}
RETRYING: Final = [(kind, outcome) for kind, outcomes in RETRIED.items() for outcome in outcomes]

every_kind = pytest.mark.parametrize("kind", list(ProcessingStrategyType))


def work(outcome: Outcome, failures: int = 0, *, error: BaseException | None = None, offset: int = 0) -> Work:
    one = Work(Record("t.0", 0, offset, 0, None, {}, b""), None)
    one.outcome, one.trouble.failures, one.trouble.error = outcome, failures, error
    if outcome is SUCCEEDED:
        one.outgoing = SENT
    return one


def decide(strategy: ProcessingStrategy, *works: Work) -> Verdict:
    return strategy.decide(works, NOW_S, NOW_MS)


def where(verdict: Verdict, one: Work) -> list[str]:
    """The lists of the verdict that the message is in."""
    return [name for name in ("done", "given_up", "again") if any(one is other for other in getattr(verdict, name))]


errors = st.sampled_from([None, ValueError("broken"), UndecodableMessage("not a message")])
packs = st.lists(st.builds(work, st.sampled_from(Outcome), st.integers(0, 6), error=errors), max_size=30)
strategies = st.builds(
    ProcessingStrategy,
    st.sampled_from(ProcessingStrategyType),
    retries=st.integers(0, 5),
    failure_percentage=st.one_of(st.just(0), st.just(100), st.floats(0, 100)),
    pause_ms=st.integers(0, 500),
    max_pause_ms=st.integers(500, 10_000),
)


class TestAnyPack:
    @given(strategies, packs)
    def test_each_message_that_ended_is_in_one_list(self, strategy: ProcessingStrategy, pack: list[Work]) -> None:
        verdict = decide(strategy, *pack)
        assert all(len(where(verdict, one)) == 1 for one in pack if one.outcome not in CARRIED)

    @given(strategies, packs)
    def test_one_that_was_not_submitted_or_is_postponed_is_in_none_and_costs_nothing(
        self, strategy: ProcessingStrategy, pack: list[Work]
    ) -> None:
        carried = [one for one in pack if one.outcome in CARRIED]
        before = [(one.failures, one.due_at, one.reason, one.trouble.first_failed_at_ms) for one in carried]
        verdict = decide(strategy, *pack)
        assert all(where(verdict, one) == [] for one in carried)
        assert [(one.failures, one.due_at, one.reason, one.trouble.first_failed_at_ms) for one in carried] == before

    @given(strategies, packs)
    def test_only_trouble_is_given_up_and_has_a_reason(self, strategy: ProcessingStrategy, pack: list[Work]) -> None:
        verdict = decide(strategy, *pack)
        assert {one.outcome for one in verdict.given_up} <= TROUBLE
        assert all(bool(one.reason) == (where(verdict, one) == ["given_up"]) for one in pack)

    @given(strategies, packs)
    def test_trouble_is_counted_once_for_each_message(self, strategy: ProcessingStrategy, pack: list[Work]) -> None:
        before = [one.failures for one in pack]
        decide(strategy, *pack)
        assert [one.failures for one in pack] == [
            failures + (one.outcome in TROUBLE) for failures, one in zip(before, pack, strict=True)
        ]

    @given(strategies, packs)
    def test_what_succeeded_is_done_or_tried_again_with_the_pack(
        self, strategy: ProcessingStrategy, pack: list[Work]
    ) -> None:
        verdict = decide(strategy, *pack)
        repeated = [one for one in verdict.again if one.outcome not in TROUBLE]
        if repeated:
            assert strategy.kind is ProcessingStrategyType.RETRY_ALL
            assert not verdict.done, "some of the pack would be handled once, some twice"
            assert {one.outcome for one in verdict.again} & TROUBLE, "nobody needs it"

    @given(strategies, packs)
    def test_what_is_tried_again_is_due_after_its_pause(self, strategy: ProcessingStrategy, pack: list[Work]) -> None:
        again = decide(strategy, *pack).again
        for one in again:
            if one.outcome in TROUBLE:
                assert one.due_at >= NOW_S + strategy.pause_after_ms(one.failures) / 1000
            assert one.due_at <= NOW_S + strategy.max_pause_ms / 1000

    @given(strategies, packs)
    def test_what_its_handler_sent_stays_with_what_is_done_alone(
        self, strategy: ProcessingStrategy, pack: list[Work]
    ) -> None:
        verdict = decide(strategy, *pack)
        assert all(one.outgoing == SENT for one in verdict.done if one.outcome is SUCCEEDED)
        assert all(one.outgoing == () for one in verdict.again)


class TestOneMessage:
    @every_kind
    @pytest.mark.parametrize("outcome", [FAILED, TIMED_OUT], ids=lambda one: one.name)
    def test_it_is_tried_again_where_the_strategy_says_so(self, kind: str, outcome: Outcome) -> None:
        one = work(outcome)
        verdict = decide(processing_strategy(kind), one)
        assert where(verdict, one) == (["again"] if outcome in RETRIED[kind] else ["given_up"])
        assert one.trouble.first_failed_at_ms == NOW_MS

    @pytest.mark.parametrize(
        ("kind", "outcome", "failures", "reason"),
        [
            ("SKIP_ALL_FAILURES", FAILED, 0, "failed"),
            ("SKIP_ALL_FAILURES", TIMED_OUT, 0, "timed_out"),
            ("SKIP_ALL_FAILURES_AND_TIMED_OUT", TIMED_OUT, 0, "timed_out"),
            ("RETRY_FAILED", TIMED_OUT, 0, "timed_out"),
            ("RETRY_FAILED", FAILED, 3, "retries_exhausted"),
            ("RETRY_TIMED_OUT", FAILED, 0, "failed"),
            ("RETRY_TIMED_OUT", TIMED_OUT, 3, "retries_exhausted"),
            ("RETRY_ALL", FAILED, 3, "retries_exhausted"),
            ("RETRY_FAILED_AND_TIMED_OUT", TIMED_OUT, 3, "retries_exhausted"),
        ],
    )
    def test_the_reason_says_why_it_was_given_up(self, kind: str, outcome: Outcome, failures: int, reason: str) -> None:
        one = work(outcome, failures)
        decide(processing_strategy(kind), one)
        assert one.reason == reason

    @every_kind
    def test_one_that_cannot_be_decoded_is_given_up_at_once(self, kind: str) -> None:
        one = work(FAILED, error=UndecodableMessage("not a message"))
        strategy = processing_strategy(kind, retries=0)
        assert not strategy.may_retry(one, FAILED), "it must not hold back its lane"
        assert where(decide(strategy, one), one) == ["given_up"]
        assert one.reason == "undecodable"

    @every_kind
    @pytest.mark.parametrize("outcome", [SUCCEEDED, FAILED, TIMED_OUT], ids=lambda one: one.name)
    @pytest.mark.parametrize("failures", [0, 2, 3, 4])
    def test_may_retry_foretells_the_verdict(self, kind: str, outcome: Outcome, failures: int) -> None:
        one, strategy = work(outcome, failures), processing_strategy(kind, retries=3)
        foretold = strategy.may_retry(one, outcome)
        assert (where(decide(strategy, one), one) == ["again"]) == foretold

    def test_the_first_failure_keeps_its_time(self) -> None:
        one = work(FAILED)
        strategy = processing_strategy("RETRY_FAILED")
        strategy.decide([one], NOW_S, NOW_MS)
        strategy.decide([one], NOW_S + 1, NOW_MS + 1_000)
        assert one.trouble.first_failed_at_ms == NOW_MS

    @every_kind
    def test_a_handler_is_left_alone_by_skip_all_failures_only(self, kind: str) -> None:
        assert processing_strategy(kind).cancels_overruns == (kind != "SKIP_ALL_FAILURES")


class TestRetries:
    @pytest.mark.parametrize(("kind", "outcome"), RETRYING, ids=str)
    @given(retries=st.integers(1, 20))
    def test_they_follow_the_first_attempt(self, kind: str, outcome: Outcome, retries: int) -> None:
        strategy, one = processing_strategy(kind, retries=retries), work(outcome)
        fates = [where(decide(strategy, one), one) for _ in range(retries + 1)]
        assert fates == [["again"]] * retries + [["given_up"]]

    @pytest.mark.parametrize(("kind", "outcome"), RETRYING, ids=str)
    @given(failures=st.integers(0, 10**6))
    def test_none_is_without_limit(self, kind: str, outcome: Outcome, failures: int) -> None:
        one = work(outcome, failures)
        assert where(decide(processing_strategy(kind, retries=0), one), one) == ["again"]

    @pytest.mark.parametrize(("kind", "outcome"), RETRYING, ids=str)
    def test_they_are_counted_for_each_message(self, kind: str, outcome: Outcome) -> None:
        tired, fresh = work(outcome, 3), work(outcome, 0)
        verdict = decide(processing_strategy(kind, retries=3), tired, fresh)
        assert (where(verdict, tired), where(verdict, fresh)) == (["given_up"], ["again"])

    def test_failures_and_timeouts_are_counted_together(self) -> None:
        strategy, one = processing_strategy("RETRY_FAILED_AND_TIMED_OUT", retries=1), work(FAILED)
        decide(strategy, one)
        one.outcome = TIMED_OUT
        assert where(decide(strategy, one), one) == ["given_up"]


class TestRetryAll:
    strategy = processing_strategy("RETRY_ALL", retries=2)

    def test_those_that_succeeded_are_handled_again(self) -> None:
        done, failed, carried = work(SUCCEEDED), work(FAILED), work(NOT_SUBMITTED)
        verdict = decide(self.strategy, done, failed, carried)
        assert (verdict.done, verdict.given_up) == ([], [])
        assert set(verdict.again) == {done, failed}
        assert done.due_at == failed.due_at, "the pack goes together"
        assert done.failures == 0, "a repetition is no failure"

    def test_a_pack_without_trouble_is_done(self) -> None:
        done, carried = work(SUCCEEDED), work(NOT_SUBMITTED)
        assert decide(self.strategy, done, carried) == Verdict(done=[done])

    def test_one_for_another_group_is_passed_over_alone(self) -> None:
        passed = work(PASSED_OVER)
        assert decide(self.strategy, passed) == Verdict(done=[passed])

    def test_nothing_is_repeated_for_one_that_is_given_up(self) -> None:
        done, tired = work(SUCCEEDED), work(FAILED, 2)
        assert decide(self.strategy, done, tired) == Verdict(done=[done], given_up=[tired])

    def test_those_that_are_given_up_are_not_repeated_with_the_others(self) -> None:
        done, tired, failed = work(SUCCEEDED), work(FAILED, 2), work(TIMED_OUT)
        verdict = decide(self.strategy, done, tired, failed)
        assert verdict.given_up == [tired]
        assert set(verdict.again) == {done, failed}

    def test_the_pack_waits_for_the_longest_pause(self) -> None:
        once, often, done = work(FAILED), work(FAILED, 5), work(SUCCEEDED)
        strategy = processing_strategy("RETRY_ALL", retries=0, pause_ms=100, max_pause_ms=10_000)
        decide(strategy, once, often, done)
        assert {one.due_at for one in (once, often, done)} == {NOW_S + 3.2}

    def test_what_succeeded_is_handled_no_more_often_than_what_fails_may_be(self) -> None:
        strategy = processing_strategy("RETRY_ALL", retries=2)
        failed, done = work(FAILED), work(SUCCEEDED)
        done.deliveries = 2
        assert set(decide(strategy, failed, done).again) == {failed, done}
        failed, done = work(FAILED), work(SUCCEEDED)
        done.deliveries = 3
        verdict = decide(strategy, failed, done)
        assert (verdict.done, verdict.again) == ([done], [failed])

    @every_kind
    def test_it_alone_retries_the_pack(self, kind: str) -> None:
        assert processing_strategy(kind).retries_pack == (kind == "RETRY_ALL")


class TestFailurePercentage:
    @staticmethod
    def verdict(percentage: float, outcomes: Sequence[Outcome]) -> Verdict:
        strategy = processing_strategy("RETRY_FAILED_AND_TIMED_OUT", failure_percentage=percentage)
        return decide(strategy, *map(work, outcomes))

    @pytest.mark.parametrize(
        ("percentage", "gives_up"), [(0, False), (0.5, True), (49, True), (50, False), (51, False), (100, False)]
    )
    def test_more_than_it_gives_up_at_once(self, percentage: float, gives_up: bool) -> None:
        verdict = self.verdict(percentage, [FAILED, SUCCEEDED, TIMED_OUT, SUCCEEDED])
        assert (len(verdict.given_up), len(verdict.again)) == ((2, 0) if gives_up else (0, 2))
        assert {one.reason for one in verdict.given_up} <= {"failure_percentage"}
        assert len(verdict.done) == 2

    @pytest.mark.parametrize("other", [NOT_SUBMITTED, PASSED_OVER, POSTPONED], ids=lambda one: one.name)
    def test_it_is_of_those_that_a_handler_tried(self, other: Outcome) -> None:
        assert len(self.verdict(49, [FAILED, SUCCEEDED] + [other] * 98).given_up) == 1

    @given(packs, st.sampled_from(ProcessingStrategyType))
    def test_0_and_100_give_up_nothing(self, pack: list[Work], kind: ProcessingStrategyType) -> None:
        for percentage in (0, 100):
            decide(ProcessingStrategy(kind, failure_percentage=percentage), *pack)
            assert "failure_percentage" not in {one.reason for one in pack}

    def test_one_that_fails_again_among_few_is_not_more(self) -> None:
        strategy = processing_strategy("RETRY_FAILED", retries=3, failure_percentage=50)
        assert decide(strategy, work(FAILED, 1)).given_up == []
        again, new = work(FAILED, 1), work(FAILED)
        verdict = decide(strategy, again, new)
        assert (verdict.again, verdict.given_up) == ([again], [new])

    def test_it_spares_a_repetition_of_what_succeeded(self) -> None:
        done, failed = work(SUCCEEDED), work(FAILED)
        verdict = decide(processing_strategy("RETRY_ALL", failure_percentage=10), done, failed)
        assert verdict == Verdict(done=[done], given_up=[failed])

    def test_what_would_be_given_up_anyway_keeps_its_reason(self) -> None:
        one = work(FAILED, 3)
        decide(processing_strategy("RETRY_FAILED", retries=3, failure_percentage=10), one)
        assert one.reason == "retries_exhausted"


class TestPauses:
    def test_they_double_up_to_the_longest(self) -> None:
        strategy = ProcessingStrategy(pause_ms=200, max_pause_ms=5_000)
        assert [strategy.pause_after_ms(failures) for failures in range(1, 8)] == [
            200, 400, 800, 1_600, 3_200, 5_000, 5_000,
        ]  # fmt: skip

    @given(st.integers(1, 10_000), st.integers(0, 10_000))
    def test_each_is_twice_the_one_before_or_the_longest(self, pause_ms: int, more_ms: int) -> None:
        strategy = ProcessingStrategy(pause_ms=pause_ms, max_pause_ms=pause_ms + more_ms)
        pauses = [strategy.pause_after_ms(failures) for failures in range(1, 100)]
        assert pauses[0] == pause_ms
        assert all(after == min(2 * before, strategy.max_pause_ms) for before, after in pairwise(pauses))

    @given(st.integers(1, 10**9))
    def test_no_pause_stays_none(self, failures: int) -> None:
        assert ProcessingStrategy(pause_ms=0).pause_after_ms(failures) == 0

    def test_each_message_has_its_own(self) -> None:
        strategy = processing_strategy("RETRY_FAILED", retries=0, pause_ms=100, max_pause_ms=1_000)
        once, twice = work(FAILED), work(FAILED, 1)
        decide(strategy, once, twice)
        assert (once.due_at, twice.due_at) == (NOW_S + 0.1, NOW_S + 0.2)


class TestConfiguring:
    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"retries": -1}, "retries is -1; use 0"),
            ({"failure_percentage": -1}, "failure_percentage is -1; use 0"),
            ({"failure_percentage": 100.5}, r"failure_percentage is 100\.5; use 0 \(off\) to 100"),
            ({"failure_percentage": float("nan")}, "failure_percentage is nan"),
            ({"pause_ms": -1}, "pause between retries is -1 ms"),
            ({"pause_ms": 2, "max_pause_ms": 1}, "pause between retries is 2 ms and at most 1 ms"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, options: dict[str, float], problem: str) -> None:
        with pytest.raises(ConfigurationError, match=problem):
            processing_strategy("RETRY_ALL", **options)

    def test_a_name_that_there_is_not_is_refused_with_those_there_are(self) -> None:
        with pytest.raises(ConfigurationError, match="'RETRY'; choose one of SKIP_ALL_FAILURES, "):
            processing_strategy("RETRY")


@every_kind
def test_cost_is_linear_in_the_pack(kind: str) -> None:
    strategy = processing_strategy(kind)

    def steps(count: int) -> int:
        outcomes = list(Outcome)
        pack = [work(outcomes[number % len(outcomes)], offset=number) for number in range(count)]
        return lines_run(lambda: decide(strategy, *pack))

    small, middle, large = steps(120), steps(240), steps(480)
    assert large - middle <= 2.1 * (middle - small)
