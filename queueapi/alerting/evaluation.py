"""What becomes of alerts, now. Pure: the same standing gives the same changes.

An alert fires when its rule's threshold has been exceeded for long enough, and resolves when its value has been low
enough for long enough; between the two limits nothing changes. What figures do not tell, because they are too old,
changes nothing either.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from queueapi.alerting.matching import RuleBook, is_silenced
from queueapi.alerting.values import (
    Changed,
    Changes,
    Fired,
    Observation,
    OpenAlert,
    Rule,
    Standing,
    Watched,
)
from queueapi.choices import AlertMetric, AlertState, NoticeKind

RULE_GONE: Final = "its rule was deleted"
RULE_OFF: Final = "its rule does not hold for this any more"
SUBJECT_GONE: Final = "there is nothing of it any more"
RECOVERED: Final = "its value is low enough again"


def evaluate(standing: Standing, now: datetime) -> Changes:
    return _Evaluation(standing, RuleBook(standing.rules.values()), now).changes()


@dataclass(frozen=True, slots=True)
class _Evaluation:
    standing: Standing
    book: RuleBook
    now: datetime

    def changes(self) -> Changes:
        fired: list[Fired] = []
        begun: list[Watched] = []
        exceeded: set[Watched] = set()
        for rule, observation in self._exceeding():
            watched = Watched(rule.id, observation.subject.key)
            exceeded.add(watched)
            since = self.standing.breaches.get(watched, self.now)
            if self.now - since >= timedelta(seconds=rule.for_s):
                is_silent = is_silenced(self.standing.silences, rule, observation.subject)
                fired.append(Fired(rule, observation, since, is_silent))
            elif watched not in self.standing.breaches:
                begun.append(watched)
        ended = [*self._ended(exceeded), *_fired_from(fired, self.standing)]
        changed = [change for alert in self.standing.open_alerts if (change := self._change(alert)) is not None]
        return Changes(tuple(fired), tuple(changed), tuple(begun), tuple(ended))

    def _exceeding(self) -> Iterator[tuple[Rule, Observation]]:
        """What exceeds the threshold of a rule that holds for it, and has no alert of that rule yet."""
        alerting = {(alert.rule_id, alert.subject.key) for alert in self.standing.open_alerts}
        for metric, figures in self.standing.figures.items():
            if self._is_stale(figures.as_of):
                continue
            for key, observation in figures.observations.items():
                for rule in self.book.holding(metric, observation.subject):
                    is_new = observation.value > rule.threshold and (rule.id, key) not in alerting
                    if is_new and self._is_usable(observation):
                        yield rule, observation

    def _ended(self, exceeded: set[Watched]) -> Iterator[Watched]:
        """Breaches that are over before an alert came of them. One of which nothing is known goes on."""
        for watched in self.standing.breaches:
            if watched in exceeded:
                continue
            rule = self.standing.rules.get(watched.rule_id)
            if rule is None or not self._is_unknown(rule.metric, watched.subject_key, rule.threshold):
                yield watched

    def _change(self, alert: OpenAlert) -> Changed | None:
        rule = None if alert.rule_id is None else self.standing.rules.get(alert.rule_id)
        if rule is None:
            return self._resolved(alert, RULE_GONE)
        if rule not in self.book.holding(alert.metric, alert.subject):
            return self._resolved(alert, RULE_OFF)
        if self._is_unknown(alert.metric, alert.subject.key, rule.resolve_at):
            return self._told(alert, rule, alert.value, alert.detail, alert.clear_since)
        observation = self.standing.figures[alert.metric].observations.get(alert.subject.key)
        if observation is None:
            return self._resolved(alert, SUBJECT_GONE)
        if observation.value > rule.resolve_at:
            return self._told(alert, rule, observation.value, observation.detail, None)
        clear_since = alert.clear_since or self.now
        if self.now - clear_since >= timedelta(seconds=rule.resolve_for_s):
            return self._resolved(alert, RECOVERED, observation)
        return self._told(alert, rule, observation.value, observation.detail, clear_since)

    def _told(
        self, alert: OpenAlert, rule: Rule, value: float, detail: str, clear_since: datetime | None
    ) -> Changed | None:
        """It goes on. None where nothing of it is other than before."""
        state, notice = self._state_and_notice(alert, rule)
        before = (alert.state, alert.value, alert.detail, alert.clear_since)
        if notice is None and (state, value, detail, clear_since) == before:
            return None
        return Changed(alert, state, value, detail, clear_since, notice=notice)

    def _state_and_notice(self, alert: OpenAlert, rule: Rule) -> tuple[AlertState, NoticeKind | None]:
        if alert.state == AlertState.ACKNOWLEDGED:
            return alert.state, None
        if is_silenced(self.standing.silences, rule, alert.subject):
            return AlertState.SILENCED, None
        if alert.told_at is None and rule.tells:
            return AlertState.FIRING, NoticeKind.FIRED
        return AlertState.FIRING, NoticeKind.ESCALATED if self._is_overdue(alert, rule) else None

    def _resolved(self, alert: OpenAlert, reason: str, observation: Observation | None = None) -> Changed:
        """Whoever was told of it is told that, whatever is silenced meanwhile: others wait to hear it."""
        value, detail = (observation.value, observation.detail) if observation else (alert.value, alert.detail)
        was_told = alert.told_at is not None or alert.is_escalated
        notice = NoticeKind.RESOLVED if was_told else None
        return Changed(alert, AlertState.RESOLVED, value, detail, alert.clear_since, reason, notice)

    def _is_overdue(self, alert: OpenAlert, rule: Rule) -> bool:
        """Whether it was left alone for too long, since those who are told first were, if there are any."""
        if rule.escalate_after_s is None or alert.is_escalated:
            return False
        return self.now - (alert.told_at or alert.fired_at) >= timedelta(seconds=rule.escalate_after_s)

    def _is_unknown(self, metric: AlertMetric, subject_key: str, limit: float) -> bool:
        """Whether the figures cannot tell if it is above the limit, nor that it is gone."""
        figures = self.standing.figures.get(metric)
        if figures is None or self._is_stale(figures.as_of):
            return True
        observation = figures.observations.get(subject_key)
        if observation is None:
            return False
        return not self._is_usable(observation) or (observation.is_at_least and observation.value <= limit)

    def _is_usable(self, observation: Observation) -> bool:
        return observation.is_known and not self._is_stale(observation.as_of)

    def _is_stale(self, as_of: datetime | None) -> bool:
        return as_of is None or self.now - as_of > self.standing.stale_after


def _fired_from(fired: list[Fired], standing: Standing) -> Iterator[Watched]:
    """Breaches that have become alerts."""
    for one in fired:
        if (watched := Watched(one.rule.id, one.observation.subject.key)) in standing.breaches:
            yield watched
