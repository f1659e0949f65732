"""What somebody changes in a queue's form, beside what others have changed since it was shown to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.core import signing
from django.forms import BooleanField
from django.http import QueryDict

from console.meanwhile import Clash, entry_of
from console.queue_configuration_forms import QueueForm
from console.queue_field_texts import LABELS
from queueapi.actions.queue_checks import CHANGEABLE
from queueapi.actions.queues import shown_fields
from queueapi.models import AuditEntry, Queue
from queueapi.selectors.tenants import recent_audit

_SALT: Final = "queue as it was shown"
_ENTRIES_LOOKED_AT: Final = 50


@dataclass(frozen=True, slots=True)
class Seen:
    """A queue as a form showed it. It goes with the form, signed, and comes back with it."""

    version: int
    values: Mapping[str, Any]

    @classmethod
    def of(cls, queue: Queue) -> "Seen":
        return cls(queue.version, shown_fields(queue, CHANGEABLE))

    @classmethod
    def read(cls, text: str, queue: Queue) -> "Seen":
        """What came back. Where nobody can tell any more, the queue as it is now."""
        try:
            version, values = signing.loads(text, salt=_SALT)
        except signing.BadSignature:
            return cls.of(queue)
        now = shown_fields(queue, CHANGEABLE)
        return cls(version, {**now, **{name: value for name, value in values.items() if name in now}})

    @property
    def signed(self) -> str:
        return signing.dumps([self.version, dict(self.values)], salt=_SALT, compress=True)

    def edits(self, form: QueueForm) -> dict[str, Any]:
        """What was typed that is not what was shown."""
        typed = form.cleaned_data
        return {name: typed[name] for name in CHANGEABLE if name in typed and typed[name] != self.values[name]}


def clashes(seen: Seen, queue: Queue, form: QueueForm) -> list[Clash]:
    """Pauses are none, though they make another version as well."""
    now = Seen.of(queue).values
    changed = [name for name in CHANGEABLE if now[name] != seen.values[name]]
    entries = recent_audit("queue", queue.pk, _ENTRIES_LOOKED_AT) if changed else []
    return [_clash(name, seen, now, form, entries) for name in changed]


def _clash(name: str, seen: Seen, now: Mapping[str, Any], form: QueueForm, entries: list[AuditEntry]) -> Clash:
    typed, shown = form.cleaned_data, form.fields[name].prepare_value
    is_other = name not in typed or typed[name] not in (seen.values[name], now[name])
    mine = shown(typed[name]) if name in typed else form.typed(name)
    label, others = LABELS.get(name, name.capitalize()), (shown(seen.values[name]), shown(now[name]))
    return Clash(label, f"id_{name}", *others, mine if is_other else None, *entry_of(entries, name))


def merged(data: QueryDict, seen: Seen, queue: Queue, form: QueueForm) -> QueryDict:
    """What was typed, with others' changes where nothing was."""
    both, now = data.copy(), Seen.of(queue).values
    for name in CHANGEABLE:
        if now[name] != seen.values[name] and _is_untouched(name, seen, form):
            _put(both, form, name, now[name])
    return both


def _put(data: QueryDict, form: QueueForm, name: str, value: Any) -> None:
    field = form.fields[name]
    if isinstance(field, BooleanField):
        data.setlist(name, ["on"] if value else [])
        return
    shown = field.prepare_value(value)
    data[name] = "" if shown is None else str(shown)


def _is_untouched(name: str, seen: Seen, form: QueueForm) -> bool:
    return name in form.cleaned_data and form.cleaned_data[name] == seen.values[name]
