"""Which rules hold for a subject, and which silences."""

from collections import defaultdict
from collections.abc import Iterable

from queueapi.alerting.values import Rule, Silencing, Subject
from queueapi.choices import AlertMetric

_Scope = tuple[AlertMetric, str, str]


class RuleBook:
    """Rules by what they are for. The narrower word counts: where there is any rule of a metric for a queue, its
    tenant's and the system's do not hold for it. So one that is not enabled switches a wider one off."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules: dict[_Scope, list[Rule]] = defaultdict(list)
        for rule in rules:
            self._rules[rule.metric, *_scope(rule)].append(rule)

    def holding(self, metric: AlertMetric, subject: Subject) -> list[Rule]:
        """Those that are enabled, of the narrowest scope that has any."""
        for scope in _scopes(subject):
            if found := self._rules.get((metric, *scope)):
                return [rule for rule in found if rule.enabled]
        return []


def is_silenced(silences: Iterable[Silencing], rule: Rule, subject: Subject) -> bool:
    return any(_matches(silence, rule, subject) for silence in silences)


def _matches(silence: Silencing, rule: Rule, subject: Subject) -> bool:
    return (
        silence.rule_id in (None, rule.id)
        and silence.tenant_id in (None, subject.tenant_id)
        and (silence.queue_id is None or (subject.kind == "queue" and str(silence.queue_id) == subject.id))
        and silence.subject_key in ("", subject.key)
    )


def _scope(rule: Rule) -> tuple[str, str]:
    if rule.queue_id is not None:
        return "thing", str(rule.queue_id)
    if rule.request_topic:
        return "thing", rule.request_topic
    return ("tenant", str(rule.tenant_id)) if rule.tenant_id is not None else ("", "")


def _scopes(subject: Subject) -> Iterable[tuple[str, str]]:
    """The narrowest first."""
    if subject.id:
        yield "thing", subject.id
    if subject.tenant_id is not None:
        yield "tenant", str(subject.tenant_id)
    yield "", ""
