"""Of which tenants letters are that a replay would send."""

from collections import Counter
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Count, QuerySet, Sum

from queueapi.choices import LetterState
from queueapi.models import DeadLetter, Tenant
from queueapi.models.dead_letter_group import NOBODY
from queueapi.selectors.dead_letters import COUNTED, tallies
from queueapi.selectors.letter_filter import LetterFilter, Selection

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Owners:
    """How many letters are of which tenants, most first, and how many more tenants there are. None: they name no
    tenant."""

    shown: tuple[tuple[Tenant | None, int], ...]
    more: int


def owners_of(selection: Selection, ready: QuerySet[DeadLetter], letters: int) -> Owners | None:
    """Of those of `selection` that are `ready`, so many `letters`. Of very many the tallies tell, with the few that are
    refused; None where each would have to be read."""
    if letters <= COUNTED:
        rows = ready.order_by().values_list("tenant_id").annotate(number=Count("*"))
        return _named(Counter(dict(rows)))
    if isinstance(selection, LetterFilter) and selection.is_tallied:
        tallied = tallies(selection).filter(state=LetterState.OPEN)
        numbers = dict(tallied.values_list("tenant_id").annotate(number=Sum("letters")))
        return _named(Counter({None if pk == NOBODY else pk: number for pk, number in numbers.items()}))
    return None


def _named(numbers: Counter[UUID | None]) -> Owners:
    most = numbers.most_common(_SHOWN)
    tenants = Tenant.objects.in_bulk([pk for pk, _ in most if pk is not None])
    shown = tuple((None if pk is None else tenants.get(pk), number) for pk, number in most)
    return Owners(shown, len(numbers) - len(shown))
