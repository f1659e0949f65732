"""What became of replayed letters, told in bulk."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from queueapi.actions.letter_states import change_states
from queueapi.actions.replay_items import recount
from queueapi.choices import LetterState, ReplayItemState
from queueapi.models import DeadLetter, Replay, ReplayItem

_UNDECIDED: Final = (ReplayItemState.PENDING, ReplayItemState.SENT, ReplayItemState.ARRIVED)
# What letters are in that were sent, and are open all the same: they were dropped, or given up waiting for.
_OPENED: Final = (ReplayItemState.SENT, ReplayItemState.ARRIVED, ReplayItemState.FAILED)


def mark_outcomes(succeeded: Iterable[UUID]) -> int:
    """The messages that these letters were sent as have been handled. How many letters heard it for the first time:
    telling it twice does no harm."""
    return _decide(succeeded, LetterState.REPLAYED, ReplayItemState.SUCCEEDED)


def mark_failed_again(failed: Iterable[UUID]) -> int:
    """The messages that these letters were sent as have become letters of their own. As `mark_outcomes`."""
    return _decide(failed, LetterState.FAILED_AGAIN, ReplayItemState.FAILED)


def mark_dropped(dropped: Iterable[UUID]) -> int:
    """The messages that these letters were sent as were given up and written nowhere: the letters are all there is of
    them, and open again. As `mark_outcomes`. A message that is delivered once more may still have another outcome."""
    with transaction.atomic():
        changed = change_states(dropped, LetterState.REPLAYING, LetterState.OPEN, replay_count=F("replay_count") + 1)
        _count_along(changed, ReplayItemState.FAILED)
    return len(changed)


def _decide(letter_ids: Iterable[UUID], letter_state: LetterState, item_state: ReplayItemState) -> int:
    wanted = set(letter_ids)
    with transaction.atomic():
        changed = change_states(wanted, LetterState.REPLAYING, letter_state)
        _count_along(changed, item_state)
    return len(changed) + _decide_late(wanted.difference(changed), letter_state, item_state)


def _decide_late(letter_ids: set[UUID], letter_state: LetterState, item_state: ReplayItemState) -> int:
    """As `_decide`, for letters that were opened again before their outcome came. Those that were never sent, and those
    that somebody has decided on since, stay as they are."""
    if not letter_ids:
        return 0
    sent = Q(replay_items__replay=F("replay"), replay_items__state__in=_OPENED)
    opened = DeadLetter.objects.filter(sent, id__in=letter_ids, state=LetterState.OPEN)
    with transaction.atomic():
        changed = change_states(list(opened.values_list("id", flat=True)), LetterState.OPEN, letter_state)
        for replay in _replays_of(changed):
            _items(replay, changed, _OPENED).update(state=item_state)
            recount(replay)
    return len(changed)


def _count_along(letter_ids: Sequence[UUID], state: ReplayItemState) -> None:
    counter = "succeeded" if state is ReplayItemState.SUCCEEDED else "failed"
    for replay in _replays_of(letter_ids):
        number = _items(replay, letter_ids, _UNDECIDED).update(state=state)
        Replay.objects.filter(id=replay.id).update(**{counter: F(counter) + number})


def _replays_of(letter_ids: Sequence[UUID]) -> QuerySet[Replay]:
    """Locked. A letter may have been in several replays; the last is the one that it says."""
    if not letter_ids:
        return Replay.objects.none()
    named = DeadLetter.objects.filter(id__in=letter_ids).values("replay_id")
    return Replay.objects.select_for_update().filter(id__in=named).order_by("id")


def _items(replay: Replay, letter_ids: Sequence[UUID], states: Collection[ReplayItemState]) -> QuerySet[ReplayItem]:
    items = replay.items.filter(letter__in=letter_ids, letter__replay=replay, state__in=states)
    return ReplayItem.objects.filter(id__in=items.values("id"))
