"""Which letters are meant: a filter, or letters one by one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet

from queueapi.choices import LetterState
from queueapi.errors import InvalidInput
from queueapi.models import DeadLetter, DeadLetterGroup
from queueapi.selectors.as_read import AsRead
from queueapi.times import read_aware_time

# As many letters are sorted in no time.
_SORTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Letters that have all of these. Empty: all letters there are.

    text          is part of the error's class or message, the topic or the handler, whatever its case; or it is the
                  letter's id or key
    since, until  failed at that time or later; failed before that time
    unchanged_since
                  has been in its state since that time, or longer: what came or was decided on later is not meant. No
                  index has it; what it leaves out are few letters, where the time is a recent one
    replay        was last taken by that replay, whatever became of it there
    """

    queue: UUID | None = None
    tenant: UUID | None = None
    state: LetterState | None = None
    group: int | None = None
    fingerprint: str = ""
    reason: str = ""
    exception_class: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None
    unchanged_since: datetime | None = None
    replay: UUID | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "LetterFilter":
        """From what `as_json` made. InvalidInput names what is unknown or makes no sense."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(values.keys() - known):
            raise InvalidInput(f"a filter has no {unknown[0]!r}; use {', '.join(sorted(known))}")
        return cls(**{name: _read(name, value) for name, value in values.items() if value not in (None, "")})

    def as_json(self) -> dict[str, Any]:
        """What it asks for, as JSON; nothing where it asks for nothing."""
        told = {name: value for name, value in asdict(self).items() if value not in (None, "")}
        return {name: value if isinstance(value, int) else _written(value) for name, value in told.items()}

    def rows(self) -> QuerySet[DeadLetter]:
        """All letters that match. Text and reason are looked for in each that the others leave."""
        rows = self.by_index()
        rows = rows.filter(reason=self.reason) if self.reason else rows
        return rows.filter(_has_text(self.text)) if self.text else rows

    def by_index(self) -> QuerySet[DeadLetter]:
        """The letters that match all that there are indexes for."""
        exact = {
            "queue": self.queue,
            "tenant": self.tenant,
            "state": self.state,
            "group": self.group,
            "replay": self.replay,
        }
        ranges = {
            "failed_at__gte": self.since,
            "failed_at__lt": self.until,
            "state_changed_at__lte": self.unchanged_since,
        }
        rows = DeadLetter.objects.filter(**_given({**exact, **ranges}))
        return rows.filter(self._has_error()) if self.fingerprint or self.exception_class else rows

    @property
    def is_searching(self) -> bool:
        """Whether letters have to be looked at one by one."""
        return bool(self.text or self.reason)

    @property
    def is_tallied(self) -> bool:
        """Whether the tallies know how many match."""
        return not (self.is_searching or self.since or self.until or self.unchanged_since or self.replay)

    def _has_error(self) -> Q:
        """By groups, which letters are indexed by, unless there were too many to sort: then by time, where the next is
        never far."""
        error = _given({"fingerprint": self.fingerprint, "exception_class": self.exception_class})
        groups = list(DeadLetterGroup.objects.filter(**error, **_given({"queue": self.queue})))
        if len(groups) > 1 and sum(group.letters for group in groups) > _SORTED:
            return Q(**error)
        return Q(group__in=groups)


# What an action is to work on.
Selection = LetterFilter | Sequence[UUID]


def counted(letters: QuerySet[DeadLetter], selection: Selection, *columns: str) -> QuerySet[Any, tuple[Any, ...]]:
    """How many of the letters there are by each of these columns, as tuples that end with their number. `selection` is
    what the letters are of: where each is looked at, no index of the columns helps."""
    is_searching = isinstance(selection, LetterFilter) and selection.is_searching
    by = {f"by_{column}": AsRead(column) if is_searching else F(column) for column in columns}
    return letters.order_by().annotate(**by).values_list(*by).annotate(number=Count("*"))


def selected_letters(selection: Selection) -> QuerySet[DeadLetter]:
    if isinstance(selection, LetterFilter):
        return selection.rows()
    return DeadLetter.objects.filter(id__in=list(selection))


def selection_json(selection: Selection) -> dict[str, Any]:
    """What was selected, for the record."""
    if isinstance(selection, LetterFilter):
        return {"filter": selection.as_json()}
    return {"letters": [str(letter) for letter in selection]}


def selection_of(chosen: Mapping[str, Any]) -> Selection:
    """From what `selection_json` made."""
    if "filter" in chosen:
        return LetterFilter.of(chosen["filter"])
    return [UUID(letter) for letter in chosen["letters"]]


def _given(conditions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in conditions.items() if value}


def _has_text(text: str) -> Q:
    columns = ("exception_class", "exception_message", "topic", "handler")
    found = Q()
    for column in columns:
        found |= Q(**{f"{column}__icontains": text})
    try:
        exact = UUID(text)
    except ValueError:
        return found
    return found | Q(id=exact) | Q(key=exact)


def _read(name: str, value: Any) -> Any:
    try:
        read = _READERS.get(name, _text)(str(value) if type(value) is int else value)
    except (ValueError, TypeError, AttributeError):
        read = None
    if read is None:
        raise InvalidInput(f"{str(value)[:100]!r} is no {name} to filter by; {_EXPECTED.get(name, 'use text')}")
    return read


def _written(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _text(text: str) -> str | None:
    """NUL is in no text of PostgreSQL's, and half a surrogate pair in none of UTF-8's."""
    text.encode()
    return text if "\0" not in text else None


def _group(text: str) -> int | None:
    return number if isinstance(text, str) and 0 < (number := int(text)) < 2**63 else None


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "queue": UUID,
    "tenant": UUID,
    "state": LetterState,
    "group": _group,
    "since": read_aware_time,
    "until": read_aware_time,
    "unchanged_since": read_aware_time,
    "replay": UUID,
}
_EXPECTED: Final = {
    "queue": "use a queue's id",
    "tenant": "use a tenant's id",
    "state": f"use one of {', '.join(LetterState.values)}",
    "group": "use a group's id",
    "since": "use a time with its zone, as 2026-01-31T12:00:00Z",
    "until": "use a time with its zone, as 2026-01-31T12:00:00Z",
    "unchanged_since": "use a time with its zone, as 2026-01-31T12:00:00Z",
    "replay": "use a replay's id",
}
