"""Audit entries as people compare them: field by field."""

import json
from dataclasses import dataclass
from typing import Any

from queueapi.change_plans import Change
from queueapi.models import AuditEntry


@dataclass(frozen=True, slots=True)
class AuditedChange:
    """`name` is what it is about; empty: that has none, or nobody knows any more."""

    entry: AuditEntry
    changes: list[Change]
    name: str = ""


def changes_of(entry: AuditEntry, name: str = "") -> AuditedChange:
    """Those fields that are not what they were."""
    before, after = entry.before or {}, entry.after or {}
    fields = [field for field in {**before, **after} if before.get(field) != after.get(field)]
    changes = [Change(field, _told(before.get(field)), _told(after.get(field))) for field in fields]
    return AuditedChange(entry, changes, name)


def _told(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
