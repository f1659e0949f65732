"""What is wrong, in sentences with a way to the place where it can be mended."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.urls import reverse
from django.utils import timezone

from console.request_limits import exceeded
from console.templatetags.console import age_text, duration, number, plural, short_class
from queueapi.choices import AlertSeverity, LagStatus, LetterState, OperationState, Tone
from queueapi.selectors.freshness import is_stale
from queueapi.selectors.overview import Overview

# The table below them names the others.
_LAGS_TOLD: Final = 3
_PROCESSES_TOLD: Final = 2


@dataclass(frozen=True, slots=True)
class Problem:
    tone: Tone
    text: str
    url: str
    link: str


def problems(seen: Overview) -> list[Problem]:
    """Worst first. Nothing: all is well. Figures that are too old are the page's banner, and accuse nobody here."""
    kinds = (_alerts, _processes, _hosts, _consumers, _pauses, _letters, _quarantined, _operations, _lag, _requests)
    found = (problem for kind in kinds for problem in kind(seen))
    return sorted(found, key=lambda problem: problem.tone != Tone.BAD)


def _alerts(seen: Overview) -> Iterator[Problem]:
    """The worst by themselves, and a line for the others."""
    for alert in seen.alerts.worst:
        tone = Tone.BAD if alert.severity == AlertSeverity.CRITICAL else Tone.WARN
        said = f"{alert.reason[:1].upper()}{alert.reason[1:]}"
        text = f"{said}, for {duration(timezone.now() - alert.since)}."
        yield Problem(tone, text, reverse("alert", args=[alert.pk]), "See to it")
    more = seen.alerts.number - len(seen.alerts.worst)
    if more > 0:
        fire = "more alert fires" if more == 1 else "more alerts fire"
        critical = seen.alerts.critical - sum(one.severity == AlertSeverity.CRITICAL for one in seen.alerts.worst)
        how = f", {number(critical)} of them critical" if critical else ""
        yield Problem(Tone.BAD if critical else Tone.WARN, f"{number(more)} {fire}{how}.", reverse("alerts"), "See all")


def _processes(seen: Overview) -> Iterator[Problem]:
    """Each by itself, unless they are many: then something has ended them all."""
    down = seen.not_running
    if len(down) > _PROCESSES_TOLD:
        names = ", ".join(process.name for process in down)
        text = f"{len(down)} of {len(seen.processes)} processes do not run: {names}."
        yield Problem(Tone.BAD, text, "#processes", "See processes")
        return
    for process in down:
        last = f" (last exit: {process.last_exit})" if process.last_exit else ""
        state = process.state_choice.label.lower()
        yield Problem(Tone.BAD, f"Process {process.name} is {state}{last}.", "#processes", "See processes")


def _hosts(seen: Overview) -> Iterator[Problem]:
    if seen.totals.queues and not seen.hosts.alive:
        yield Problem(Tone.BAD, "No consumer host is alive: messages wait unread.", "#hosts", "See hosts")


def _consumers(seen: Overview) -> Iterator[Problem]:
    for one in seen.troubled_consumers:
        state = f"{one.state_choice.label.lower()} for {duration(timezone.now() - one.since)}"
        text = f"{one.queue.full_name}: the consumer of {one.what} has been {state}: {one.reason}."
        yield Problem(Tone.BAD, text, f"{reverse('queue', args=[one.queue_id])}#consumers", "See its consumers")


def _pauses(seen: Overview) -> Iterator[Problem]:
    for pause in seen.pauses:
        tone = Tone.BAD if pause.is_by_system else Tone.WARN
        state = f"paused by {pause.paused_by} {age_text(pause.paused_at)}"
        text = f"{pause.queue.full_name}: {pause.what} was {state}: {pause.reason}."
        yield Problem(tone, text, f"{reverse('queue', args=[pause.queue_id])}#pauses", "See its pauses")


def _letters(seen: Overview) -> Iterator[Problem]:
    totals = seen.totals
    if totals.open_letters and totals.oldest_letter and totals.newest_letter:
        waits = "dead letter waits" if totals.open_letters == 1 else "dead letters wait"
        oldest, newest = age_text(totals.oldest_letter), age_text(totals.newest_letter)
        ages = f"from {oldest}" if totals.open_letters == 1 else f"the oldest from {oldest}, the newest from {newest}"
        text = f"{number(totals.open_letters)} open {waits} for a decision, {ages}{_largest_group(seen)}."
        yield Problem(Tone.BAD, text, f"{reverse('dead_letters')}?state={LetterState.OPEN.value}", "Review them")


def _quarantined(seen: Overview) -> Iterator[Problem]:
    if seen.totals.quarantined:
        letters = plural(seen.totals.quarantined, "letter,letters")
        text = f"{letters} could not be entered here and stay in their topics."
        yield Problem(Tone.BAD, text, "/api/v1/dead-letters/quarantined", "See which, and why")


def _largest_group(seen: Overview) -> str:
    """What most of the letters have in common, and of how many tenants these are."""
    if not seen.groups:
        return ""
    row = seen.groups[0]
    group, tenants = row.group, plural(row.tenants, "tenant,tenants")
    some = "" if group.open_letters == seen.totals.open_letters else f"{number(group.open_letters)} with "
    return f": {some}{short_class(group.exception_class)} in {group.queue.full_name}, of {tenants}"


def _operations(seen: Overview) -> Iterator[Problem]:
    if seen.operations.failed and seen.operations.last_failed:
        some = "operation" if seen.operations.failed == 1 else "operations"
        last = age_text(seen.operations.last_failed)
        text = f"{number(seen.operations.failed)} {some} failed within a day, the last {last}."
        yield Problem(Tone.WARN, text, f"{reverse('operations')}?state={OperationState.FAILED.value}", "See why")


def _lag(seen: Overview) -> Iterator[Problem]:
    if seen.freshness.is_stale:
        return
    troubled = [one.lag for one in seen.queues if one.lag.is_troubled and not one.lag.is_stale]
    for lag in troubled[:_LAGS_TOLD]:
        status = lag.status or LagStatus.WARN
        lasts = f" for {duration(lag.status_lasts)}" if lag.status_lasts is not None else ""
        text = f"{lag.queue.full_name}: {status.label}{lasts}: {lag.reason}."
        yield Problem(status.tone, text, f"{reverse('queue', args=[lag.queue.pk])}#why", "See why")
    more = len(troubled) - _LAGS_TOLD
    if more > 0:
        text = f"{more} more of the queues furthest behind {'is' if more == 1 else 'are'} in trouble."
        yield Problem(Tone.WARN, text, f"{reverse('queues')}?sort=-status", "See all")


def _requests(seen: Overview) -> Iterator[Problem]:
    told = exceeded(seen.requests)
    if told and seen.requests.as_of and not is_stale(seen.requests.as_of):
        text = f"Requests between services: {'; '.join(told)}."
        yield Problem(Tone.WARN, text, reverse("pending_requests"), "See which")
