"""The letters that a replay was started for become its own, in the order in which it will send them."""

from collections import Counter
from itertools import islice
from typing import Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, Max, Q, QuerySet, UUIDField, Value, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from queueapi.actions.letter_states import count_moved
from queueapi.bulk import table_of
from queueapi.choices import LetterState, ReplayItemState
from queueapi.models import DeadLetter, Operation, Replay, ReplayItem

# As many letters are collected in one transaction.
BATCH: Final = 50_000
# So many partitions take turns, with so many letters each. What failed together is then changed together, which costs
# the database less, and a replay does not fill one partition after the other.
_SIDE_BY_SIDE: Final = 16
_TURN: Final = 1_000

_Place = tuple[str, int]


class LetterCollector:
    """Collects the open ones of these letters for a replay: each partition's as they failed, and the partitions in
    turns. A letter that another replay takes at the same time is one of the two's alone."""

    def __init__(self, replay: Replay, letters: QuerySet[DeadLetter]) -> None:
        self._replay = replay
        self._letters = letters.filter(state=LetterState.OPEN)
        found = self._letters.order_by("letter_topic", "letter_partition").values_list(
            "letter_topic", "letter_partition"
        )
        # Each with the offset that its letters were collected up to.
        self._places: dict[_Place, int] = dict.fromkeys(found.distinct(), -1)

    def collect(self, limit: int = BATCH) -> int:
        """Take up to so many more, in one transaction. How many it were; 0: there are no more."""
        numbers: Counter[tuple[int, UUID | None]] = Counter()
        with transaction.atomic():
            last = self._replay.items.aggregate(last=Max("sequence"))["last"]
            first = count = 0 if last is None else last + 1
            while self._places and count - first < limit:
                for place in list(islice(self._places, _SIDE_BY_SIDE)):
                    count += self._take_turn(place, min(_TURN, limit - (count - first)), count, numbers)
            count_moved(numbers, LetterState.OPEN, LetterState.REPLAYING)
            Operation.objects.filter(id=self._replay.operation_id).update(total=count)
        return count - first

    def _take_turn(self, place: _Place, limit: int, sequence: int, numbers: Counter[tuple[int, UUID | None]]) -> int:
        """How many letters of this partition the replay has got, the first of them with this sequence."""
        topic, partition = place
        behind = Q(letter_topic=topic, letter_partition=partition, letter_offset__gt=self._places[place])
        waiting = self._letters.filter(behind).order_by("letter_offset").values_list("letter_offset", flat=True)
        if not limit:
            return 0
        if (first := waiting.first()) is None:
            del self._places[place]
            return 0
        # Offsets do not repeat: so many of them hold no more letters.
        last = self._places[place] = first + limit - 1
        part = Q(letter_topic=topic, letter_partition=partition, letter_offset__range=(first, last))
        self._claim(part, numbers)
        return self._enter(part, sequence)

    def _claim(self, part: Q, numbers: Counter[tuple[int, UUID | None]]) -> None:
        """What somebody else is about to change stays theirs. To wait for it might be to wait in a circle: letters are
        taken by their places here, and by their ids everywhere else."""
        letters = self._letters.filter(part).order_by()
        if connection.features.has_select_for_update_skip_locked:
            free = letters.select_for_update(skip_locked=True, of=("self",)).values("id")
            letters = DeadLetter.objects.filter(id__in=free)
        letters.update(state=LetterState.REPLAYING, replay=self._replay, state_changed_at=timezone.now())
        claimed = self._claimed(part).order_by().values_list("group_id", "tenant_id").annotate(number=Count("pk"))
        numbers.update({(group, tenant): number for group, tenant, number in claimed})

    def _claimed(self, part: Q) -> QuerySet[DeadLetter]:
        return DeadLetter.objects.filter(part, replay=self._replay, state=LetterState.REPLAYING)

    def _enter(self, part: Q, first: int) -> int:
        """An item for each letter that was claimed, made by the database itself: none passes through this process."""
        rows = self._claimed(part).annotate(
            of_replay=Value(self._replay.id, output_field=UUIDField()),
            number=Window(RowNumber(), order_by="letter_offset") + Value(first - 1),
            item_state=Value(ReplayItemState.PENDING.value),
            item_reason=Value(""),
        )
        values = rows.order_by("letter_offset").values("of_replay", "id", "number", "item_state", "item_reason")
        query, params = values.query.sql_with_params()
        columns = "(replay_id, letter_id, sequence, state, reason)"
        with connection.cursor() as cursor:
            cursor.execute(f"insert into {table_of(ReplayItem)} {columns} {query}", params)
            return int(cursor.rowcount)
