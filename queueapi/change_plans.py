"""What a change would do, shown before it is done: the same shape for all of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Model

NOTHING = "nothing would change"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that would be another. None: it is not there, before or after."""

    what: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """What would be other afterwards.

    summary   all of it, in a line
    changes   one by one
    warnings  what else would come of it
    why_not   why it would be refused; empty: it would be done
    """

    summary: str
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    why_not: str = ""


def plan_of_row(
    action: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    warnings: Iterable[str] = (),
    why_not: str = "",
) -> ChangePlan:
    """Of one row's fields, as they are and as they would be; None: there is no row yet, or none would be left."""
    old, new = before or {}, after or {}
    changes = [Change(name, old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)]
    summary = f"{NOTHING}: {why_not}" if why_not else action if changes else NOTHING
    return ChangePlan(summary, tuple(changes), tuple(warnings), why_not)


def shown(row: Model, names: Iterable[str]) -> dict[str, Any]:
    """These fields as JSON holds them: for plans and the audit."""
    values = {name: row.serializable_value(name) for name in names}
    return {name: str(value) if isinstance(value, UUID) else value for name, value in values.items()}


def difference(before: Model, after: Model, names: Iterable[str]) -> list[str]:
    """Those of the fields that differ."""
    old, new = shown(before, names), shown(after, names)
    return [name for name in old if old[name] != new[name]]


def entered(row: Model, changes: Mapping[str, Any]) -> None:
    """Give the row these values."""
    for name, value in changes.items():
        setattr(row, name, value)
