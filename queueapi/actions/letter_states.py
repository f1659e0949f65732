"""The states of letters, and how many there are of each: changed together, here alone.

Whoever changes letters locks them first, then their groups, each by rising id, and then the groups' tallies: nobody
waits in a circle.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from queueapi.bulk import adapter_of, execute_many, table_of
from queueapi.choices import LEGAL_LETTER_CHANGES, LetterState
from queueapi.models import DeadLetter, DeadLetterGroup, DeadLetterTally
from queueapi.models.dead_letter_group import NOBODY

# As many letters are changed by one statement: databases bound how many values it may have.
_CHUNK = 5_000


class TallyKey(NamedTuple):
    group_id: int
    tenant_id: UUID | None
    state: str


def change_states(letter_ids: Iterable[UUID], before: LetterState, after: LetterState, **also: Any) -> list[UUID]:
    """Move those of these letters that are in `before` to `after`, set what `also` says, and count along. Which they
    were. ValueError for a change that is not legal."""
    if after not in LEGAL_LETTER_CHANGES[before]:
        raise ValueError(f"a letter that is {before.label.lower()} cannot become {after.label.lower()}")
    wanted = sorted(set(letter_ids))
    with transaction.atomic():
        found = [
            row for start in range(0, len(wanted), _CHUNK) for row in _lock(wanted[start : start + _CHUNK], before)
        ]
        changed = [letter_id for letter_id, _group, _tenant in found]
        for start in range(0, len(changed), _CHUNK):
            letters = DeadLetter.objects.filter(id__in=changed[start : start + _CHUNK])
            letters.update(state=after, state_changed_at=timezone.now(), **also)
        count_moved(Counter((group, tenant) for _letter, group, tenant in found), before, after)
    return changed


def count_moved(numbers: Mapping[tuple[int, UUID | None], int], before: LetterState, after: LetterState) -> None:
    """So many letters of each group and tenant went from one state to another."""
    changes: Counter[TallyKey] = Counter()
    for (group, tenant), number in numbers.items():
        changes[TallyKey(group, tenant, before)] -= number
        changes[TallyKey(group, tenant, after)] += number
    count_changes(changes)


def count_changes(changes: Mapping[TallyKey, int]) -> None:
    """Add these numbers to groups and their tallies. Call it in the transaction that changes the letters."""
    letters: Counter[int] = Counter()
    open_letters: Counter[int] = Counter()
    for key, number in changes.items():
        letters[key.group_id] += number
        open_letters[key.group_id] += number if key.state == LetterState.OPEN else 0
    execute_many(
        f"update {table_of(DeadLetterGroup)} "  # noqa: S608
        "set letters = letters + %s, open_letters = open_letters + %s where id = %s",
        [(letters[group], open_letters[group], group) for group in sorted(letters)],
    )
    count_tallies(changes)


def count_tallies(changes: Mapping[TallyKey, int]) -> None:
    """Add these numbers to tallies alone. Their groups must be locked."""
    _subtract([(key, -number) for key, number in changes.items() if number < 0])
    _add([(key, number) for key, number in changes.items() if number > 0])


def _add(tallies: Sequence[tuple[TallyKey, int]]) -> None:
    """To tallies that may be new."""
    table, adapt = table_of(DeadLetterTally), adapter_of(DeadLetterTally, "tenant_id")
    execute_many(
        f"insert into {table} (group_id, tenant_id, state, letters) values (%s, %s, %s, %s) "  # noqa: S608
        f"on conflict (group_id, tenant_id, state) do update set letters = {table}.letters + excluded.letters",
        [(key.group_id, adapt(key.tenant_id or NOBODY), key.state, number) for key, number in tallies],
    )


def _subtract(tallies: Sequence[tuple[TallyKey, int]]) -> None:
    """From tallies that are there: an insert of less than 0 would be refused before it is found to be an update."""
    adapt = adapter_of(DeadLetterTally, "tenant_id")
    execute_many(
        f"update {table_of(DeadLetterTally)} "  # noqa: S608
        "set letters = letters - %s where group_id = %s and tenant_id = %s and state = %s",
        [(number, key.group_id, adapt(key.tenant_id or NOBODY), key.state) for key, number in tallies],
    )


def _lock(letter_ids: Sequence[UUID], state: LetterState) -> list[tuple[UUID, int, UUID | None]]:
    letters = DeadLetter.objects.select_for_update().filter(id__in=letter_ids, state=state).order_by("id")
    return list(letters.values_list("id", "group_id", "tenant_id"))
