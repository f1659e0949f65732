"""What all forms that change something share: plans that people can read, and refusals where they belong."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from django.db.models import Manager
from django.forms import BaseForm
from django.http import HttpRequest

from console.plan_words import label_of, told_value
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


def readable(plan: ChangePlan, metric: str | None = None) -> ChangePlan:
    """Fields by their labels: whose they are is the page's title. `metric` is a rule's, where the plan leaves it as it
    is."""
    changes = tuple(change for change in plan.changes if ": " in change.what)
    return readable_fields(replace(plan, changes=changes), metric)


def readable_fields(plan: ChangePlan, metric: str | None = None) -> ChangePlan:
    """The same, of a plan that is of one thing's fields alone."""
    told = [(change.what.rpartition(": ")[2], change) for change in plan.changes]
    known = next((change.after or change.before for name, change in told if name == "metric"), metric)
    return replace(plan, changes=tuple(_readable(name, change, known) for name, change in told))


def metric_of(form: BaseForm) -> str | None:
    """What the rule that it changes looks at."""
    return getattr(getattr(form, "instance", None), "metric", None)


def _readable(name: str, change: Change, metric: str | None) -> Change:
    rows = _NAMED.get(name)

    def told(value: Any) -> Any:
        return _text(told_value(name, value, metric) if rows is None else _called(rows, value))

    return Change(label_of(name), told(change.before), told(change.after))


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
