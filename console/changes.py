"""What all forms that change something share: plans that people can read, and refusals where they belong."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from django.db.models import Manager
from django.forms import BaseForm
from django.http import HttpRequest

from queueapi.actions.rehearsing import rehearse
from queueapi.change_plans import NOTHING, Change, ChangePlan
from queueapi.errors import ActionError
from queueapi.models import AlertRule, Queue, Tenant, TenantProfile
from queuecore.errors import QueueError

Made = TypeVar("Made")

# Of what there are ids in plans: those are for machines.
_NAMED: Final[dict[str, Manager[Any]]] = {
    "profile": TenantProfile.objects,
    "queue": Queue.objects,
    "rule": AlertRule.objects,
    "tenant": Tenant.objects,
}
# What actions say of one field of the thing that they refuse.
_OF_FIELD: Final = re.compile(r"(?:queue [^ :]+: )?(?P<field>[a-z_]+): (?P<text>.+)", re.DOTALL)


def carried_out(request: HttpRequest, form: BaseForm, act: Callable[[], Made], refusal: str) -> Made | None:
    """What came of it, where nothing is planned. None where there is nothing to do yet, or where the form says what is
    wrong, `refusal` first."""
    if request.method != "POST" or not form.is_valid():
        return None
    try:
        return act()
    except ActionError as error:
        refuse(form, refusal, error)
    return None


def refuse(form: BaseForm, refusal: str, error: QueueError) -> None:
    """Where the error says which fields are wrong, there; else above all of them."""
    told: dict[str, list[str]] = error.fields.get("fields") or {}
    if not told or not told.keys() <= form.fields.keys():
        form.add_error(None, f"{refusal}: {error.message.removeprefix('options: ')}.")
        return
    for name, texts in told.items():
        form.add_error(name, texts)


def of_field(message: str) -> dict[str, list[str]]:
    """`retention_ms: it is not allowed` is about that field, also where a thing's name comes first."""
    found = _OF_FIELD.fullmatch(message)
    return {found["field"]: [found["text"]]} if found else {}


def planned(act: Callable[[], object]) -> ChangePlan:
    """What it would do, or why it would be refused."""
    try:
        return readable(rehearse(act))
    except ActionError as error:
        return ChangePlan(NOTHING, why_not=error.message)


def readable(plan: ChangePlan) -> ChangePlan:
    """Fields by their names: whose they are is the page's title."""
    return readable_fields(replace(plan, changes=tuple(change for change in plan.changes if ": " in change.what)))


def readable_fields(plan: ChangePlan) -> ChangePlan:
    """The same, of a plan that is of one thing's fields alone."""
    return replace(plan, changes=tuple(_readable(change) for change in plan.changes))


def _readable(change: Change) -> Change:
    name = change.what.rpartition(": ")[2]
    rows = _NAMED.get(name)
    before, after = (_text(each if rows is None else _called(rows, each)) for each in (change.before, change.after))
    return Change(name.replace("_", " "), before, after)


def _called(rows: Manager[Any], pk: Any) -> Any:
    return None if pk is None else str(rows.filter(pk=pk).first() or pk)


def _text(value: Any) -> Any:
    """None for nothing, which has a sign of its own."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_text(each)}" for name, each in value.items()) or None
    if isinstance(value, list):
        return ", ".join(map(str, value)) or None
    return None if value == "" else value
