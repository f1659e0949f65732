"""What a change of letters would do, shown before it is done."""

from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from queueapi.change_plans import Change
from queueapi.choices import LetterState
from queueapi.models import DeadLetter, Queue, Tenant
from queueapi.selectors.dead_letters import count_letters
from queueapi.selectors.letter_filter import LetterFilter, Selection, counted, selected_letters

ANY: Final = Q()
CONCERNED_SHOWN: Final = 25


@dataclass(frozen=True, slots=True)
class LetterPlan:
    """What would become of letters.

    before   the state that letters must be in
    after    the state that they would be in
    letters  how many would be changed
    refused  how many would not, by the state that they are in
    missing  how many of those that were named do not exist
    why_not  why nothing would be changed at all; empty: it would be
    """

    before: LetterState
    after: LetterState
    letters: int
    refused: dict[LetterState, int]
    missing: int
    why_not: str

    @property
    def summary(self) -> str:
        if self.why_not:
            return f"nothing would change: {self.why_not}"
        return f"{letters_told(self.letters)} would be {self.after.label.lower()}"

    @property
    def changes(self) -> tuple[Change, ...]:
        if self.why_not:
            return ()
        return (Change(f"the state of {letters_told(self.letters)}", self.before.value, self.after.value),)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What stays as it is, though it was chosen."""
        if self.why_not:
            return ()
        return tuple(
            f"{number:,} of those chosen {'stays' if number == 1 else 'stay'} {state.label.lower()}"
            for state, number in self.refused.items()
        )


@dataclass(frozen=True, slots=True)
class Concerned:
    """So many letters of one tenant in one queue; None: they name no tenant."""

    queue: Queue
    tenant: Tenant | None
    letters: int


def letters_told(number: int) -> str:
    return f"{number:,} letter{'' if number == 1 else 's'}"


def plan_change(selection: Selection, before: LetterState, after: LetterState, most: int, ready: Q = ANY) -> LetterPlan:
    """A change to `after` of all letters that are in `before`, and `ready` for it. A filter that names a state means
    only that one."""
    chosen, numbers = selected_letters(selection).order_by(), _by_state(selection)
    letters, missing = chosen.filter(ready, state=before).count() if ready else numbers.get(before, 0), 0
    refused = {state: number - (letters if state == before else 0) for state, number in numbers.items()}
    refused = {state: number for state, number in refused.items() if number}
    if not isinstance(selection, LetterFilter):
        missing = len(set(selection)) - sum(numbers.values())
    why_not = _why_not(selection, letters, most, _refusal(selection, before, refused, missing))
    return LetterPlan(before, after, letters, refused, missing, why_not)


def concerned(selection: Selection, before: LetterState, ready: Q = ANY) -> tuple[list[Concerned], int]:
    """Whose letters a change of those in `before` would be of, and in which queues, most first; and how many more of
    these there are."""
    rows = counted(selected_letters(selection).filter(ready, state=before), selection, "queue_id", "tenant_id")
    counts = list(rows.order_by("-number", "by_queue_id", "by_tenant_id"))
    shown = counts[:CONCERNED_SHOWN]
    queues = Queue.objects.select_related("tenant").in_bulk({queue for queue, _, _ in shown})
    tenants = Tenant.objects.in_bulk({tenant for _, tenant, _ in shown if tenant is not None})
    told = [Concerned(queues[queue], tenants.get(tenant), letters) for queue, tenant, letters in shown]
    return told, len(counts) - len(shown)


def _by_state(selection: Selection) -> dict[LetterState, int]:
    if isinstance(selection, LetterFilter) and selection.is_tallied:
        numbers = count_letters(selection).by_state
        return {state: number for state, number in numbers.items() if selection.state in (None, state)}
    # From the index alone where only times are asked for.
    rows = counted(selected_letters(selection), selection, "state")
    return {LetterState(state): number for state, number in rows}


def _why_not(selection: Selection, letters: int, most: int, refusal: str) -> str:
    if letters > most:
        return (
            f"these are {letters:,} letters, and {most:,} are the most at once; narrow the filter, by time for example"
        )
    if refusal and not isinstance(selection, LetterFilter):
        return f"{refusal}; reload the list and choose again"
    if not letters:
        return refusal or "no letter was chosen"
    return ""


def _refusal(selection: Selection, before: LetterState, refused: dict[LetterState, int], missing: int) -> str:
    """What stands in the way of some, and who has put it there."""
    if missing:
        return f"{missing:,} of the letters {'does' if missing == 1 else 'do'} not exist"
    if not refused:
        return ""
    state, number = next(iter(refused.items()))
    are = "is" if number == 1 else "are"
    if state == before:
        return f"{number:,} of the letters {are} still {state.label.lower()}: wait until that is over, or cancel it"
    return (
        f"{number:,} of the letters {are} not {before.label.lower()} but {state.label.lower()}{_by(selection, state)}"
    )


def _by(selection: Selection, state: LetterState) -> str:
    """Who decided so, where it was a decision."""
    letters = selected_letters(selection).filter(state=state, decision__isnull=False).order_by()
    letter: DeadLetter | None = letters.select_related("decision").first()
    if letter is None or letter.decision is None or state != LetterState.DISCARDED:
        return ""
    return f", by {letter.decision.actor_name}: {letter.decision.reason}"
