"""What is found by a text, of every kind that whoever looks may read, and where it is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from queueapi.access.principals import Principal
from queueapi.access.table import READ, Resource
from queueapi.choices import AlertMetric, ChannelKind, Role, TenantState
from queueapi.cluster.models import Rebalance, ServiceInstance
from queueapi.config import config
from queueapi.models import (
    Alert,
    DeadLetter,
    DeadLetterGroup,
    IsolationRequest,
    Operation,
    Queue,
    RequestCurrent,
)
from queueapi.selectors import search
from queueapi.selectors.named_search import Named, find_named
from queuecore.topics import ServiceType, group_name


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing: what it is called, what else tells it from others, how it is, and where it is."""

    title: str
    detail: str
    url: str
    state: Any = None


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of one kind. `more`: the list that has all of them, where there may be more."""

    label: str
    hits: list[Hit]
    more: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """`list_name` is the list of all, which `?q=` narrows. `is_tenants`: whether a tenant's people have pages of it.
    Without `find` it is one of those that `find_named` knows, and `hit` is given a `Named`."""

    label: str
    resource: Resource
    find: Callable[[Principal, str], Iterable[Any]] | None
    hit: Callable[[Any], Hit]
    list_name: str = ""
    is_tenants: bool = False


def found(principal: Principal, text: str) -> list[Found]:
    """By kind, without those of which nothing is."""
    wanted = search.readable_text(text)
    if not wanted:
        return []
    shown = [kind for kind in KINDS if _is_shown(kind, principal)]
    named = find_named(principal, wanted, [kind.resource for kind in shown if kind.find is None])
    rows = ((kind, kind.find(principal, wanted) if kind.find else named[kind.resource]) for kind in shown)
    each = (_found(kind, some, wanted) for kind, some in rows)
    return [one for one in each if one.hits]


def _is_shown(kind: Kind, principal: Principal) -> bool:
    return (kind.is_tenants or principal.tenant_id is None) and principal.may(READ, kind.resource)


def _found(kind: Kind, rows: Iterable[Any], text: str) -> Found:
    hits = [kind.hit(row) for row in rows]
    is_cut = len(hits) >= search.MOST and kind.list_name
    return Found(kind.label, hits, f"{reverse(kind.list_name)}?{urlencode({'q': text})}" if is_cut else "")


def _queue(queue: Queue) -> Hit:
    detail = f"topic {queue.topic}, of {queue.tenant}"
    return Hit(queue.name, detail, reverse("queue", args=[queue.pk]), queue.state_choice)


def _group(queue: Queue) -> Hit:
    tree, kind = config().queue, ServiceType(queue.service_type)
    name = group_name(kind, queue.name, queue.tenant_id, None, prefix=tree.prefix, style=tree.group_id_style)
    return Hit(name, f"of queue {queue.name}, of {queue.tenant}", reverse("queue_groups", args=[queue.pk]))


def _tenant(tenant: Named) -> Hit:
    return Hit(tenant.name, tenant.detail[:80], reverse("tenant", args=[tenant.pk]), TenantState(tenant.state))


def _letter_group(group: DeadLetterGroup) -> Hit:
    address = f"{reverse('dead_letters')}?{urlencode({'group': group.pk})}"
    detail = f"{group.exception_message[:80]}, {group.open_letters:,} open in {group.queue.full_name}"
    return Hit(group.exception_class.rpartition(".")[2] or group.exception_class, detail, address)


def _letter(letter: DeadLetter) -> Hit:
    detail = f"{letter.exception_class.rpartition('.')[2]} in {letter.queue.full_name}"
    return Hit(str(letter.pk), detail, reverse("dead_letter", args=[letter.pk]), letter.state_choice)


def _operation(operation: Operation) -> Hit:
    address = reverse("operation", args=[operation.pk])
    return Hit(operation.summary, f"{operation.created_at:%Y-%m-%d %H:%M} UTC", address, operation.state_choice)


def _alert(alert: Alert) -> Hit:
    return Hit(
        f"{alert.rule_name}: {alert.subject_name}",
        f"since {alert.since:%Y-%m-%d %H:%M} UTC",
        reverse("alert", args=[alert.pk]),
        alert.state_choice,
    )


def _service(service: ServiceInstance) -> Hit:
    address = f"{reverse('services')}?{urlencode({'q': service.service_id})}"
    return Hit(service.service_id, f"{', '.join(service.service_types)} on {service.host}", address)


def _request(row: RequestCurrent) -> Hit:
    address = f"{reverse('pending_requests')}?{urlencode({'q': row.request_topic})}"
    return Hit(row.request_topic, f"{row.pending:,} pending of {row.service_id}", address)


def _isolation(request: IsolationRequest) -> Hit:
    address = reverse("isolation_request", args=[request.pk])
    return Hit(", ".join(request.queue_names), f"for {request.tenant}", address, request.state_choice)


def _rebalance(rebalance: Rebalance) -> Hit:
    address = reverse("rebalance", args=[rebalance.pk])
    return Hit(rebalance.reason, f"{rebalance.created_at:%Y-%m-%d %H:%M} UTC", address, rebalance.state_choice)


def _profile(profile: Named) -> Hit:
    return Hit(profile.name, profile.detail[:80], reverse("tenant_profile", args=[profile.pk]))


def _rule(rule: Named) -> Hit:
    return Hit(rule.name, AlertMetric(rule.detail).label, reverse("alert_rule", args=[rule.pk]))


def _channel(channel: Named) -> Hit:
    return Hit(channel.name, ChannelKind(channel.detail).label, reverse("alert_channel", args=[channel.pk]))


def _silence(silence: Named) -> Hit:
    return Hit(silence.name, f"by {silence.detail}", f"{reverse('silences')}?{urlencode({'q': silence.name})}")


def _token(token: Named) -> Hit:
    return Hit(token.name, f"{token.detail}…", f"{reverse('tokens')}?{urlencode({'q': token.detail})}")


def _user(user: Named) -> Hit:
    return Hit(user.name, Role(user.detail).label if user.detail else "no role", reverse("user", args=[user.pk]))


KINDS: Final = (
    Kind("Queues and topics", Resource.QUEUES, search.find_queues, _queue, "queues", is_tenants=True),
    Kind("Tenants", Resource.TENANTS, None, _tenant, "tenants"),
    Kind("Groups", Resource.GROUPS, search.find_queues_of_group, _group),
    Kind("Alerts", Resource.ALERTS, search.find_alerts, _alert, "alerts", is_tenants=True),
    Kind("Dead letters by error", Resource.DEAD_LETTER_GROUPS, search.find_letter_groups, _letter_group),
    Kind("Dead letters", Resource.DEAD_LETTERS, search.find_letters, _letter, "dead_letters", is_tenants=True),
    Kind("Services", Resource.SERVICES, search.find_services, _service, "services"),
    Kind("Requests", Resource.PENDING_REQUESTS, search.find_requests, _request, "pending_requests"),
    Kind(
        "Isolation requests",
        Resource.ISOLATION_REQUESTS,
        search.find_isolation_requests,
        _isolation,
        "isolation_requests",
        is_tenants=True,
    ),
    Kind("Operations", Resource.OPERATIONS, search.find_operations, _operation, "operations", is_tenants=True),
    Kind("Rebalances", Resource.REBALANCES, search.find_rebalances, _rebalance, "rebalances"),
    Kind("Tenant profiles", Resource.TENANT_PROFILES, None, _profile, "tenant_profiles"),
    Kind("Alert rules", Resource.ALERT_RULES, None, _rule, "alert_rules"),
    Kind("Alert channels", Resource.ALERT_CHANNELS, None, _channel, "alert_channels"),
    Kind("Silences", Resource.SILENCES, None, _silence, "silences"),
    Kind("Tokens", Resource.TOKENS, None, _token, "tokens", is_tenants=True),
    Kind("Users", Resource.USERS, None, _user, "users"),
)


def count(of: Iterable[Found]) -> int:
    return sum(len(one.hits) for one in of)
