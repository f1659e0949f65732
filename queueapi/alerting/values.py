"""What the evaluation of alerts is given and gives: plain values, so that it needs no database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from queueapi.alerting.metrics import METRICS, SubjectKind
from queueapi.choices import AlertMetric, AlertState, NoticeKind


@dataclass(frozen=True, slots=True)
class Subject:
    """What an alert is about. `tenant_id` is whose it is; None: the system's."""

    kind: SubjectKind
    name: str
    id: str = ""
    tenant_id: UUID | None = None

    @property
    def key(self) -> str:
        """The same for the same thing, whatever it is called."""
        return f"{self.kind}:{self.id}" if self.id else str(self.kind)


@dataclass(frozen=True, slots=True)
class Observation:
    """A subject's value, as of some moment. `detail` says more in words.

    is_known     where False, the subject is there, and no more can be said
    is_at_least  it may be more: such a value can be too much, and is never low enough
    """

    subject: Subject
    value: float
    as_of: datetime
    detail: str = ""
    is_known: bool = True
    is_at_least: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """One metric's values, by their subjects' keys: all there are, as far as is known since `as_of`. None: nothing is
    known."""

    as_of: datetime | None
    observations: Mapping[str, Observation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """As `AlertRule` says. Without tenant, queue and request topic it is for everything that its metric is of.

    tells             whether it has channels to tell
    escalate_after_s  None also where there is nobody to escalate to
    """

    id: UUID
    metric: AlertMetric
    threshold: float
    resolve_at: float
    for_s: float = 0
    resolve_for_s: float = 0
    enabled: bool = True
    tenant_id: UUID | None = None
    queue_id: UUID | None = None
    request_topic: str = ""
    tells: bool = True
    escalate_after_s: float | None = None

    @property
    def kind(self) -> SubjectKind:
        return METRICS[self.metric].kind


class Watched(NamedTuple):
    """A rule and a subject: there is one open alert for both together."""

    rule_id: UUID
    subject_key: str


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """One that is not resolved.

    rule_id      None: its rule was deleted
    clear_since  since when its value is low enough for it to resolve
    told_at      when somebody was told of it first
    """

    id: UUID
    rule_id: UUID | None
    metric: AlertMetric
    subject: Subject
    state: AlertState
    value: float
    detail: str
    fired_at: datetime
    clear_since: datetime | None = None
    told_at: datetime | None = None
    is_escalated: bool = False


@dataclass(frozen=True, slots=True)
class Silencing:
    """A silence that holds: for what matches all that it names."""

    rule_id: UUID | None = None
    tenant_id: UUID | None = None
    queue_id: UUID | None = None
    subject_key: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """All that an evaluation looks at. `breaches`: since when a rule's threshold is exceeded, without an alert yet."""

    rules: Mapping[UUID, Rule]
    figures: Mapping[AlertMetric, Figures]
    open_alerts: tuple[OpenAlert, ...] = ()
    breaches: Mapping[Watched, datetime] = field(default_factory=dict)
    silences: tuple[Silencing, ...] = ()
    stale_after: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Fired:
    """A new alert, of what has held since `since`."""

    rule: Rule
    observation: Observation
    since: datetime
    is_silenced: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """An open alert as it is now. `reason`: why it is over, if it is. `notice`: what is told of it, if anything is."""

    alert: OpenAlert
    state: AlertState
    value: float
    detail: str
    clear_since: datetime | None
    reason: str = ""
    notice: NoticeKind | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """What an evaluation came to. What is not in it stays as it is."""

    fired: tuple[Fired, ...] = ()
    changed: tuple[Changed, ...] = ()
    breaches_begun: tuple[Watched, ...] = ()
    breaches_ended: tuple[Watched, ...] = ()
