"""Dead letters as people look at them. However many there are, a list reads a page of an index, and counts are read
from the tallies."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db.models import Count, Q, QuerySet, Sum

from queueapi.choices import LetterState
from queueapi.models import DeadLetter, DeadLetterTally
from queueapi.selectors.letter_filter import LetterFilter
from queuecore.messages import OF_SENDERS

# As many letters, the newest of those that indexes find, are searched for what there is no index for.
SEARCHED: Final = 25_000
# Beyond that many, what has no tally is not counted to the end.
COUNTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class LetterCounts:
    """How many letters are in each state. `is_exact` is False where there are more than were counted."""

    by_state: dict[LetterState, int]
    is_exact: bool = True

    @property
    def total(self) -> int:
        return sum(self.by_state.values())


def letters_for_lists(wanted: LetterFilter | None = None) -> QuerySet[DeadLetter]:
    """Letters with what their line in a list says. Text and reason are looked for in the newest alone."""
    rows = _bounded(wanted) if wanted else DeadLetter.objects.all()
    # Asked for beside the page, and not joined: with ten thousand queues SQLite would begin with these, and sort a
    # million letters for one page.
    return rows.prefetch_related("queue__tenant", "tenant")


def count_letters(wanted: LetterFilter) -> LetterCounts:
    """The letters that match, by state, whatever state the filter says: that is for lists to choose."""
    anyhow = replace(wanted, state=None)
    if wanted.replay and not wanted.is_searching:
        # All that one replay took: of very many, those of some state may all be old.
        states = anyhow.by_index().order_by().values_list("state")
        return LetterCounts(_by_state(states.annotate(number=Count("*"))))
    if wanted.is_tallied:
        return LetterCounts(_by_state(tallies(anyhow).values_list("state").annotate(number=Sum("letters"))))
    newest = list(_bounded(anyhow).order_by("-failed_at").values_list("state", flat=True)[: COUNTED + 1])
    return LetterCounts(_by_state(Counter(newest).items()), is_exact=len(newest) <= COUNTED)


def tallies(wanted: LetterFilter) -> QuerySet[DeadLetterTally]:
    """Those that count what matches, whatever state the filter says."""
    conditions = {
        "group": wanted.group,
        "group__queue": wanted.queue,
        "group__fingerprint": wanted.fingerprint,
        "group__exception_class": wanted.exception_class,
        "tenant_id": wanted.tenant,
    }
    given = {name: value for name, value in conditions.items() if value}
    return DeadLetterTally.objects.filter(Q(**given), letters__gt=0).order_by()


def headers_told(headers: Mapping[str, str]) -> dict[str, str]:
    """A letter's headers as a tenant's people read them: which service sent it is the system's own affair."""
    return {name: value for name, value in headers.items() if name not in OF_SENDERS}


def is_search_bounded(wanted: LetterFilter) -> bool:
    """Whether there are older letters that were not searched."""
    return wanted.is_searching and wanted.by_index().order_by()[SEARCHED : SEARCHED + 1].exists()


def _bounded(wanted: LetterFilter) -> QuerySet[DeadLetter]:
    if not wanted.is_searching:
        return wanted.by_index()
    newest = wanted.by_index().order_by("-failed_at").values_list("failed_at", flat=True)
    oldest_searched = newest[SEARCHED - 1 : SEARCHED].first()
    return wanted.rows().filter(failed_at__gte=oldest_searched) if oldest_searched else wanted.rows()


def _by_state(rows: Iterable[tuple[Any, ...]]) -> dict[LetterState, int]:
    return {LetterState(state): number for state, number in rows}
