"""The counters of groups and tallies against the letters themselves."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count

from queueapi.actions.letter_states import TallyKey, count_tallies
from queueapi.choices import LetterState
from queueapi.models import DeadLetter, DeadLetterGroup, DeadLetterTally
from queueapi.models.dead_letter_group import NOBODY


@dataclass(frozen=True, slots=True)
class Miscount:
    """A counter of a group that says another number than there are."""

    group_id: int
    counter: str
    told: int
    found: int


def recount_letters(*, mend: bool = False) -> list[Miscount]:
    """Where counters are wrong; with `mend` they are right afterwards. Safe while letters come and go: each group is
    held for as long as it is counted."""
    groups = list(DeadLetterGroup.objects.order_by("id").values_list("id", flat=True))
    return [miscount for group in groups for miscount in _recount_group(group, mend=mend)]


def _recount_group(group_id: int, *, mend: bool) -> list[Miscount]:
    with transaction.atomic():
        group = DeadLetterGroup.objects.select_for_update().filter(id=group_id).first()
        if group is None:
            return []
        found, told = _found(group_id), _told(group_id)
        miscounts = [*_miscounted_tallies(found, told), *_miscounted_group(group, found)]
        if mend and miscounts:
            count_tallies({key: found[key] - told[key] for key in {*found, *told}})
            group.letters, group.open_letters = found.total(), _open(found)
            group.save(update_fields=["letters", "open_letters"])
    return miscounts


def _miscounted_tallies(found: Counter[TallyKey], told: Counter[TallyKey]) -> Iterator[Miscount]:
    for key in sorted({*found, *told}, key=str):
        if found[key] != told[key]:
            yield Miscount(key.group_id, f"{key.state} of tenant {key.tenant_id}", told[key], found[key])


def _miscounted_group(group: DeadLetterGroup, found: Counter[TallyKey]) -> Iterator[Miscount]:
    if group.letters != found.total():
        yield Miscount(group.pk, "letters", group.letters, found.total())
    if group.open_letters != _open(found):
        yield Miscount(group.pk, "open letters", group.open_letters, _open(found))


def _open(found: Counter[TallyKey]) -> int:
    return sum(number for key, number in found.items() if key.state == LetterState.OPEN)


def _found(group_id: int) -> Counter[TallyKey]:
    letters = DeadLetter.objects.filter(group=group_id).order_by().values_list("tenant_id", "state")
    numbers = letters.annotate(number=Count("pk"))
    return Counter({TallyKey(group_id, tenant, state): number for tenant, state, number in numbers})


def _told(group_id: int) -> Counter[TallyKey]:
    tallies = DeadLetterTally.objects.filter(group=group_id).values_list("tenant_id", "state", "letters")
    numbers = {(None if tenant == NOBODY else tenant, state): letters for tenant, state, letters in tallies}
    return Counter({TallyKey(group_id, tenant, state): number for (tenant, state), number in numbers.items()})
