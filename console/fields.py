"""Fields that several forms have."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet, Subquery

from queueapi.models import Queue, Tenant
from queueapi.times import is_one_everywhere
from queuecore.topics import SYSTEM_TENANT

_MOST_NAMED: Final = 5


class QueueField(forms.CharField):
    """A queue by its name or id. To choose from a list of ten thousand would help nobody."""

    def __init__(self, **options: Any) -> None:
        attributes = {"autocomplete": "off", "spellcheck": "false", "list": "queue-names"}
        super().__init__(**{"required": False, "widget": forms.TextInput(attrs=attributes), **options})

    def clean(self, value: Any) -> Queue | None:
        text = super().clean(value)
        return _found_queue(text) if text else None

    def prepare_value(self, value: Any) -> Any:
        """A link has the id; people read the name, where that is one queue's alone."""
        return _name_of(Queue.objects.all(), value)


class TenantField(forms.CharField):
    """A tenant by its name or id, as there may be thousands."""

    def __init__(self, **options: Any) -> None:
        attributes = {"autocomplete": "off", "spellcheck": "false"}
        super().__init__(**{"required": False, "widget": forms.TextInput(attrs=attributes), **options})

    def clean(self, value: Any) -> Tenant | None:
        text = super().clean(value)
        return _found_tenant(text) if text else None

    def prepare_value(self, value: Any) -> Any:
        return value.name if isinstance(value, Tenant) else _name_of(Tenant.objects.all(), value)


class IsolableTenantField(TenantField):
    """Not the system's, which is no tenant like the others."""

    def clean(self, value: Any) -> Tenant | None:
        found = super().clean(value)
        if found is not None and found.pk == SYSTEM_TENANT:
            raise ValidationError("The system tenant's things are everybody's: leave it empty, or name another tenant.")
        return found


class TimeField(forms.DateTimeField):
    """A moment, by UTC where no zone is written. One that is none in some other zone would fail in a database."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
        super().__init__(**{"required": False, "widget": widget, **options})

    def to_python(self, value: Any) -> datetime | None:
        time: datetime | None = super().to_python(value)
        if time is not None and not is_one_everywhere(time):
            raise ValidationError("Enter a time of the years 1970 to 9998.")
        return time


class NumberField(forms.FloatField):
    """Any number; a whole one is written as people write it: 0, and not 0.0."""

    def prepare_value(self, value: Any) -> Any:
        return int(value) if isinstance(value, float) and value.is_integer() else value


class DurationField(forms.TypedChoiceField):
    """How long something lasts, of a few lengths. None: for ever, where that is one of them."""

    def __init__(self, lengths: Mapping[str, timedelta | None], **options: Any) -> None:
        self._lengths = lengths
        choices = [(name, name) for name in lengths]
        super().__init__(choices=choices, coerce=lengths.__getitem__, empty_value=None, **options)


def _found_queue(text: str) -> Queue:
    known = list(Queue.objects.select_related("tenant").filter(_by_id_or_name(text))[: _MOST_NAMED + 1])
    if len(known) == 1:
        return known[0]
    if not known:
        raise ValidationError(f"There is no queue {text!r}; look for its name or id in the list of queues.")
    owners = ", ".join(str(queue.tenant) for queue in known[:_MOST_NAMED])
    raise ValidationError(f"Several tenants have a queue of that name: {owners}. Enter the id of the one you mean.")


def _found_tenant(text: str) -> Tenant:
    known = list(Tenant.objects.filter(_by_id_or_name(text))[:2])
    if len(known) == 1:
        return known[0]
    if not known:
        raise ValidationError(f"There is no tenant {text!r}; look for its name or id in the list of tenants.")
    raise ValidationError("Several tenants are called that. Enter the id of the one you mean.")


def _by_id_or_name(text: str) -> Q:
    pk = _as_id(text)
    return Q(name__iexact=text) if pk is None else Q(pk=pk)


def _name_of(rows: QuerySet[Any], value: Any) -> Any:
    pk = _as_id(value)
    if pk is None:
        return value
    name = Subquery(rows.filter(pk=pk).order_by().values("name")[:1])
    alike: list[str] = list(rows.filter(name=name).order_by().values_list("name", flat=True)[:2])
    return alike[0] if len(alike) == 1 else value


def _as_id(value: Any) -> UUID | None:
    try:
        return UUID(str(value))
    except ValueError:
        return None
