"""What the things that the audit is about are called: it has their ids."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

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


def names_of_objects(principal: Principal, entries: Iterable[AuditEntry]) -> dict[int, str]:
    """By the entry's id: what its object is called now, or was when it was made or deleted. Nothing of what they may
    not know of. One query."""
    shown = list(entries)
    now = _names(principal, shown)
    named = {entry.pk: now.get((entry.object_type, _plain(entry.object_id))) or _told(entry) for entry in shown}
    return {pk: name for pk, name in named.items() if name}


def _names(principal: Principal, entries: Iterable[AuditEntry]) -> dict[tuple[str, str], str]:
    ids: dict[str, set[str]] = {}
    for entry in entries:
        ids.setdefault(entry.object_type, set()).add(entry.object_id)
    asked = [_named(principal, kind, ids[kind]) for kind in sorted(ids.keys() & _CALLED.keys())]
    if not asked:
        return {}
    return {(kind, _plain(pk)): name for kind, pk, name in asked[0].union(*asked[1:], all=True)}


def _named(principal: Principal, kind: str, ids: Iterable[str]) -> QuerySet[Any, Any]:
    model, field = _CALLED[kind]
    rows = model._default_manager.filter(pk__in=[one for one in ids if _may_be_of(model, one)])  # noqa: SLF001 (Django's)
    told = {"audited_as": Value(kind, TextField()), "text_id": Cast("pk", TextField()), "called": F(field)}
    seen = visible(principal, rows).prefetch_related(None).order_by()
    named: QuerySet[Any, Any] = seen.annotate(**told).values_list("audited_as", "text_id", "called")
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
