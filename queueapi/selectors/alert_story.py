"""What became of an alert, from the first sign to its end."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from queueapi.alerting.metrics import measure
from queueapi.choices import AlertMetric, DeliveryState, NoticeKind, Tone
from queueapi.models import Alert, AlertNotice
from queueapi.selectors.silences import silences_of

_TOLD: Final = {
    NoticeKind.FIRED: "that it fires",
    NoticeKind.ESCALATED: "that nobody sees to it",
    NoticeKind.RESOLVED: "that it is over",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `detail` says more, in others' words."""

    at: datetime
    text: str
    tone: Tone
    detail: str = ""


def story_of(alert: Alert) -> list[Event]:
    """In their order. Of a few queries, however often it was told."""
    return sorted((*_own(alert), *_notices(alert), *_silences(alert)), key=lambda event: event.at)


def plain_story_of(alert: Alert) -> list[Event]:
    """As its tenant's people read it: whom channels told, and what silences keep quiet, is the installation's."""
    return sorted(_own(alert), key=lambda event: event.at)


def _own(alert: Alert) -> Iterator[Event]:
    if alert.since < alert.fired_at:
        limit = measure(alert.threshold, AlertMetric(alert.metric))
        yield Event(alert.since, f"More than {limit} for the first time", Tone.WARN)
    yield Event(alert.fired_at, "Fired", Tone.BAD)
    if alert.escalated_at is not None:
        yield Event(alert.escalated_at, "Escalated: nobody had acknowledged it", Tone.BAD)
    if alert.acknowledged_at is not None:
        yield Event(alert.acknowledged_at, f"Acknowledged by {alert.acknowledged_by}", Tone.BUSY, alert.note)
    if alert.clear_since is not None and alert.resolved_at is None:
        yield Event(alert.clear_since, "Low enough again; it resolves if that lasts", Tone.GOOD)
    if alert.resolved_at is not None:
        yield Event(alert.resolved_at, f"Resolved: {alert.resolution}", Tone.GOOD)


def _notices(alert: Alert) -> Iterator[Event]:
    for notice in alert.notices.select_related("channel", "delivery"):
        yield _notice(notice)


def _notice(notice: AlertNotice) -> Event:
    """As far as its delivery got."""
    delivery, what = notice.delivery, _TOLD[NoticeKind(notice.kind)]
    at = delivery.finished_at or delivery.created_at
    if delivery.state == DeliveryState.SENT:
        tries = "" if delivery.attempts == 1 else f", with try {delivery.attempts}"
        return Event(at, f"{notice.channel.name} was told {what}{tries}", Tone.QUIET)
    if delivery.state == DeliveryState.FAILED:
        return Event(at, f"{notice.channel.name} could not be told {what}: given up", Tone.BAD, delivery.error)
    waits = f"tried {delivery.attempts} times" if delivery.attempts > 1 else "under way"
    return Event(at, f"{notice.channel.name} is to be told {what}: {waits}", Tone.WARN, delivery.error)


def _silences(alert: Alert) -> Iterator[Event]:
    for silence in silences_of(alert):
        at = max(silence.created_at, alert.fired_at)
        text = f"Silenced by {silence.created_by} until {silence.until:%Y-%m-%d %H:%M} UTC"
        yield Event(at, text, Tone.QUIET, silence.reason)
