"""What the things that the audit is about are called: it has their ids."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import F, Model, QuerySet, TextField, Value
from django.db.models.functions import Cast

from queueapi.access.principals import Principal
from queueapi.access.tenancy import visible
from queueapi.models import (
    Alert,
    AlertChannel,
    AlertRule,
    ApiToken,
    AuditEntry,
    DeadLetter,
    DeadLetterGroup,
    IsolationRequest,
    Operation,
    Queue,
    Replay,
    Silence,
    Tenant,
    TenantProfile,
)

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# What has no name of its own is called by what it is of, or why it is there.
_CALLED: Final[Mapping[str, tuple[type[Model], str]]] = {
    "alert": (Alert, "rule_name"),
    "alert_channel": (AlertChannel, "name"),
    "alert_rule": (AlertRule, "name"),
    "dead_letter": (DeadLetter, "exception_class"),
    "dead_letter_group": (DeadLetterGroup, "exception_class"),
    "isolation_request": (IsolationRequest, "tenant__name"),
    "operation": (Operation, "summary"),
    "queue": (Queue, "name"),
    "replay": (Replay, "operation__summary"),
    "silence": (Silence, "reason"),
    "tenant": (Tenant, "name"),
    "tenant_profile": (TenantProfile, "name"),
    "token": (ApiToken, "name"),
    "user": (User, "username"),
}


# What is shown on another's page: by the field that has its id.
_SHOWN_AT: Final[Mapping[str, str]] = {"replay": "operation_id"}

# What the values of others name by its id.
_REFERRED: Final = ("operation", "queue", "tenant", "tenant_profile")


@dataclass(frozen=True, slots=True)
class Named:
    """`page_id` is whose page shows it: its own, as a rule."""

    name: str
    page_id: str


@dataclass(frozen=True, slots=True)
class AuditNames:
    """By kind, and the id without hyphens: the name, and the id of the page it is shown at where that is another's.
    Nothing of what they may not know of who asked."""

    known: Mapping[tuple[str, str], tuple[str, str]]

    def of(self, entry: AuditEntry) -> Named:
        """What its object is called now, or was when it was made or deleted; empty where nobody knows."""
        name, page = self.known.get((entry.object_type, _plain(entry.object_id)), (_told(entry), ""))
        return Named(name, str(UUID(page)) if page else entry.object_id)

    def of_value(self, value: Any) -> str:
        """Empty: it is no id of something that has a name."""
        if not isinstance(value, str):
            return ""
        found = (self.known.get((kind, _plain(value))) for kind in _REFERRED)
        return next((known[0] for known in found if known), "")


def audit_names(principal: Principal, entries: Iterable[AuditEntry]) -> AuditNames:
    """Of what these entries are about, and of the ids in what they tell. One query."""
    ids: dict[str, set[str]] = {}
    for entry in entries:
        ids.setdefault(entry.object_type, set()).add(entry.object_id)
        for value in _ids_in(entry):
            for kind in _REFERRED:
                ids.setdefault(kind, set()).add(value)
    asked = [_named(principal, kind, ids[kind]) for kind in sorted(ids.keys() & _CALLED.keys())]
    if not asked:
        return AuditNames({})
    rows = asked[0].union(*asked[1:], all=True)
    return AuditNames({(kind, _plain(pk)): (name, page) for kind, pk, page, name in rows if name})


def _ids_in(entry: AuditEntry) -> Iterator[str]:
    for value in (*(entry.before or {}).values(), *(entry.after or {}).values()):
        if isinstance(value, str) and _ID.fullmatch(value):
            yield value


def _named(principal: Principal, kind: str, ids: Iterable[str]) -> QuerySet[Any, Any]:
    model, field = _CALLED[kind]
    rows = model._default_manager.filter(pk__in=[one for one in ids if _may_be_of(model, one)])  # noqa: SLF001 (Django's)
    page = Cast(_SHOWN_AT[kind], TextField()) if kind in _SHOWN_AT else Value("", TextField())
    told = {
        "audited_as": Value(kind, TextField()), "text_id": Cast("pk", TextField()), "page_id": page, "called": F(field)
    }  # fmt: skip
    seen = visible(principal, rows).prefetch_related(None).order_by()
    named: QuerySet[Any, Any] = seen.annotate(**told).values_list(*told)
    return named


def _plain(object_id: str) -> str:
    """As SQLite keeps ids, and PostgreSQL with hyphens."""
    return object_id.replace("-", "")


def _may_be_of(model: type[Model], object_id: str) -> bool:
    """Whether a row could have that id. The audit takes any text for one."""
    try:
        model._meta.pk.to_python(object_id)  # noqa: SLF001 (Django's own word for what is public)
    except ValidationError:
        return False
    return True


def _told(entry: AuditEntry) -> str:
    """As the entry itself says."""
    found = (entry.after or {}).get("name") or (entry.before or {}).get("name")
    return found if isinstance(found, str) else ""
