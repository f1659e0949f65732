"""Plans for queues, in the words of their form."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from console.queue_configuration_forms import QueueForm
from console.queue_field_texts import LABELS
from queueapi.actions.queue_checks import CHANGEABLE
from queueapi.actions.rehearsing import rehearse
from queueapi.change_plans import Change, ChangePlan
from queueapi.models import Queue


def queue_plan(act: Callable[[], object], form: QueueForm, *, is_new: bool = False) -> ChangePlan:
    """What the action would do to the queue; of a new one, what not every queue has. ActionError as the action."""
    plan = rehearse(act)
    told = (Change(one.what.rpartition(": ")[2], one.before, one.after) for one in plan.changes if _is_queues(one))
    wanted = (one for one in told if not (is_new and _is_usual(one)))
    return replace(plan, changes=tuple(_in_words(wanted, form)))


def _is_queues(change: Change) -> bool:
    """Not of the operation that follows from it."""
    return change.what.startswith("queue ") and ": " in change.what


def _is_usual(change: Change) -> bool:
    return change.what in CHANGEABLE and bool(change.after == getattr(Queue(), change.what))


def _in_words(changes: Iterator[Change], form: QueueForm) -> Iterator[Change]:
    for one in changes:
        label = LABELS.get(one.what, one.what.replace("_", " ").capitalize())
        yield Change(label, _told(form, one.what, one.before), _told(form, one.what, one.after))


def _told(form: QueueForm, name: str, value: Any) -> Any:
    """None for nothing, which has a sign of its own."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    field = form.fields.get(name)
    shown = value if field is None or value is None else field.prepare_value(value)
    return None if shown in ("", "{}") else shown
