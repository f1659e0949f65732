"""The letters of a replay, until they are sent or given back. Whoever runs the replay calls these.

Letters are locked first, as `letter_states` says, then the replay, then its items: nobody waits in a circle.
"""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from django.db.models import Count, F, QuerySet
from django.utils import timezone

from queueapi.actions.letter_states import change_states
from queueapi.choices import LetterState, ReplayItemState
from queueapi.models import Replay, ReplayChunk, ReplayItem
from queuecore.topics import ProviderPartition

# As many letters are given back in one transaction.
BATCH: Final = 10_000

_SENT: Final = (
    ReplayItemState.SENT,
    ReplayItemState.ARRIVED,
    ReplayItemState.SUCCEEDED,
    ReplayItemState.FAILED,
)


def note_collected(replay: Replay) -> None:
    """There are no more."""
    replay.is_collected = True
    replay.save(update_fields=["is_collected"])


def begin_chunk(replay: Replay, first: int, last: int, end_offsets: Mapping[ProviderPartition, int]) -> ReplayChunk:
    """These letters are about to be sent, and their targets end here. Call it in the transaction that checks the lease,
    as all that follow: two runners must not send the same, and one that lost its lease must not judge what the other
    sends."""
    offsets = [[*place, offset] for place, offset in end_offsets.items()]
    return ReplayChunk.objects.create(replay=replay, first_sequence=first, last_sequence=last, end_offsets=offsets)


def finish_chunk(chunk: ReplayChunk, sent: int) -> None:
    """All letters of the chunk, so many, were acknowledged."""
    Replay.objects.filter(id=chunk.replay_id).update(sent=F("sent") + sent)
    # One whose outcome is known already stays as it is.
    _pending(chunk).update(state=ReplayItemState.SENT, sent_at=timezone.now())
    ReplayChunk.objects.filter(replay=chunk.replay_id).delete()


def abandon_chunk(chunk: ReplayChunk, refused: Mapping[UUID, str]) -> None:
    """Nothing of the chunk was sent. These letters cannot be, and are open again."""
    skip_letters(chunk.replay, refused)
    ReplayChunk.objects.filter(replay=chunk.replay_id).delete()


def settle_chunk(chunk: ReplayChunk, has_arrived: bool, uncertain: Mapping[UUID, str]) -> None:
    """The targets were looked through for a chunk that nobody finished: it is there or not, but of these letters that
    cannot be known. What is not there is still to be sent."""
    skip_letters(chunk.replay, uncertain)
    _lock(chunk.replay)
    if has_arrived:
        _pending(chunk).update(state=ReplayItemState.ARRIVED, sent_at=timezone.now())
    ReplayChunk.objects.filter(replay=chunk.replay_id).delete()
    recount(chunk.replay)


def skip_letters(replay: Replay, reasons: Mapping[UUID, str]) -> None:
    """The replay does not send these: they are open again, and their items say why."""
    if not reasons:
        return
    by_reason: dict[str, list[UUID]] = {}
    for letter_id, reason in reasons.items():
        by_reason.setdefault(reason, []).append(letter_id)
    change_states(reasons, LetterState.REPLAYING, LetterState.OPEN)
    _lock(replay)
    for reason, letter_ids in by_reason.items():
        items = replay.items.filter(letter__in=letter_ids, state=ReplayItemState.PENDING)
        number = items.update(state=ReplayItemState.SKIPPED, reason=reason[:500])
        Replay.objects.filter(id=replay.id).update(skipped=F("skipped") + number)


def give_back_letters(replay: Replay, reason: str) -> int:
    """Open up to a batch of letters that were not sent. How many it were. In the transaction that checks the lease."""
    pending = replay.items.filter(state=ReplayItemState.PENDING).order_by("sequence")
    letter_ids = list(pending.values_list("letter_id", flat=True)[:BATCH])
    skip_letters(replay, dict.fromkeys(letter_ids, reason))
    return len(letter_ids)


def recount(replay: Replay) -> None:
    """Make the replay's numbers those of its items."""
    rows = replay.items.order_by().values_list("state").annotate(number=Count("pk"))
    numbers = {ReplayItemState(state): number for state, number in rows}
    Replay.objects.filter(id=replay.id).update(
        sent=sum(numbers.get(state, 0) for state in _SENT),
        succeeded=numbers.get(ReplayItemState.SUCCEEDED, 0),
        failed=numbers.get(ReplayItemState.FAILED, 0),
        skipped=numbers.get(ReplayItemState.SKIPPED, 0),
    )


def _lock(replay: Replay) -> None:
    Replay.objects.select_for_update().get(id=replay.id)


def _pending(chunk: ReplayChunk) -> QuerySet[ReplayItem]:
    between = (chunk.first_sequence, chunk.last_sequence)
    return ReplayItem.objects.filter(replay=chunk.replay_id, sequence__range=between, state=ReplayItemState.PENDING)
