"""What a replay would do, shown before it is started."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final
from uuid import UUID

from django.db.models import Count, QuerySet

from queueapi.change_plans import Change
from queueapi.choices import LetterState
from queueapi.models import DeadLetter, Queue
from queueapi.replaying import ReplaySettings
from queueapi.selectors.consumers import all_pauses
from queueapi.selectors.counting import counts_of
from queueapi.selectors.letter_filter import LetterFilter, Selection, selected_letters
from queueapi.selectors.letter_plans import letters_told
from queueapi.selectors.replay_readiness import why_refused
from queueapi.selectors.replay_targets import TargetCount, Targets, find_targets
from queueapi.selectors.services import living

# As many letters of one refusal are named.
_NAMED: Final = 10
# Of many queues that are paused, as many.
_PAUSES_TOLD: Final = 10

_WHY_NOT: Final = {
    LetterState.REPLAYING: "are being replayed already",
    LetterState.REPLAYED: "were replayed, and their handler succeeded",
    LetterState.FAILED_AGAIN: "failed again, and live on as the letters that their replays became",
    LetterState.DISCARDED: "were discarded; restore them first",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Letters that are chosen, and not sent. `examples` are some of them."""

    reason: str
    count: int
    examples: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay would do. Of very many queues `targets` are those that get most letters, and `other_queues` says
    how many more there are. `duration_s` is None where nothing limits how fast it sends."""

    letters: int
    targets: tuple[TargetCount, ...]
    other_queues: int
    refused: tuple[Refusal, ...]
    warnings: tuple[str, ...]
    duration_s: float | None

    @property
    def summary(self) -> str:
        return f"{letters_told(self.letters)} would be sent"

    @property
    def changes(self) -> tuple[Change, ...]:
        states = LetterState.OPEN.value, LetterState.REPLAYING.value
        return tuple(
            Change(f"the state of {letters_told(count.letters)}, for {count.told}", *states) for count in self.targets
        )


def plan_replay(selection: Selection, target: Queue | None, settings: ReplaySettings) -> ReplayPlan:
    """What this replay would do if it were started now."""
    found = find_targets(selection, target, settings)
    return ReplayPlan(
        letters=found.letters,
        targets=found.counts,
        other_queues=found.left_out,
        refused=tuple(_refusals(selection, target, settings)),
        warnings=tuple(_warnings(found, target, settings)),
        duration_s=settings.longest_s(found.letters),
    )


def _refusals(selection: Selection, target: Queue | None, settings: ReplaySettings) -> Iterator[Refusal]:
    """A filter that names no state means open letters."""
    chosen, refused = selected_letters(selection).order_by(), why_refused(target, settings)
    several = [chosen.filter(condition, state=LetterState.OPEN) for condition, _ in refused]
    for letters, (_, reason), count in zip(several, refused, counts_of(*several), strict=True):
        if count:
            yield Refusal(reason, count, _examples(letters))
    if not isinstance(selection, LetterFilter) or selection.state not in (None, LetterState.OPEN):
        yield from _not_open(chosen)
    if not isinstance(selection, LetterFilter):
        missing = sorted(set(selection) - set(chosen.values_list("id", flat=True)))
        if missing:
            yield Refusal("do not exist; reload the list", len(missing), tuple(missing[:_NAMED]))


def _not_open(chosen: QuerySet[DeadLetter]) -> Iterator[Refusal]:
    numbers = dict(chosen.values_list("state").annotate(number=Count("*")))
    for state, reason in _WHY_NOT.items():
        if state in numbers:
            yield Refusal(reason, numbers[state], _examples(chosen.filter(state=state)))


def _examples(letters: QuerySet[DeadLetter]) -> tuple[UUID, ...]:
    return tuple(letters.values_list("id", flat=True)[:_NAMED])


def _warnings(found: Targets, target: Queue | None, settings: ReplaySettings) -> Iterator[str]:
    if not found.letters:
        return
    # Not looked up by the queues: there may be more of them than a query can name.
    pauses = (pause for pause in all_pauses().iterator() if pause.queue_id in found.queues)
    for pause in islice(pauses, _PAUSES_TOLD):
        yield f"paused is {pause}"
    if next(pauses, None):
        yield f"paused are more of the queues than these {_PAUSES_TOLD}, or parts of them"
    if not living().exists():
        yield "nobody consumes at the moment: what is sent waits, and so does each step of the ramp"
    if target is not None:
        yield f"the letters are handled by {target}'s handler {target.handler}, not by that of the queue they came from"
    is_careful = settings.ramp or settings.rate_per_s is not None
    if not is_careful and found.letters > settings.abort_min:
        yield "without a rate or a ramp all letters may be sent before the first failure is known"
