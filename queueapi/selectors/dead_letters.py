"""Dead letters as people look at them: lists, groups of one error, a replay's plan."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Max, Min, QuerySet

from queueapi.choices import LetterState
from queueapi.models import DeadLetter, Operation, Queue

GROUPS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """Open letters of one error. Class and message are one letter's; the others' differ in numbers and ids."""

    fingerprint: str
    exception_class: str
    exception_message: str
    number: int
    oldest: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay of chosen letters would do: `ready` are sent, `refused` are not and say why by their state."""

    ready: list[DeadLetter]
    refused: list[DeadLetter]
    missing: int

    @property
    def targets(self) -> list[tuple[Queue, int]]:
        """Where the letters would go, most first."""
        queues = {letter.queue_id: letter.queue for letter in self.ready}
        counts = Counter(letter.queue_id for letter in self.ready)
        return [(queues[queue], number) for queue, number in counts.most_common()]


def letters_for_lists() -> QuerySet[DeadLetter]:
    """Letters without what only their own page shows: lists stay light whatever the payloads are."""
    return DeadLetter.objects.select_related("queue__tenant", "tenant").defer("payload", "headers", "stack_trace")


def unsent_letters(operation: Operation) -> QuerySet[DeadLetter]:
    """What a replay has still to send. Handled or failed again means sent, even where nobody came to note it."""
    return DeadLetter.objects.filter(replay=operation, state=LetterState.REPLAYING, replay_sent_at=None)


def open_letter_groups() -> list[LetterGroup]:
    """The errors most open letters have, most letters first."""
    groups = DeadLetter.objects.filter(state=LetterState.OPEN).order_by().values("fingerprint")
    annotated = groups.annotate(
        exception_class=Max("exception_class"),
        exception_message=Max("exception_message"),
        number=Count("pk"),
        oldest=Min("failed_at"),
        newest=Max("failed_at"),
    )
    return [LetterGroup(**group) for group in annotated.order_by("-number", "-newest")[:GROUPS_SHOWN]]


def replay_plan(letter_ids: Iterable[UUID]) -> ReplayPlan:
    wanted = set(letter_ids)
    letters = list(letters_for_lists().filter(id__in=wanted))
    return ReplayPlan(
        ready=[letter for letter in letters if letter.is_replayable],
        refused=[letter for letter in letters if not letter.is_replayable],
        missing=len(wanted) - len(letters),
    )
