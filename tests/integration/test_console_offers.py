"""What pages offer: to nobody what they would be refused, and what is off says why to all who can read it."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any, Final

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from queueapi.choices import (
    AlertState,
    IsolationState,
    LetterState,
    OperationState,
    QueueState,
    RebalanceState,
    Role,
    TenantState,
)
from queueapi.cluster.models import Rebalance, ServiceInstance
from queueapi.models import Alert, ApiToken, DeadLetter, IsolationRequest, Operation, Queue, Silence, Tenant
from queueapi.plans import all_groups
from tests.console_pages import addresses
from tests.integration.console_things import make_things
from tests.page_offers import Offer, Page
from tests.people import person

_MODELS: Final[dict[str, Any]] = {
    "queue": Queue,
    "tenant": Tenant,
    "letter": DeadLetter,
    "service": ServiceInstance,
    "isolation_request": IsolationRequest,
    "operation": Operation,
    "alert": Alert,
    "silence": Silence,
    "token": ApiToken,
    "rebalance": Rebalance,
}
# Their rows have buttons of their own.
_LISTS: Final = ("queues", "services", "silences", "tokens")
_NOT_ALLOWED, _NOT_THERE, _NO_SUCH_METHOD = 403, 404, 405

_numbers = count(1)


class Reader:
    """Somebody who goes from page to page, and tries what is offered there."""

    def __init__(self, role: Role, tenant: Tenant | None = None) -> None:
        self._client = Client()
        self._client.force_login(person(f"reader-{next(_numbers)}", role, tenant))
        self._tried: dict[tuple[str, str], int] = {}

    def open(self, address: str) -> Page | None:
        """None: there is no page, or it is not for them."""
        answer = self._client.get(address)
        return Page(address, answer.content.decode()) if answer.status_code == 200 else None

    def answer(self, method: str, path: str) -> int:
        """The status. Of what was done nothing stays."""
        if (method, path) not in self._tried:
            with transaction.atomic():
                self._tried[method, path] = getattr(self._client, method)(path).status_code
                transaction.set_rollback(True)
        return self._tried[method, path]

    def is_refused(self, offer: Offer) -> bool:
        if offer.path in (reverse("logout"), reverse("login")):
            return False
        return self.answer(offer.method, offer.path) in (_NOT_ALLOWED, _NOT_THERE, _NO_SUCH_METHOD)


@pytest.fixture
def administrator(installation: Any) -> Reader:
    return Reader(Role.ADMINISTRATOR)


def readers(role: Role, things: dict[str, Any]) -> list[Reader]:
    """Of tenants' people one of each tenant that these things are of."""
    if not role.is_of_tenant:
        return [Reader(role)]
    asking = IsolationRequest.objects.get(pk=things["isolation_request"]).tenant
    return [Reader(role, tenant) for tenant in (Tenant.objects.get(pk=things["tenant"]), asking)]


def wrong_on(address: str, reader: Reader, administrator: Reader) -> Iterator[str]:
    """What this page offers though it is refused, and what is off there without a reason."""
    if (page := reader.open(address)) is None:
        return
    for offer in page.offers():
        if reader.is_refused(offer):
            yield f"{address}: {offer.label!r} is offered, and {offer.method} {offer.path} is refused"
        elif offer.is_led_to and leads_to_refusal(offer, reader, administrator):
            yield f"{address}: {offer.label!r} is offered, and what {offer.path} is there for is refused"
    yield from (f"{address}: {label!r} is off, and does not say why" for label in page.unexplained())


def leads_to_refusal(offer: Offer, reader: Reader, administrator: Reader) -> bool:
    """Whether it is the way to a page where something is changed, which they may look at and no more. What would be
    after a rebalance is for all to ask."""
    if offer.path == reverse("plan_rebalance"):
        return False
    changes = administrator.answer("post", offer.path) not in (_NOT_ALLOWED, _NO_SUCH_METHOD)
    return changes and reader.answer("post", offer.path) == _NOT_ALLOWED


def all_wrong(role: Role, things: dict[str, Any], pages: list[str], administrator: Reader) -> str:
    """One line for each."""
    found = (wrong_on(page, reader, administrator) for reader in readers(role, things) for page in pages)
    return "\n".join(dict.fromkeys(line for lines in found for line in lines))


@pytest.mark.parametrize("role", list(Role))
def test_nobody_is_offered_what_they_are_refused(installation, administrator, role) -> None:
    things, queue = make_things(1), installation.queue
    offsets = reverse("reset_offsets", args=[queue.pk, all_groups(queue)[0]])
    named = addresses(things)
    pages = [
        *named.values(),
        *(f"{named['dead_letters']}?group={things['letter_group']}&state={state}" for state in LetterState),
        f"{named['plan_rebalance']}?leaving={things['service']}",
        f"{named['backfill']}?first=2026-01-01",
        reverse("tenant", args=[queue.tenant_id]),
        *(reverse(name, args=[queue.pk]) for name in ("queue", "queue_messages", "queue_groups")),
        offsets,
        f"{offsets}?to=earliest",
    ]
    wrong = all_wrong(role, things, pages, administrator)
    assert not wrong, wrong


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("stage", ["held", "over"])
def test_nor_of_what_is_held_or_over(administrator, role, stage) -> None:
    things, changed = make_things(1), held() if stage == "held" else over()
    for name, fields in changed.items():
        _MODELS[name].objects.filter(pk=things[name]).update(**fields)
    named = addresses(things)
    theirs = [page for page in named.values() if any(str(things[name]) in page for name in changed)]
    wrong = all_wrong(role, things, [*theirs, *(named[name] for name in _LISTS)], administrator)
    assert not wrong, wrong


def held() -> dict[str, dict[str, Any]]:
    """What makes things those that somebody has put off, is moving or sees to."""
    now = timezone.now()
    return {
        "queue": {"state": QueueState.DRAINING},
        "tenant": {"state": TenantState.SUSPENDED, "reason": "unpaid"},
        "letter": {"state": LetterState.DISCARDED},
        "service": {"is_draining": True},
        "isolation_request": {"state": IsolationState.ACTIVE, "decided_at": now},
        "operation": {"paused_at": now},
        "rebalance": {"state": RebalanceState.RUNNING, "finished_at": None},
        "alert": {"state": AlertState.ACKNOWLEDGED, "acknowledged_at": now, "acknowledged_by": "ada"},
    }


def over() -> dict[str, dict[str, Any]]:
    """What makes things those with which nothing more can be done, or not yet."""
    now = timezone.now()
    return {
        "queue": {"state": QueueState.CREATING},
        "letter": {"state": LetterState.REPLAYING},
        "service": {"gone_at": now},
        "isolation_request": {"state": IsolationState.FAILED, "error": "no broker", "decided_at": now},
        "operation": {"state": OperationState.SUCCEEDED, "finished_at": now},
        "alert": {"state": AlertState.RESOLVED, "resolved_at": now},
        "silence": {"created_at": now - timedelta(hours=2), "until": now - timedelta(hours=1)},
        "token": {"revoked_at": now},
    }
