"""What became of replayed letters, told in bulk."""

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F

from queueapi.actions.letter_states import change_states
from queueapi.choices import LetterState, ReplayItemState
from queueapi.models import DeadLetter, Replay, ReplayItem

_UNDECIDED: Final = (ReplayItemState.PENDING, ReplayItemState.SENT, ReplayItemState.ARRIVED)


def mark_outcomes(succeeded: Iterable[UUID]) -> int:
    """The messages that these letters were sent as have been handled. How many letters heard it for the first time:
    telling it twice does no harm."""
    return _decide(succeeded, LetterState.REPLAYED, ReplayItemState.SUCCEEDED)


def mark_failed_again(failed: Iterable[UUID]) -> int:
    """The messages that these letters were sent as have become letters of their own. As `mark_outcomes`."""
    return _decide(failed, LetterState.FAILED_AGAIN, ReplayItemState.FAILED)


def mark_dropped(dropped: Iterable[UUID]) -> int:
    """The messages that these letters were sent as were given up and written nowhere: the letters are all there is of
    them, and open again. As `mark_outcomes`."""
    return _decide(dropped, LetterState.OPEN, ReplayItemState.FAILED)


def _decide(letter_ids: Iterable[UUID], letter_state: LetterState, item_state: ReplayItemState) -> int:
    with transaction.atomic():
        changed = change_states(letter_ids, LetterState.REPLAYING, letter_state)
        if changed:
            _count_along(changed, item_state)
    return len(changed)


def _count_along(letter_ids: Sequence[UUID], state: ReplayItemState) -> None:
    """A letter may have been in several replays; the last is the one that it says."""
    counter = "succeeded" if state is ReplayItemState.SUCCEEDED else "failed"
    named = DeadLetter.objects.filter(id__in=letter_ids).values("replay_id")
    for replay in Replay.objects.select_for_update().filter(id__in=named).order_by("id"):
        items = replay.items.filter(letter__in=letter_ids, letter__replay=replay, state__in=_UNDECIDED)
        number = ReplayItem.objects.filter(id__in=items.values("id")).update(state=state)
        Replay.objects.filter(id=replay.id).update(**{counter: F(counter) + number})
