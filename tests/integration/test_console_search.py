"""Search over all kinds of things: what is found, by whom, and at which cost."""

import re
from datetime import timedelta
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve, reverse
from django.utils import timezone

from console.searching import KINDS, found
from queueapi.access.principals import principal_of
from queueapi.actions.actor import Actor
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.actions.tokens import create_token
from queueapi.choices import AlertMetric, AlertSeverity, RebalanceState, Role
from queueapi.cluster.models import Rebalance
from queueapi.models import (
    Alert,
    DeadLetterGroup,
    IsolationRequest,
    Operation,
    Queue,
    RequestCurrent,
    Tenant,
    TenantProfile,
)
from queueapi.selectors.search import MOST, id_range
from tests.alerts import make_channel, make_rule, make_silence
from tests.instances import announce
from tests.people import person

pytestmark = pytest.mark.django_db

ISOLATED = "13814000-1dd2-11b2-8080-808080808081"


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("zebra-keeper", password="secret"))
    return client


@pytest.fixture
def zebras() -> Queue:
    """One thing of each kind, called so."""
    now = timezone.now()
    tenant = Tenant.objects.create(name="Zebra farm")
    Queue.objects.create(tenant=tenant, name="Zebra", topic="stripes.zebra", handler="log")
    queue = Queue.objects.create(tenant=ensure_system_tenant(), name="ZebraMain", topic="zebras", handler="log")
    Operation.objects.create(kind="x", summary="Count the zebras", total=1)
    told = {"metric": AlertMetric.OPEN_LETTERS, "severity": AlertSeverity.WARNING, "value": 2, "threshold": 1}
    Alert.objects.create(rule_name="Too many", subject_key="x", subject_name="zebra", since=now, fired_at=now, **told)
    error = {"exception_class": "zoo.ZebraError", "exception_message": "stripes", "fingerprint": "0123456789abcdef"}
    DeadLetterGroup.objects.create(queue=queue, first_seen=now, last_seen=now, **error)
    RequestCurrent.objects.create(service_id="core", request_topic="zebra.requests", as_of=now)
    announce("zebra-host")
    asked = {"queues": [{"name": "Main"}], "reason": "stripes", "requested_by_name": "zoe"}
    IsolationRequest.objects.create(tenant=tenant, **asked)
    moved = {"state": RebalanceState.DONE, "cause": "request", "created_at": now, "finished_at": now}
    Rebalance.objects.create(reason="a zebra left", **moved)
    TenantProfile.objects.create(name="zebra-sized")
    make_rule(name="Zebras wait")
    make_channel(name="zebra keepers")
    make_silence(queue, reason="zebras are fed")
    create_token(Actor("zoe", person("zoe", Role.OPERATOR)), "zebra counter", ["queues:read"], expires_at=None)
    return queue


def shown(browser: Client, text: str, **headers: str) -> str:
    return browser.get(reverse("search"), {"q": text}, headers=headers).content.decode()


def titles(page: str) -> list[str]:
    return re.findall(r'class="hit-title">([^<]*)', page)


def kinds(page: str) -> list[str]:
    return re.findall(r'<h2 id="found-\d+">([^<]*)', page)


def test_things_of_every_kind_are_found_and_are_where_it_says(browser, zebras) -> None:
    page = shown(browser, "zebra")
    expected = [kind.label for kind in KINDS if kind.label not in ("Groups", "Dead letters")]
    assert kinds(page) == expected
    hits = re.findall(r'<a href="([^"]*)" data-hit', page)
    assert len(hits) == len(titles(page)) == 16
    for hit in hits:
        assert resolve(urlsplit(hit).path).url_name
        assert browser.get(hit.replace("&amp;", "&")).status_code == 200, hit


def test_it_takes_few_queries_and_the_part_alone_where_htmx_asks(browser, zebras) -> None:
    with CaptureQueriesContext(connection) as queries:
        page = shown(browser, "zebra")
    assert len(queries) <= 15
    assert "<html" in page
    assert "16 things found" in page
    # What is counted in the frame is something else.
    assert page.partition("<main")[0].count('class="count"') == 2
    part = shown(browser, "zebra", HX_Request="true")
    assert "<html" not in part
    assert titles(part) == titles(page)


def test_what_is_called_so_comes_before_what_only_has_it_in_its_name(browser, zebras) -> None:
    assert titles(shown(browser, "zebra"))[:2] == ["Zebra", "ZebraMain"]
    assert titles(shown(browser, "ZEBRAMAIN"))[0] == "ZebraMain"


@pytest.mark.parametrize("text", ["zebras", "zebras.2", "zebras.dlq", f"zebras.isolated.{ISOLATED}.3"])
def test_a_queue_is_found_by_what_the_provider_calls_its_topic(browser, zebras, text) -> None:
    assert "ZebraMain" in titles(shown(browser, text))


@pytest.mark.parametrize("text", ["tb_rule_engine_zebramain-consumer-3", "zebramain-consumer", "re-ZebraMain-cons"])
def test_a_queue_is_found_by_its_group(browser, zebras, text) -> None:
    page = shown(browser, text)
    assert kinds(page) == ["Groups"]
    assert titles(page) == ["tb_rule_engine_zebramain-consumer"]
    assert reverse("queue_groups", args=[zebras.pk]) in page


def test_ids_and_fingerprints_are_found_by_how_they_begin(browser, zebras) -> None:
    assert titles(shown(browser, str(zebras.pk))) == ["ZebraMain"]
    assert "ZebraMain" in titles(shown(browser, str(zebras.pk)[:9]))
    assert titles(shown(browser, "0123456789")) == ["ZebraError"]
    assert id_range("0123") is None
    assert id_range("no id") is None
    assert id_range("ab-CDEF") == (UUID(f"abcdef{'0' * 26}"), UUID(f"abcdef{'f' * 26}"))


def test_where_there_are_more_the_list_has_them(browser, zebras) -> None:
    rows = [Queue(tenant=zebras.tenant, name=f"Lots{n}", topic=f"lots{n}", handler="log") for n in range(MOST + 1)]
    Queue.objects.bulk_create(rows)
    page = shown(browser, "lots")
    assert len(titles(page)) == MOST
    assert f'{reverse("queues")}?q=lots" data-hit>All of them in the list' in page


def test_of_operations_only_the_newest_are_looked_at(browser, monkeypatch) -> None:
    monkeypatch.setattr("queueapi.selectors.search._NEWEST", 2)
    for number in range(3):
        made = Operation.objects.create(kind="x", summary=f"Okapi {number}", total=1)
        Operation.objects.filter(pk=made.pk).update(created_at=timezone.now() - timedelta(hours=number))
    assert titles(shown(browser, "okapi")) == ["Okapi 0", "Okapi 1"]


@pytest.mark.parametrize("text", ["", "   ", "\0", "%", "_", "<script>", "no such thing", "a" * 5000])
def test_whatever_is_typed_is_answered(browser, zebras, text) -> None:
    page = shown(browser, text)
    assert titles(page) == []
    assert "<script>alert" not in page
    assert ("Nothing is called" in page) == bool(text)


def test_each_role_finds_what_it_may_read(zebras) -> None:
    operator = principal_of(person("olga", Role.OPERATOR))
    assert "Users" not in {one.label for one in found(operator, "zebra")}
    theirs = Tenant.objects.get(name="Zebra farm")
    viewer = principal_of(person("vera", Role.TENANT_VIEWER, theirs))
    seen = {one.label: [hit.title for hit in one.hits] for one in found(viewer, "zebra")}
    # Its own queue and the system's, what it asked for, and nothing of how the system is run.
    assert seen == {"Queues and topics": ["Zebra", "ZebraMain"], "Isolation requests": ["Main"]}
    other = principal_of(person("otto", Role.TENANT_ADMIN, Tenant.objects.create(name="Other")))
    assert [hit.title for one in found(other, "zebra") for hit in one.hits] == ["ZebraMain"]


def test_of_tokens_each_finds_those_that_they_are_shown(zebras) -> None:
    theirs = Tenant.objects.get(name="Zebra farm")
    admin, olga = person("vera", Role.TENANT_ADMIN, theirs), person("olga", Role.OPERATOR)
    create_token(Actor("vera", admin), "zebra of the farm", ["queues:read"], expires_at=None, tenant=theirs)

    def tokens_found(user: User) -> list[str]:
        return [hit.title for one in found(principal_of(user), "zebra") if one.label == "Tokens" for hit in one.hits]

    assert tokens_found(admin) == ["zebra of the farm"]
    assert tokens_found(olga) == []
    assert tokens_found(person("ada", Role.AUDITOR)) == ["zebra counter", "zebra of the farm"]


def test_a_token_is_found_by_its_beginning_alone(browser, zebras) -> None:
    maker = User.objects.get(username="zoe")
    token, secret = create_token(Actor("zoe", maker), "zebra feeder", ["queues:read"], expires_at=None)
    assert titles(shown(browser, token.prefix)) == ["zebra feeder"]
    assert titles(shown(browser, secret)) == ["zebra feeder"]
    assert titles(shown(browser, token.prefix[:8])) == []


def test_whatever_a_tenants_people_find_they_can_open(client: Client, zebras) -> None:
    theirs = Tenant.objects.get(name="Zebra farm")
    Operation.objects.create(kind="x", summary="Count our zebras", total=1, tenant=theirs)
    client.force_login(person("vera", Role.TENANT_ADMIN, theirs))
    page = shown(client, "zebra")
    assert kinds(page) == ["Queues and topics", "Isolation requests", "Operations"]
    assert titles(page)[-1] == "Count our zebras"
    for hit in re.findall(r'<a href="([^"]*)" data-hit', page):
        assert client.get(hit.replace("&amp;", "&")).status_code == 200, hit
    assert f'id="search-open" href="{reverse("search")}"' in page


def test_every_page_has_the_way_there(browser) -> None:
    page = browser.get(reverse("audit")).content.decode()
    assert f'id="search-open" href="{reverse("search")}"' in page
    assert 'role="search"' in page
