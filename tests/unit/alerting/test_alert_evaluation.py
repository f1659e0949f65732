"""When alerts fire, change and resolve: all of it without a database."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueapi.alerting.defaults import DEFAULT_RULES
from queueapi.alerting.evaluation import RECOVERED, RULE_GONE, RULE_OFF, SUBJECT_GONE, evaluate
from queueapi.alerting.metrics import METRICS, SubjectKind, measure, told
from queueapi.alerting.values import (
    Changed,
    Changes,
    Figures,
    Observation,
    OpenAlert,
    Rule,
    Silencing,
    Standing,
    Subject,
    Watched,
)
from queueapi.choices import LEGAL_ALERT_CHANGES, AlertMetric, AlertState, NoticeKind

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
LAG = AlertMetric.LAG_MESSAGES
TENANT, QUEUE = uuid4(), uuid4()
SUBJECT = Subject(SubjectKind.QUEUE, "Main", str(QUEUE), TENANT)
FIRING, ACKNOWLEDGED, SILENCED, RESOLVED = AlertState
EVERYTHING = Silencing(queue_id=QUEUE)


def rule(**fields) -> Rule:
    return Rule(**{"id": uuid4(), "metric": LAG, "threshold": 100, "resolve_at": 80, **fields})


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def lag(value: float | None = None, *, now: datetime = NOW, age_s: float = 0) -> dict:
    """What is known of one queue: without a value it is gone."""
    if value is None:
        return {LAG: Figures(now)}
    return {LAG: Figures(now, {SUBJECT.key: Observation(SUBJECT, value, now - timedelta(seconds=age_s))})}


def alert(of: Rule, **fields) -> OpenAlert:
    told = {"state": FIRING, "value": 150.0, "detail": "", "fired_at": NOW, "told_at": NOW, **fields}
    return OpenAlert(id=uuid4(), rule_id=of.id, metric=of.metric, subject=SUBJECT, **told)


def standing(*rules: Rule, figures: dict, **more) -> Standing:
    return Standing({one.id: one for one in rules}, figures, **more)


def the(changes: Changes) -> Changed:
    [change] = changes.changed
    return change


class Machine:
    """What an installation does with the changes: one evaluation after the other."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules
        self.open: dict[UUID, OpenAlert] = {}
        self.breaches: dict[Watched, datetime] = {}
        self.notices: list[tuple[UUID, NoticeKind]] = []
        self.states: dict[UUID, list[AlertState]] = {}

    def step(self, now: datetime, figures: dict, silences: tuple[Silencing, ...] = ()) -> Changes:
        known = standing(
            *self.rules,
            figures=figures,
            open_alerts=tuple(self.open.values()),
            breaches=dict(self.breaches),
            silences=silences,
        )
        changes = evaluate(known, now)
        for watched in changes.breaches_ended:
            del self.breaches[watched]
        self.breaches |= dict.fromkeys(changes.breaches_begun, now)
        for change in changes.changed:
            self._apply(change, now)
        for one in changes.fired:
            state = SILENCED if one.is_silenced else FIRING
            made = replace(
                alert(one.rule, state=state, value=one.observation.value),
                subject=one.observation.subject,
                told_at=None if one.is_silenced else now,
            )
            self.open[made.id] = made
            self.states[made.id] = [state]
            if not one.is_silenced:
                self.notices.append((made.id, NoticeKind.FIRED))
        return changes

    def acknowledge(self) -> None:
        for one in self.open.values():
            self.open[one.id] = replace(one, state=ACKNOWLEDGED)
            self.states[one.id].append(ACKNOWLEDGED)

    def _apply(self, change: Changed, now: datetime) -> None:
        before = change.alert
        if change.state != before.state:
            self.states[before.id].append(change.state)
        if change.notice is not None:
            self.notices.append((before.id, change.notice))
        self.open[before.id] = replace(
            before,
            state=change.state,
            value=change.value,
            clear_since=change.clear_since,
            told_at=now if change.notice == NoticeKind.FIRED else before.told_at,
            is_escalated=before.is_escalated or change.notice == NoticeKind.ESCALATED,
        )
        if change.state == RESOLVED:
            del self.open[before.id]


class TestFiring:
    def test_what_exceeds_the_threshold_fires_and_what_equals_it_does_not(self) -> None:
        watching = rule()
        assert evaluate(standing(watching, figures=lag(100)), NOW) == Changes()
        [fired] = evaluate(standing(watching, figures=lag(101)), NOW).fired
        assert (fired.rule, fired.observation.value, fired.since, fired.is_silenced) == (watching, 101, NOW, False)

    def test_it_has_to_hold_for_as_long_as_the_rule_says(self) -> None:
        watching = rule(for_s=60)
        watched = Watched(watching.id, SUBJECT.key)
        first = evaluate(standing(watching, figures=lag(101)), NOW)
        assert (first.fired, first.breaches_begun) == ((), (watched,))
        breaches = {watched: NOW}
        assert evaluate(standing(watching, figures=lag(101, now=at(59)), breaches=breaches), at(59)) == Changes()
        then = evaluate(standing(watching, figures=lag(101, now=at(60)), breaches=breaches), at(60))
        assert [one.since for one in then.fired] == [NOW]
        assert then.breaches_ended == (watched,)

    def test_a_moment_below_begins_anew(self) -> None:
        watching = rule(for_s=60)
        breaches = {Watched(watching.id, SUBJECT.key): NOW}
        below = evaluate(standing(watching, figures=lag(100, now=at(59)), breaches=breaches), at(59))
        assert below == Changes(breaches_ended=tuple(breaches))

    def test_there_is_one_alert_of_a_rule_and_a_subject(self) -> None:
        watching = rule()
        changes = evaluate(standing(watching, figures=lag(150), open_alerts=(alert(watching),)), NOW)
        assert changes == Changes()

    def test_a_rule_that_is_off_does_not_fire(self) -> None:
        assert evaluate(standing(rule(enabled=False), figures=lag(101)), NOW) == Changes()


class TestResolving:
    def test_it_resolves_when_the_value_is_low_enough_for_long_enough(self) -> None:
        watching = rule(resolve_for_s=120)
        firing = alert(watching)
        first = the(evaluate(standing(watching, figures=lag(80), open_alerts=(firing,)), NOW))
        assert (first.state, first.clear_since, first.notice) == (FIRING, NOW, None)
        clearing = replace(firing, value=80.0, clear_since=NOW)
        later = standing(watching, figures=lag(80, now=at(119)), open_alerts=(clearing,))
        assert evaluate(later, at(119)) == Changes()
        over = the(evaluate(replace(later, figures=lag(80, now=at(120))), at(120)))
        assert (over.state, over.reason, over.notice) == (RESOLVED, RECOVERED, NoticeKind.RESOLVED)

    def test_a_moment_above_the_lower_limit_begins_anew(self) -> None:
        watching = rule(resolve_for_s=120)
        clearing = alert(watching, clear_since=NOW)
        change = the(evaluate(standing(watching, figures=lag(81, now=at(60)), open_alerts=(clearing,)), at(60)))
        assert (change.state, change.clear_since) == (FIRING, None)

    def test_what_is_gone_resolves(self) -> None:
        watching = rule(resolve_for_s=600)
        change = the(evaluate(standing(watching, figures=lag(), open_alerts=(alert(watching),)), NOW))
        assert (change.state, change.reason, change.notice) == (RESOLVED, SUBJECT_GONE, NoticeKind.RESOLVED)

    @pytest.mark.parametrize(("rules", "why"), [([], RULE_GONE), (["off"], RULE_OFF), (["override"], RULE_OFF)])
    def test_what_its_rule_does_not_hold_for_any_more_resolves(self, rules, why) -> None:
        watching = rule()
        kept = {
            "off": [replace(watching, enabled=False)],
            "override": [watching, rule(queue_id=QUEUE, threshold=1000, resolve_at=1000)],
        }
        left = [one for name in rules for one in kept[name]]
        change = the(evaluate(standing(*left, figures=lag(150), open_alerts=(alert(watching),)), NOW))
        assert (change.state, change.reason) == (RESOLVED, why)


class TestOldFigures:
    """They say nothing: the rule about the pipeline says that."""

    def test_they_do_not_fire(self) -> None:
        assert evaluate(standing(rule(), figures=lag(101, age_s=61)), NOW) == Changes()

    @pytest.mark.parametrize(
        "figures",
        [
            lag(0, age_s=61),
            {LAG: Figures(NOW - timedelta(seconds=61))},
            {LAG: Figures(None)},
            {},
            {LAG: Figures(NOW, {SUBJECT.key: Observation(SUBJECT, 0, NOW, is_known=False)})},
        ],
    )
    def test_they_do_not_resolve_nor_end_a_breach(self, figures) -> None:
        watching, other = rule(), rule(for_s=60)
        breaches = {Watched(other.id, SUBJECT.key): NOW}
        known = standing(watching, other, figures=figures, open_alerts=(alert(watching),), breaches=breaches)
        assert evaluate(known, NOW) == Changes()

    def test_who_is_to_be_told_does_not_depend_on_them(self) -> None:
        watching = rule(escalate_after_s=300)
        known = standing(watching, figures={}, open_alerts=(alert(watching),))
        assert the(evaluate(known, at(300))).notice == NoticeKind.ESCALATED


class TestTheLeastThatIsKnown:
    """Of a queue of which some partitions are not sampled."""

    @staticmethod
    def at_least(value: float) -> dict:
        return {LAG: Figures(NOW, {SUBJECT.key: Observation(SUBJECT, value, NOW, is_at_least=True)})}

    def test_it_fires_and_is_brought_up_to_date(self) -> None:
        watching = rule()
        assert len(evaluate(standing(watching, figures=self.at_least(101)), NOW).fired) == 1
        known = standing(watching, figures=self.at_least(81), open_alerts=(alert(watching, clear_since=NOW),))
        assert (the(evaluate(known, NOW)).value, the(evaluate(known, NOW)).clear_since) == (81, None)

    @pytest.mark.parametrize("value", [0, 80])
    def test_it_does_not_resolve(self, value) -> None:
        watching = rule()
        known = standing(watching, figures=self.at_least(value), open_alerts=(alert(watching),))
        assert evaluate(known, NOW) == Changes()

    @pytest.mark.parametrize("value", [0, 90, 100])
    def test_it_does_not_end_a_breach(self, value) -> None:
        watching = rule(for_s=60)
        breaches = {Watched(watching.id, SUBJECT.key): NOW}
        assert evaluate(standing(watching, figures=self.at_least(value), breaches=breaches), NOW) == Changes()


class TestWhichRuleHolds:
    SYSTEM, OF_TENANT, OF_QUEUE = (
        rule(threshold=1),
        rule(threshold=2, tenant_id=TENANT),
        rule(threshold=3, queue_id=QUEUE),
    )

    @pytest.mark.parametrize(
        ("rules", "holds"),
        [
            ([SYSTEM], SYSTEM),
            ([SYSTEM, OF_TENANT], OF_TENANT),
            ([OF_QUEUE, SYSTEM, OF_TENANT], OF_QUEUE),
            ([SYSTEM, replace(OF_QUEUE, queue_id=uuid4())], SYSTEM),
            ([SYSTEM, replace(OF_TENANT, tenant_id=uuid4())], SYSTEM),
            ([SYSTEM, replace(OF_QUEUE, metric=AlertMetric.LAG_SECONDS)], SYSTEM),
            ([SYSTEM, replace(OF_QUEUE, enabled=False)], None),
        ],
    )
    def test_the_narrowest(self, rules, holds) -> None:
        fired = evaluate(standing(*rules, figures=lag(4)), NOW).fired
        assert [one.rule for one in fired] == ([] if holds is None else [holds])

    def test_two_of_the_same_scope_hold_both(self) -> None:
        rules = [rule(threshold=1), rule(threshold=2)]
        assert [one.rule for one in evaluate(standing(*rules, figures=lag(4)), NOW).fired] == rules

    def test_of_requests_it_is_the_topics(self) -> None:
        metric, subject = AlertMetric.PENDING_REQUESTS, Subject(SubjectKind.REQUESTS, "js.requests", "js.requests")
        wide, narrow = rule(metric=metric), rule(metric=metric, request_topic="js.requests", threshold=9)
        figures = {metric: Figures(NOW, {subject.key: Observation(subject, 101, NOW)})}
        assert [one.rule for one in evaluate(standing(wide, narrow, figures=figures), NOW).fired] == [narrow]


class TestSilences:
    def test_what_is_silenced_fires_silently(self) -> None:
        [fired] = evaluate(standing(rule(), figures=lag(101), silences=(EVERYTHING,)), NOW).fired
        assert fired.is_silenced

    def test_what_fires_becomes_silent_and_what_somebody_sees_to_stays_so(self) -> None:
        watching = rule()
        for state, then in ((FIRING, SILENCED), (ACKNOWLEDGED, ACKNOWLEDGED)):
            known = standing(
                watching, figures=lag(151), open_alerts=(alert(watching, state=state),), silences=(EVERYTHING,)
            )
            change = the(evaluate(known, NOW))
            assert (change.state, change.notice) == (then, None)

    def test_when_a_silence_ends_who_did_not_know_is_told(self) -> None:
        watching = rule()
        for told_at, notice in ((None, NoticeKind.FIRED), (NOW, None)):
            quiet = alert(watching, state=SILENCED, told_at=told_at)
            change = the(evaluate(standing(watching, figures=lag(150), open_alerts=(quiet,)), NOW))
            assert (change.state, change.notice) == (FIRING, notice)

    @pytest.mark.parametrize("state", [FIRING, SILENCED, ACKNOWLEDGED])
    @pytest.mark.parametrize(("told_at", "notice"), [(NOW, NoticeKind.RESOLVED), (None, None)])
    def test_who_was_told_of_it_is_told_that_it_is_over(self, state, told_at, notice) -> None:
        watching = rule()
        ending = alert(watching, state=state, told_at=told_at)
        known = standing(watching, figures=lag(0), open_alerts=(ending,), silences=(EVERYTHING,))
        for rules in ({watching.id: watching}, {}):
            change = the(evaluate(replace(known, rules=rules), NOW))
            assert (change.state, change.notice) == (RESOLVED, notice)

    @pytest.mark.parametrize(
        ("silence", "matches"),
        [
            (Silencing(tenant_id=TENANT), True),
            (Silencing(tenant_id=uuid4()), False),
            (Silencing(queue_id=uuid4()), False),
            (Silencing(subject_key=SUBJECT.key), True),
            (Silencing(subject_key="pipeline"), False),
            (Silencing(rule_id=uuid4(), queue_id=QUEUE), False),
        ],
    )
    def test_a_silence_is_of_what_matches_all_it_names(self, silence, matches) -> None:
        [fired] = evaluate(standing(rule(), figures=lag(101), silences=(silence,)), NOW).fired
        assert fired.is_silenced == matches


class TestEscalation:
    def test_once_after_the_time_the_rule_says(self) -> None:
        watching = rule(escalate_after_s=300)
        known = standing(watching, figures=lag(150, now=at(300)), open_alerts=(alert(watching),))
        assert evaluate(replace(known, figures=lag(150, now=at(299))), at(299)) == Changes()
        assert the(evaluate(known, at(300))).notice == NoticeKind.ESCALATED
        escalated = replace(known, open_alerts=(alert(watching, is_escalated=True),))
        assert evaluate(escalated, at(300)) == Changes()

    @pytest.mark.parametrize("state", [ACKNOWLEDGED, SILENCED])
    def test_not_what_somebody_sees_to_nor_what_is_silenced(self, state) -> None:
        watching = rule(escalate_after_s=300)
        known = standing(
            watching,
            figures=lag(150, now=at(900)),
            open_alerts=(alert(watching, state=state),),
            silences=(EVERYTHING,) if state == SILENCED else (),
        )
        assert evaluate(known, at(900)) == Changes()


class TestARuleWithoutChannels:
    def test_nobody_is_told_before_it_has_some(self) -> None:
        watching = rule(tells=False)
        known = standing(watching, figures=lag(150), open_alerts=(alert(watching, told_at=None),))
        assert evaluate(known, NOW) == Changes()
        telling = replace(watching, tells=True)
        assert the(evaluate(replace(known, rules={telling.id: telling}), NOW)).notice == NoticeKind.FIRED

    def test_who_is_told_late_alone_is_told_in_time_and_that_it_is_over(self) -> None:
        watching = rule(tells=False, escalate_after_s=300)
        untold = alert(watching, told_at=None)
        known = standing(watching, figures=lag(150, now=at(300)), open_alerts=(untold,))
        assert evaluate(replace(known, figures=lag(150, now=at(299))), at(299)) == Changes()
        assert the(evaluate(known, at(300))).notice == NoticeKind.ESCALATED
        for is_escalated, notice in ((True, NoticeKind.RESOLVED), (False, None)):
            over = standing(watching, figures=lag(0), open_alerts=(replace(untold, is_escalated=is_escalated),))
            assert the(evaluate(over, NOW)).notice == notice


values = st.lists(st.floats(0, 200), min_size=1, max_size=30)


class TestTheFirstRules:
    def test_figures_that_are_old_before_each_run_are_one_alert(self) -> None:
        """Where runs take a minute, figures are half a minute old after one and a minute and a half before the next."""
        late = AlertMetric.PIPELINE_LATE
        [fields] = [one for one in DEFAULT_RULES if one["metric"] == late]
        limits = ("id", "metric", "threshold", "resolve_at", "for_s", "resolve_for_s")
        machine = Machine(Rule(**{name: fields[name] for name in limits}))
        pipeline = Subject(SubjectKind.PIPELINE, "the pipeline", "pipeline")

        def step(second: int, age_s: int) -> None:
            now = at(second)
            machine.step(now, {late: Figures(now, {pipeline.key: Observation(pipeline, age_s, now)})})

        for second in range(0, 600, 15):
            step(second, 30 + second % 60)
        assert [kind for _, kind in machine.notices] == [NoticeKind.FIRED]
        for second in range(600, 735, 15):
            step(second, 10)
        assert [kind for _, kind in machine.notices] == [NoticeKind.FIRED, NoticeKind.RESOLVED]


class TestWhatAlwaysHolds:
    @given(st.lists(st.floats(80, 100, exclude_min=True), min_size=1, max_size=20), st.booleans())
    def test_within_its_band_nothing_changes(self, within: list[float], was_firing: bool) -> None:
        machine = Machine(rule())
        machine.step(NOW, lag(150 if was_firing else 0))
        before = [one.state for one in machine.open.values()]
        for number, value in enumerate(within, 1):
            machine.step(at(15 * number), lag(value, now=at(15 * number)))
        assert [one.state for one in machine.open.values()] == before
        assert len(machine.notices) == len(before)

    @given(values, st.integers(0, 4), st.integers(0, 4))
    def test_each_is_told_of_once_and_that_it_is_over_once(self, seen: list[float], for_n: int, clear_n: int) -> None:
        machine = Machine(rule(for_s=15 * for_n, resolve_for_s=15 * clear_n))
        for number, value in enumerate(seen):
            machine.step(at(15 * number), lag(value, now=at(15 * number)))
            assert len(machine.open) <= 1
        end = at(15 * len(seen))
        machine.step(end, lag(now=end))
        assert sorted(machine.notices) == sorted(
            (one, kind) for one in machine.states for kind in (NoticeKind.FIRED, NoticeKind.RESOLVED)
        )
        assert machine.breaches == {}

    @given(values)
    def test_what_is_silenced_tells_nobody(self, seen: list[float]) -> None:
        machine = Machine(rule(escalate_after_s=15))
        for number, value in enumerate(seen):
            machine.step(at(15 * number), lag(value, now=at(15 * number)), (EVERYTHING,))
        assert machine.notices == []

    @given(st.lists(st.tuples(st.floats(0, 200), st.booleans(), st.booleans(), st.integers(0, 90)), max_size=30))
    def test_states_follow_each_other_as_they_may(self, steps: list[tuple[float, bool, bool, int]]) -> None:
        """Whatever comes: silences that begin and end, people who acknowledge, figures that are old."""
        machine = Machine(rule(for_s=15, resolve_for_s=15, escalate_after_s=30))
        for number, (value, silent, acknowledged, age_s) in enumerate(steps):
            now = at(15 * number)
            machine.step(now, lag(value, now=now, age_s=age_s), (EVERYTHING,) if silent else ())
            if acknowledged:
                machine.acknowledge()
        for states in machine.states.values():
            for before, after in pairwise(states):
                assert after == before or after in LEGAL_ALERT_CHANGES[before]
        escalated = [one for one, kind in machine.notices if kind == NoticeKind.ESCALATED]
        assert len(escalated) == len(set(escalated))


def test_every_metric_is_told_in_a_sentence() -> None:
    assert METRICS.keys() == set(AlertMetric)
    said = told(LAG, 12_400, "Main", "most in partition 3")
    assert said == "12,400 messages wait in queue Main: most in partition 3"
    assert told(AlertMetric.ERROR_RATE, 6.25, "Main") == "6.25 % of attempts in queue Main fail"


@pytest.mark.parametrize("metric", list(AlertMetric))
def test_one_of_something_is_told_as_one(metric: AlertMetric) -> None:
    assert "1 " in told(metric, 1, "x")
    assert not re.search(r"\b1 (messages|dead letters|requests|service instances)\b", told(metric, 1, "x"))
    assert not re.search(r"^1 (messages|partitions|letters|requests|instances)\b", measure(1, metric))


def test_a_value_is_told_in_its_unit() -> None:
    assert [measure(value, LAG) for value in (0, 1, 1.5, 2_000)] == [
        "0 messages", "1 message", "1.5 messages", "2,000 messages"
    ]  # fmt: skip
    assert measure(1, AlertMetric.NEW_LETTERS) == "1 letter in an hour"
    assert measure(1, AlertMetric.LAG_SECONDS) == "1 s"
