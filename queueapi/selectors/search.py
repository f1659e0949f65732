"""Things of all kinds by a piece of their name or the beginning of their id. Each kind costs one query that ends after
a few rows; of what grows without end, only the newest are looked at."""

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import Case, IntegerField, Model, Q, QuerySet, Value, When

from queueapi.access.principals import Principal
from queueapi.access.tenancy import visible
from queueapi.cluster.models import Rebalance, ServiceInstance
from queueapi.models import (
    Alert,
    DeadLetter,
    DeadLetterGroup,
    IsolationRequest,
    Operation,
    Queue,
    RequestCurrent,
)
from queuecore.topics import ServiceType

MOST: Final = 6
LONGEST_TEXT: Final = 200

_NEWEST: Final = 2_000
_FEWEST_DIGITS: Final = 6
_HEX: Final = re.compile(r"[0-9a-f]+")
# What follows a queue's topic at the provider, and its name in a group's.
_TOPIC_END: Final = re.compile(r"(\.isolated\.[0-9a-f-]{36})?(\.dlq)?(\.\d{1,5})?$", re.IGNORECASE)
_GROUP_END: Final = re.compile(r"(-isolated-[0-9a-f-]*)?-cons[a-z]*(-\d*)?$", re.IGNORECASE)
_GROUP_BEGINNINGS: Final = tuple(sorted((f"{kind.value}_".lower() for kind in ServiceType), key=len, reverse=True))

Row = TypeVar("Row", bound=Model)


def readable_text(text: str) -> str:
    """What is looked for: no database takes a NUL, and nobody types a page."""
    return text.replace("\0", "").strip()[:LONGEST_TEXT]


def find_queues(principal: Principal, text: str) -> list[Queue]:
    """By name, topic or id; also by a topic as the provider calls it."""
    base = _TOPIC_END.sub("", text)
    named = Q(name__icontains=text) | Q(topic__icontains=text) | Q(topic__iexact=base) | has_id(text)
    rows = visible(principal, Queue.objects.select_related("tenant").filter(named)).prefetch_related(None)
    return list(best_first(rows, "name", text)[:MOST])


def find_queues_of_group(principal: Principal, text: str) -> list[Queue]:
    """Whose consumer group is called so. Nothing where that is no group's name, or the end of one."""
    name = _GROUP_END.sub("", text)
    if name == text:
        return []
    beginning = next((one for one in (*_GROUP_BEGINNINGS, "re-", "cf-") if name.lower().startswith(one)), "")
    rows = Queue.objects.select_related("tenant").filter(name__istartswith=name[len(beginning) :])
    return list(best_first(visible(principal, rows).prefetch_related(None), "name", text)[:MOST])


def find_letter_groups(principal: Principal, text: str) -> list[DeadLetterGroup]:
    """By the error's class or message, or the beginning of the fingerprint."""
    newest = DeadLetterGroup.objects.order_by("-last_seen").values("pk")[:_NEWEST]
    named = Q(exception_class__icontains=text) | Q(exception_message__icontains=text)
    wanted = Q(pk__in=newest) & named
    if _is_hex(text) and len(text) <= 16:
        wanted |= Q(fingerprint__gte=text.lower(), fingerprint__lt=f"{text.lower()}g")
    rows = DeadLetterGroup.objects.select_related("queue__tenant").filter(wanted)
    return list(visible(principal, rows).order_by("-last_seen", "-id")[:MOST])


def find_letters(principal: Principal, text: str) -> list[DeadLetter]:
    """By id alone: there may be millions."""
    if id_range(text) is None:
        return []
    rows = DeadLetter.objects.select_related("queue__tenant").filter(has_id(text))
    return list(visible(principal, rows).order_by("id")[:MOST])


def find_operations(principal: Principal, text: str) -> list[Operation]:
    newest = Operation.objects.order_by("-created_at").values("pk")[:_NEWEST]
    wanted = (Q(pk__in=newest) & (Q(summary__icontains=text) | Q(kind__icontains=text))) | has_id(text)
    return list(visible(principal, Operation.objects.filter(wanted)).order_by("-created_at")[:MOST])


def find_alerts(principal: Principal, text: str) -> list[Alert]:
    newest = Alert.objects.order_by("-fired_at", "-id").values("pk")[:_NEWEST]
    wanted = (Q(pk__in=newest) & (Q(rule_name__icontains=text) | Q(subject_name__icontains=text))) | has_id(text)
    return list(visible(principal, Alert.objects.filter(wanted)).order_by("-fired_at", "-id")[:MOST])


def find_isolation_requests(principal: Principal, text: str) -> list[IsolationRequest]:
    """By the tenant, who asked, why, or id."""
    named = Q(tenant__name__icontains=text) | Q(requested_by_name__icontains=text) | Q(reason__icontains=text)
    newest = IsolationRequest.objects.order_by("-created_at", "-id").values("pk")[:_NEWEST]
    rows = IsolationRequest.objects.select_related("tenant").filter((Q(pk__in=newest) & named) | has_id(text))
    return list(visible(principal, rows).order_by("-created_at", "-id")[:MOST])


def find_services(_: Principal, text: str) -> list[ServiceInstance]:
    there = ServiceInstance.objects.filter(Q(gone_at__isnull=True) | Q(is_lost=True))
    rows = there.filter(Q(service_id__icontains=text) | Q(host__icontains=text))
    return list(best_first(rows, "service_id", text)[:MOST])


def find_requests(_: Principal, text: str) -> list[RequestCurrent]:
    rows = RequestCurrent.objects.filter(Q(request_topic__icontains=text) | Q(service_id__icontains=text))
    return list(rows.order_by("-pending", "id")[:MOST])


def find_rebalances(_: Principal, text: str) -> list[Rebalance]:
    """By the reason, who asked for it, or id."""
    newest = Rebalance.objects.order_by("-created_at").values("pk")[:_NEWEST]
    named = Q(reason__icontains=text) | Q(requested_by__icontains=text)
    rows = Rebalance.objects.defer("listed", "balance").filter((Q(pk__in=newest) & named) | has_id(text))
    return list(rows.order_by("-created_at")[:MOST])


def id_range(text: str) -> tuple[UUID, UUID] | None:
    """All ids that begin so, which an index finds; None where too many would, or it is the beginning of none."""
    digits = text.replace("-", "").lower()
    if not _FEWEST_DIGITS <= len(digits) <= 32 or not _is_hex(digits):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def has_id(text: str) -> Q:
    between = id_range(text)
    return Q(pk__in=()) if between is None else Q(pk__gte=between[0], pk__lte=between[1])


def best_first(rows: QuerySet[Row], name: str, text: str) -> QuerySet[Row]:
    """What is called so, then what begins so, then the others by name."""
    called: Iterable[Any] = (
        When(**{f"{name}__iexact": text}, then=Value(0)),
        When(**{f"{name}__istartswith": text}, then=Value(1)),
    )
    return rows.order_by(Case(*called, default=Value(2), output_field=IntegerField()), name)


def _is_hex(text: str) -> bool:
    return len(text) >= _FEWEST_DIGITS and _HEX.fullmatch(text.lower()) is not None
