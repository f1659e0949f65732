"""What is wrong, in sentences with a way to the place where it can be mended."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse
from django.utils import timezone

from console.templatetags.console import age_text, duration, number, rate
from queueapi.choices import LetterState, OperationState, Tone
from queueapi.selectors.overview import Overview
from queueapi.selectors.queues import QueueFigures


@dataclass(frozen=True, slots=True)
class Problem:
    tone: Tone
    text: str
    url: str
    link: str


def problems(seen: Overview) -> list[Problem]:
    """Worst first. Nothing: all is well. Figures that are too old are the page's banner, and accuse nobody here."""
    kinds = (_processes, _hosts, _consumers, _pauses, _letters, _operations, _lag)
    found = (problem for kind in kinds for problem in kind(seen))
    return sorted(found, key=lambda problem: problem.tone != Tone.BAD)


def _processes(seen: Overview) -> Iterator[Problem]:
    for process in seen.not_running:
        last = f" (last exit: {process.last_exit})" if process.last_exit else ""
        state = process.state_choice.label.lower()
        yield Problem(Tone.BAD, f"Process {process.name} is {state}{last}.", "#processes", "See processes")


def _hosts(seen: Overview) -> Iterator[Problem]:
    if seen.queue_count and not seen.live_hosts:
        yield Problem(Tone.BAD, "No consumer host is alive: messages wait unread.", "#hosts", "See hosts")


def _consumers(seen: Overview) -> Iterator[Problem]:
    for one in seen.troubled_consumers:
        state = f"{one.state_choice.label.lower()} for {duration(timezone.now() - one.since)}"
        text = f"{one.queue.name}: the consumer of {one.what} has been {state}: {one.reason}."
        yield Problem(Tone.BAD, text, f"{reverse('queue', args=[one.queue_id])}#consumers", "See its consumers")


def _pauses(seen: Overview) -> Iterator[Problem]:
    for pause in seen.pauses:
        tone = Tone.BAD if pause.is_by_system else Tone.WARN
        state = f"paused by {pause.paused_by} {age_text(pause.paused_at)}"
        text = f"{pause.queue.name}: {pause.what} was {state}: {pause.reason}."
        yield Problem(tone, text, f"{reverse('queue', args=[pause.queue_id])}#pauses", "See its pauses")


def _letters(seen: Overview) -> Iterator[Problem]:
    if seen.letters.number and seen.letters.newest:
        waits = "dead letter waits" if seen.letters.number == 1 else "dead letters wait"
        newest = age_text(seen.letters.newest)
        text = f"{number(seen.letters.number)} open {waits} for a decision, the newest from {newest}."
        yield Problem(Tone.BAD, text, f"{reverse('dead_letters')}?state={LetterState.OPEN.value}", "Review them")


def _operations(seen: Overview) -> Iterator[Problem]:
    if seen.operations.failed and seen.operations.last_failed:
        some = "operation" if seen.operations.failed == 1 else "operations"
        last = age_text(seen.operations.last_failed)
        text = f"{number(seen.operations.failed)} {some} failed within a day, the last {last}."
        yield Problem(Tone.WARN, text, f"{reverse('operations')}?state={OperationState.FAILED.value}", "See why")


def _lag(seen: Overview) -> Iterator[Problem]:
    if seen.freshness.is_stale:
        return
    for figures in seen.queues:
        if figures.flow.is_behind and not figures.flow.is_stale:
            yield Problem(Tone.WARN, _behind(figures), reverse("queue", args=[figures.queue.pk]), "See its partitions")


def _behind(figures: QueueFigures) -> str:
    flow = figures.flow
    waiting = f"{figures.queue.name} is {number(flow.lag_messages)} messages behind"
    if flow.is_growing and flow.surplus_per_s is not None:
        return f"{waiting}, and falls behind by {rate(-flow.surplus_per_s)} more."
    if not flow.consumed_per_s:
        return f"{waiting}, and nothing is being consumed."
    return f"{waiting}, and is catching up slowly." if flow.drains_in else f"{waiting}, and is not catching up."
