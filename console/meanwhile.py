"""What others have changed while somebody has a form open: found by what the form showed, which comes back with it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from django.core import signing
from django.db.models import Model
from django.forms import BaseForm, BooleanField, BoundField, ChoiceField
from django.http import QueryDict
from django.utils.choices import flatten_choices

from queueapi.locking import row_locked
from queueapi.selectors.tenants import recent_audit
from queuecore.consuming.handler_options import HIDDEN

_NOT_SHOWN: Final = "What is not shown here"
_ENTRIES_LOOKED_AT: Final = 50


class Entry(Protocol):
    """Of the audit or the ledger."""

    @property
    def actor_name(self) -> str: ...
    @property
    def at(self) -> datetime: ...
    @property
    def after(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Thing:
    """What several may have a form of at once.

    what     in a word
    entries  who changed it, the newest first
    kept_in  what entries call fields that they do not know by their own names
    holding  nobody else changes it meanwhile; what actions lock before its row has to be locked there too
    version  of what is changed and not shown
    """

    what: str
    row: Model
    entries: Callable[[], Iterable[Entry]]
    kept_in: str = ""
    holding: Callable[[Model], AbstractContextManager[None]] = row_locked
    version: Callable[[], int] = int

    @property
    def salt(self) -> str:
        """What was shown of one thing is nothing that another could be compared with."""
        return f"{type(self.row).__name__} {self.row.pk} as it was shown"


def thing_of(what: str, row: Model, object_type: str, **more: Any) -> Thing:
    """One of which the audit knows who changed it."""
    return Thing(what, row, lambda: recent_audit(object_type, row.pk, _ENTRIES_LOOKED_AT), **more)


@dataclass(frozen=True, slots=True)
class Seen:
    """A thing as a form shows it. It goes with the form, signed, and comes back with it."""

    values: Mapping[str, Any]
    version: int

    @classmethod
    def of(cls, thing: Thing, form: BaseForm) -> "Seen":
        """`form` is one that nobody has filled in."""
        return cls({bound.html_name: _plain(_shown(bound)) for bound in fields_of(form)}, thing.version())

    @classmethod
    def read(cls, text: str, thing: Thing, now: "Seen") -> "Seen":
        """What came back; where nobody can tell any more, the thing as it is now."""
        try:
            values, version = signing.loads(text, salt=thing.salt)
        except signing.BadSignature:
            return now
        return cls(values, version)

    def signed(self, thing: Thing) -> str:
        return signing.dumps([dict(self.values), self.version], salt=thing.salt, compress=True)

    def changed(self, now: "Seen") -> list[str]:
        """The fields that are others by now."""
        return [name for name, value in self.values.items() if name in now.values and now.values[name] != value]

    def is_still(self, now: "Seen") -> bool:
        return self.version == now.version and not self.changed(now)


@dataclass(frozen=True, slots=True)
class Clash:
    """A field that somebody else has changed: what it was, what it is, and what was typed, where that is neither.
    `anchor` is the id of the field, where it has one."""

    label: str
    anchor: str
    was: Any
    now: Any
    typed: Any
    by: str
    at: datetime | None


def clashes(thing: Thing, seen: Seen, now: Seen, form: BaseForm) -> list[Clash]:
    """`form` is what was sent."""
    entries, names = list(thing.entries()), seen.changed(now)
    found = [_clash(bound, thing, seen, now, entries) for bound in fields_of(form) if bound.html_name in names]
    if found or seen.version == now.version:
        return found
    by, at = _who(entries[0] if entries else None)
    return [Clash(_NOT_SHOWN, "", HIDDEN, HIDDEN, None, by, at)]


def merged(data: QueryDict, seen: Seen, now: Seen, form: BaseForm) -> QueryDict:
    """What was typed, with others' changes where nothing was."""
    both, names = data.copy(), seen.changed(now)
    for bound in fields_of(form):
        if bound.html_name in names and not bound.field.has_changed(seen.values[bound.html_name], _typed(bound)):
            _put(both, bound, now.values[bound.html_name])
    return both


def fields_of(form: BaseForm) -> Iterator[BoundField]:
    """Those that people see, of the form and of those in it."""
    for one in forms_in(form):
        yield from one.visible_fields()


def forms_in(form: BaseForm) -> Iterator[BaseForm]:
    """The form, and its rows where these are forms of their own."""
    yield from (form, *getattr(form, "rows", ()))


def entry_of(entries: Iterable[Entry], name: str) -> tuple[str, datetime | None]:
    """Who changed a field last, and when."""
    return _who(next((one for one in entries if name in (one.after or {})), None))


def _clash(bound: BoundField, thing: Thing, seen: Seen, now: Seen, entries: Iterable[Entry]) -> Clash:
    was, is_now = seen.values[bound.html_name], now.values[bound.html_name]
    typed, field = _typed(bound), bound.field
    is_other = field.has_changed(was, typed) and field.has_changed(is_now, typed)
    by, at = entry_of(entries, bound.name)
    if at is None and thing.kept_in:
        by, at = entry_of(entries, thing.kept_in)
    mine = _told(bound, typed) if is_other else None
    return Clash(_label(bound), bound.id_for_label, _told(bound, was), _told(bound, is_now), mine, by, at)


def _who(entry: Entry | None) -> tuple[str, datetime | None]:
    return ("", None) if entry is None else (entry.actor_name, entry.at)


def _label(bound: BoundField) -> str:
    """With what its form is about, where that is one of several."""
    shared = getattr(bound.form, "shared", None)
    return f"{shared}: {bound.label}" if shared and bound.label != str(shared) else str(bound.label)


def _shown(bound: BoundField) -> Any:
    return bound.field.prepare_value(bound.initial)


def _typed(bound: BoundField) -> Any:
    return bound.field.widget.value_from_datadict(bound.form.data, bound.form.files, bound.html_name)


def _put(data: QueryDict, bound: BoundField, value: Any) -> None:
    if isinstance(bound.field, BooleanField):
        data.setlist(bound.html_name, ["on"] if value else [])
    elif isinstance(value, list):
        data.setlist(bound.html_name, value)
    else:
        data[bound.html_name] = "" if value is None else str(value)


def _plain(value: Any) -> Any:
    """As JSON has it, and a form sends it back."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Iterable):
        return sorted(str(_plain(each)) for each in value)
    return str(value.pk if isinstance(value, Model) else value)


def _told(bound: BoundField, value: Any) -> Any:
    """Choices by what they are called."""
    if isinstance(value, list):
        return ", ".join(str(_told(bound, each)) for each in value) or None
    if isinstance(bound.field, ChoiceField):
        choices: Any = bound.field.choices
        called: dict[str, Any] = dict(flatten_choices(choices))
        return next((label for key, label in called.items() if str(key) == str(value)), value)
    return None if value == "" else value
