"""Audit entries as people compare them: field by field."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from console.access import viewer
from queueapi.change_plans import Change
from queueapi.models import AuditEntry
from queueapi.selectors.audit_names import AuditNames, audit_names


@dataclass(frozen=True, slots=True)
class AuditedChange:
    """`name` is what it is about; empty: that has none, or nobody knows any more. `page_id` is whose page shows it."""

    entry: AuditEntry
    changes: list[Change]
    name: str
    page_id: str


def audited(request: HttpRequest, entries: Iterable[AuditEntry]) -> list[AuditedChange]:
    """These, with the names of what whoever looks may know of."""
    listed = list(entries)
    names = audit_names(viewer(request), listed)
    return [_changes_of(entry, names) for entry in listed]


def _changes_of(entry: AuditEntry, names: AuditNames) -> AuditedChange:
    """Those fields that are not what they were."""
    before, after = entry.before or {}, entry.after or {}
    fields = [field for field in {**before, **after} if before.get(field) != after.get(field)]
    changes = [Change(field, _told(before.get(field), names), _told(after.get(field), names)) for field in fields]
    named = names.of(entry)
    return AuditedChange(entry, changes, named.name, named.page_id)


def _told(value: Any, names: AuditNames) -> str | None:
    """An id with the name of what has it: whoever looks for it has the one or the other."""
    if value is None or isinstance(value, str):
        name = names.of_value(value)
        return f"{name} ({value})" if name else value
    return json.dumps(value, ensure_ascii=False)
