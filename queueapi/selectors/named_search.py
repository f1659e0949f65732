"""Things that are looked for by their names alone, of many kinds by one query: the search has few."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import CharField, F, Q, QuerySet, Value
from django.db.models.functions import Cast

from queueapi.access.principals import Principal
from queueapi.access.secrets import prefix_of
from queueapi.access.table import Resource
from queueapi.access.tenancy import visible
from queueapi.models import AlertChannel, AlertRule, ApiToken, Silence, Tenant, TenantProfile
from queueapi.selectors.search import MOST, best_first, has_id
from queueapi.selectors.tokens import tokens_seen_by

_TEXT: Final = CharField()
_COLUMNS: Final = ("found_kind", "found_pk", "found_name", "found_detail", "found_state")


@dataclass(frozen=True, slots=True)
class Named:
    """One thing. What `detail` and `state` are, its kind says; empty: it has none."""

    pk: str
    name: str
    detail: str
    state: str


@dataclass(frozen=True, slots=True)
class _Kind:
    """What `name`, `detail`, `state` and `prefix` say are fields of the rows.

    prefix    of a secret, by which it is found as well
    has_uuid  whether it is found by how its id begins
    seen      which of the rows somebody may know of
    """

    rows: QuerySet[Any]
    name: str
    detail: str
    state: str = ""
    prefix: str = ""
    has_uuid: bool = True
    seen: Callable[[Principal, QuerySet[Any]], QuerySet[Any]] = visible


_KINDS: Final = {
    Resource.TENANTS: _Kind(Tenant.objects.all(), "name", "description", "state"),
    Resource.TENANT_PROFILES: _Kind(TenantProfile.objects.all(), "name", "description"),
    Resource.ALERT_RULES: _Kind(AlertRule.objects.all(), "name", "metric"),
    Resource.ALERT_CHANNELS: _Kind(AlertChannel.objects.all(), "name", "kind"),
    Resource.SILENCES: _Kind(Silence.objects.all(), "reason", "created_by"),
    Resource.TOKENS: _Kind(ApiToken.objects.all(), "name", "prefix", prefix="prefix", seen=tokens_seen_by),
    Resource.USERS: _Kind(User.objects.all(), "username", "account__role", has_uuid=False),
}


def find_named(principal: Principal, text: str, kinds: Collection[Resource]) -> dict[Resource, list[Named]]:
    """Of these kinds those that are called so or whose id begins so, as far as they may know of them; best first."""
    parts = [_part(principal, kind, text) for kind in kinds]
    if not parts:
        return {}
    found: dict[Resource, list[Named]] = {kind: [] for kind in kinds}
    for kind, pk, name, detail, state in parts[0].union(*parts[1:], all=True):
        found[Resource(kind)].append(Named(_read_pk(Resource(kind), pk), name, detail or "", state))
    return {kind: sorted(rows, key=lambda row: _rank(row.name, text)) for kind, rows in found.items()}


def _part(principal: Principal, resource: Resource, text: str) -> QuerySet[Any, Any]:
    """The best of one kind, in columns that are text for each."""
    kind = _KINDS[resource]
    best = best_first(kind.seen(principal, kind.rows.filter(_is_called(kind, text))), kind.name, text)[:MOST]
    told = (Value(resource.value, _TEXT), Cast("pk", _TEXT), F(kind.name), F(kind.detail))
    state = F(kind.state) if kind.state else Value("", _TEXT)
    rows = kind.rows.filter(pk__in=best.values("pk")).order_by()
    part: QuerySet[Any, Any] = rows.annotate(**dict(zip(_COLUMNS, (*told, state), strict=True))).values_list(*_COLUMNS)
    return part


def _is_called(kind: _Kind, text: str) -> Q:
    named = Q(**{f"{kind.name}__icontains": text})
    if kind.prefix:
        # A whole secret may be pasted: of that no more is looked for.
        named |= Q(**{kind.prefix: prefix_of(text) or text})
    return named | has_id(text) if kind.has_uuid else named


def _read_pk(resource: Resource, text: str) -> str:
    """As addresses have it: a database may keep ids without their dashes."""
    return str(UUID(text)) if _KINDS[resource].has_uuid else text


def _rank(name: str, text: str) -> tuple[int, str]:
    """As `best_first` has it."""
    called, wanted = name.lower(), text.lower()
    return 0 if called == wanted else 1 if called.startswith(wanted) else 2, called
