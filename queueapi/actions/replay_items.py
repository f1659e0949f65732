"""The letters of a replay, from being chosen to being sent or given back. Whoever runs the replay calls these.

Letters are locked first, as `letter_states` says, then the replay, then its items: nobody waits in a circle.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, F, Q, QuerySet, UUIDField, Value, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from queueapi.actions.letter_states import change_states, count_moved
from queueapi.bulk import table_of
from queueapi.choices import LetterState, ReplayItemState
from queueapi.models import DeadLetter, Operation, Replay, ReplayChunk, ReplayItem
from queuecore.topics import ProviderPartition

# As many letters are collected, or given back, in one transaction.
BATCH: Final = 20_000

_POSITION: Final = ("letter_topic", "letter_partition", "letter_offset")
_SENT: Final = (
    ReplayItemState.SENT,
    ReplayItemState.ARRIVED,
    ReplayItemState.SUCCEEDED,
    ReplayItemState.FAILED,
)


def collect_letters(replay: Replay, letters: QuerySet[DeadLetter]) -> int:
    """Make up to a batch more of these open letters the replay's, in the order in which they failed. How many it were.
    A letter that another replay takes at the same time is one of the two's alone."""
    with transaction.atomic():
        last = replay.items.order_by("-sequence").values_list("sequence", *(f"letter__{name}" for name in _POSITION))
        sequence, *position = last.first() or (-1, "", 0, -1)
        first = next_sequence = sequence + 1
        place: _Place | None = _Place(*position)
        while place is not None and (wanted := BATCH - (next_sequence - first)):
            claimed = _claim(replay, letters, place, wanted)
            next_sequence += _enter(replay, claimed, next_sequence)
            place = _next_place(letters, place)
        Operation.objects.filter(id=replay.operation_id).update(total=next_sequence)
    return next_sequence - first


def note_collected(replay: Replay) -> None:
    """There are no more."""
    replay.is_collected = True
    replay.save(update_fields=["is_collected"])


def begin_chunk(replay: Replay, first: int, last: int, end_offsets: Mapping[ProviderPartition, int]) -> ReplayChunk:
    """These letters are about to be sent, and their targets end here. Call it in the transaction that checks the lease:
    two runners must not send the same."""
    offsets = [[*place, offset] for place, offset in end_offsets.items()]
    return ReplayChunk.objects.create(replay=replay, first_sequence=first, last_sequence=last, end_offsets=offsets)


def finish_chunk(chunk: ReplayChunk, sent: int, refused: Mapping[UUID, str]) -> None:
    """All letters of the chunk were acknowledged, but those that were refused: these are open again. In the transaction
    that checks the lease."""
    skip_letters(chunk.replay, refused)
    Replay.objects.filter(id=chunk.replay_id).update(sent=F("sent") + sent)
    # One whose outcome is known already stays as it is.
    _pending(chunk).update(state=ReplayItemState.SENT, sent_at=timezone.now())
    ReplayChunk.objects.filter(replay=chunk.replay_id).delete()


def settle_chunk(chunk: ReplayChunk, arrived: Collection[UUID], uncertain: Mapping[UUID, str]) -> None:
    """The targets were looked through for a chunk that nobody finished: these letters are there, of those it cannot be
    known, and all others are still to be sent."""
    with transaction.atomic():
        skip_letters(chunk.replay, uncertain)
        _lock(chunk.replay)
        _pending(chunk).filter(letter__in=arrived).update(state=ReplayItemState.ARRIVED, sent_at=timezone.now())
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
    """Open up to a batch of letters that were not sent. How many it were."""
    pending = replay.items.filter(state=ReplayItemState.PENDING).order_by("sequence")
    with transaction.atomic():
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


class _Place(NamedTuple):
    """A partition of a topic of letters, from behind an offset on."""

    topic: str
    partition: int
    offset: int

    def letters(self) -> Q:
        return Q(letter_topic=self.topic, letter_partition=self.partition, letter_offset__gt=self.offset)


def _next_place(letters: QuerySet[DeadLetter], place: _Place) -> _Place | None:
    """The first partition behind this one that has open letters of these. Each question is one range of an index."""
    ranges = Q(letter_topic=place.topic, letter_partition__gt=place.partition), Q(letter_topic__gt=place.topic)
    for behind in ranges:
        found = letters.filter(behind, state=LetterState.OPEN).order_by(*_POSITION)
        if first := found.values_list("letter_topic", "letter_partition").first():
            return _Place(*first, offset=-1)
    return None


def _claim(replay: Replay, letters: QuerySet[DeadLetter], place: _Place, limit: int) -> QuerySet[DeadLetter]:
    """The first letters of this place, which are the replay's from now on."""
    part = place.letters()
    wanted = letters.filter(part, state=LetterState.OPEN)
    offsets = wanted.order_by("letter_offset").values_list("letter_offset", flat=True)[limit - 1 : limit]
    if (last := offsets.first()) is not None:
        part &= Q(letter_offset__lte=last)
    # Whoever was quicker has changed the state, which is asked for once more when the row is changed.
    wanted.filter(part).update(state=LetterState.REPLAYING, replay=replay, state_changed_at=timezone.now())
    claimed = DeadLetter.objects.filter(part, replay=replay, state=LetterState.REPLAYING)
    rows = claimed.order_by().values_list("group_id", "tenant_id").annotate(number=Count("pk"))
    count_moved({(group, tenant): number for group, tenant, number in rows}, LetterState.OPEN, LetterState.REPLAYING)
    return claimed


def _enter(replay: Replay, letters: QuerySet[DeadLetter], first: int) -> int:
    """An item for each, made by the database itself: none of them passes through this process."""
    rows = letters.order_by(*_POSITION).annotate(
        of_replay=Value(replay.id, output_field=UUIDField()),
        number=Window(RowNumber(), order_by=_POSITION) + Value(first - 1),
        item_state=Value(ReplayItemState.PENDING.value),
        item_reason=Value(""),
    )
    query, params = rows.values("of_replay", "id", "number", "item_state", "item_reason").query.sql_with_params()
    columns = "(replay_id, letter_id, sequence, state, reason)"
    with connection.cursor() as cursor:
        cursor.execute(f"insert into {table_of(ReplayItem)} {columns} {query}", params)
        return int(cursor.rowcount)
