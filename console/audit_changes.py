"""Audit entries as people compare them: field by field."""

import json
from dataclasses import dataclass
from typing import Any

from queueapi.change_plans import Change
from queueapi.models import AuditEntry


@dataclass(frozen=True, slots=True)
class AuditedChange:
    entry: AuditEntry
    changes: list[Change]


def changes_of(entry: AuditEntry) -> AuditedChange:
    """Those fields that are not what they were."""
    before, after = entry.before or {}, entry.after or {}
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return AuditedChange(entry, [Change(name, _told(before.get(name)), _told(after.get(name))) for name in names])


def _told(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
