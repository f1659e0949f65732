"""The pages of isolation requests: asking with a preview, deciding by the plan, following, returning."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.isolation import approve_request, comment_on_request, request_isolation
from queueapi.actions.tenant_profiles import create_profile
from queueapi.actions.tenants import change_tenant, create_tenant
from queueapi.choices import IsolationState, OperationState, Role
from queueapi.models import IsolationRequest, Operation, Queue, Tenant
from tests.integration.conftest import Installation
from tests.integration.queue_kit import run_until_final
from tests.page_forms import fields_of
from tests.people import person

MOST_QUERIES = 15
HOSTILE = "<script>alert(1)</script>"
ASKED = [{"name": "Telemetry", "partitions": 2}]


@pytest.fixture
def eve(installation: Installation) -> User:
    return person("eve", Role.TENANT_ADMIN, installation.tenant)


@pytest.fixture
def ada() -> User:
    return person("ada", Role.ADMINISTRATOR)


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def asked_by(user: User, tenant: Tenant, **options: Any) -> IsolationRequest:
    actor = Actor(user.get_username(), user)
    return request_isolation(actor, tenant, options.get("queues", ASKED), options.get("reason", "bursts"))


def seen(client: Client, name: str, *args: Any, **query: Any) -> str:
    answer = client.get(reverse(name, args=args), query)
    assert answer.status_code == 200
    return answer.content.decode()


def typed(queue: Queue, **fields: Any) -> dict[str, Any]:
    """What a browser sends of a queue that is chosen."""
    return {f"queue-{queue.pk}-{name}": value for name, value in {"chosen": "on", **fields}.items()}


def fail_operation(operation: Operation) -> None:
    operation.state, operation.finished_at = OperationState.FAILED, timezone.now()
    operation.save(update_fields=["state", "finished_at"])


def button(page: str, name: str) -> str:
    """The button of that id, with what it says."""
    begin = page.index(f'<button id="{name}"')
    return page[begin : page.index("</button>", begin)]


def test_a_tenants_administrator_asks_with_a_preview_and_sees_what_becomes_of_it(installation, eve, ada) -> None:
    tenants, admins = browser(eve), browser(ada)
    form = seen(tenants, "request_isolation", installation.tenant.pk)
    assert "Telemetry" in form
    assert "What its profile allows" in form
    chosen = typed(installation.queue, partitions="2", retention_h="24")
    preview = tenants.post(reverse("preview_isolation", args=[installation.tenant.pk]), chosen).content.decode()
    assert f"telemetry.isolated.{installation.tenant.pk}.1" in preview
    assert "An administrator decides on it" in preview
    assert not IsolationRequest.objects.exists()
    assert not Queue.objects.filter(tenant=installation.tenant).exists()
    made = tenants.post(reverse("request_isolation", args=[installation.tenant.pk]), {**chosen, "reason": "bursts"})
    found = IsolationRequest.objects.get()
    assert made.url == reverse("isolation_request", args=[found.pk])
    assert found.queues == [{"name": "Telemetry", "partitions": 2, "retention_ms": 86_400_000}]
    # From the overview: one click to the plan, one to approve.
    overview = seen(admins, "overview")
    assert reverse("isolation_request", args=[found.pk]) in overview
    assert '1<span class="unseen"> to decide' in overview
    decision = seen(admins, "isolation_decision", found.pk)
    assert f"telemetry.isolated.{installation.tenant.pk}.1" in decision
    assert "disabled" not in button(decision, "approve")
    admins.post(reverse("approve_isolation", args=[found.pk]), {"version": found.version, "comment": "fine"})
    found.refresh_from_db()
    assert (found.state, found.decided_by, found.decision) == (IsolationState.APPROVED, ada, "fine")
    assert "a worker, to begin" in seen(tenants, "isolation_request", found.pk)
    run_until_final(found.operation)
    page = seen(tenants, "isolation_request", found.pk)
    assert "Its own queues are consumed" in page
    assert "Administrators can let it return" in page
    own = Queue.objects.get(tenant=installation.tenant)
    assert (own.partitions, own.retention_ms) == (2, 86_400_000)
    assert reverse("queue", args=[own.pk]) in page


def test_a_refused_form_keeps_what_was_typed_and_says_what_is_allowed(installation, eve) -> None:
    small = create_profile(SYSTEM, name="small", max_partitions_per_queue=4, submit_strategies=["BURST"])
    change_tenant(SYSTEM, installation.tenant, profile=small)
    client, address = browser(eve), reverse("request_isolation", args=[installation.tenant.pk])
    assert "SEQUENTIAL_BY_TENANT" not in seen(client, "request_isolation", installation.tenant.pk)
    typed_in = {**typed(installation.queue, partitions="12"), "reason": "bursts in May"}
    refused = client.post(address, typed_in).content.decode()
    assert "use at most 4; 12 were asked for" in refused
    assert 'value="12"' in refused
    assert 'value="bursts in May"' in refused
    assert "use at most 4" in client.post(f"{address}preview/", typed_in).content.decode()
    assert "Choose at least one queue" in client.post(address, {"reason": "x"}).content.decode()
    wrong = client.post(address, {**typed(installation.queue, partitions="many"), "reason": "x"}).content.decode()
    assert "Enter a whole number" in wrong
    assert not IsolationRequest.objects.exists()


def test_strategies_are_drawn_as_they_are_chosen(installation, eve) -> None:
    client, queue = browser(eve), installation.queue
    Queue.objects.filter(pk=queue.pk).update(submit_strategy="SEQUENTIAL", processing_strategy="RETRY_ALL")
    address = reverse("request_isolation", args=[installation.tenant.pk])
    page = client.get(address).content.decode()
    assert "SEQUENTIAL and RETRY_ALL" in page
    follow = unescape(re.search(r'hx-get="(/queues/[^"]+)"', page)[1])
    chosen = {f"queue-{queue.pk}-submit_strategy": "BATCH", f"queue-{queue.pk}-processing_strategy": ""}
    assert "BATCH and RETRY_ALL" in client.get(f"{follow}&{urlencode(chosen)}").content.decode()
    refused = client.post(address, {**typed(queue, submit_strategy="BURST"), "reason": ""}).content.decode()
    assert "BURST and RETRY_ALL" in refused


def test_the_form_asks_as_often_for_many_queues_as_for_one(installation, eve, django_assert_max_num_queries) -> None:
    client, asked = browser(eve), []
    for name in ("Readings", "Alarms"):
        with django_assert_max_num_queries(MOST_QUERIES) as queries:
            assert seen(client, "request_isolation", installation.tenant.pk).count("<figure") == len(asked) + 1
        asked.append(len(queries))
        Queue.objects.create(tenant=installation.queue.tenant, name=name, topic=name.lower(), handler="log")
    assert asked[0] == asked[1]


def test_queues_that_are_not_chosen_are_not_sent(installation, eve) -> None:
    """Of two hundred queues all options are more fields than are read; scripts turn those off that nobody chose."""
    for number in range(200):
        name = f"Shared{number}"
        Queue.objects.create(tenant=installation.queue.tenant, name=name, topic=name.lower(), handler="log")
    client, address = browser(eve), reverse("request_isolation", args=[installation.tenant.pk])
    page = client.get(address).content.decode()
    for box in re.findall(r'data-while="#([^"]+)"', page):
        assert f'type="checkbox" name="{box.removeprefix("id_")}"' in page
    assert page.count("data-while=") == 201
    every = fields_of(page, "asked-queue")
    assert len(every) > 1000
    chosen = typed(installation.queue, partitions="2")
    # With scripts, and without.
    for sent in (chosen, {**every, **chosen}):
        made = client.post(address, {**sent, "reason": "bursts"})
        assert made.status_code == 302, made.content.decode()
        [asked] = IsolationRequest.objects.all()
        assert [queue["name"] for queue in asked.queues] == ["Telemetry"]
        asked.delete()


def test_nobody_approves_their_own_and_the_button_says_so(installation, ada) -> None:
    found, client = asked_by(ada, installation.tenant), browser(ada)
    decision = seen(client, "isolation_decision", found.pk)
    assert "disabled" in button(decision, "approve")
    assert "You have asked for it yourself" in decision
    answer = client.post(reverse("approve_isolation", args=[found.pk]), {"version": found.version, "comment": "me"})
    assert "nobody approves what they have asked for themselves" in answer.content.decode()
    assert 'value="me"' in answer.content.decode()
    found.refresh_from_db()
    assert found.state == IsolationState.REQUESTED


def test_who_decides_on_what_has_changed_since_looks_again(installation, eve, ada) -> None:
    found, client = asked_by(eve, installation.tenant), browser(ada)
    version = found.version
    comment_on_request(Actor("eve", eve), found, "make that 4")
    answer = client.post(reverse("approve_isolation", args=[found.pk]), {"version": version})
    assert "look again, then decide" in answer.content.decode()
    found.refresh_from_db()
    assert found.state == IsolationState.REQUESTED


def test_refusing_needs_a_reason_which_whoever_asked_reads(installation, eve, ada) -> None:
    found, client = asked_by(eve, installation.tenant), browser(ada)
    address = reverse("refuse_isolation", args=[found.pk])
    assert "This field is required" in client.post(address, {"comment": ""}).content.decode()
    assert client.post(address, {"comment": "4 are enough"}).status_code == 302
    page = seen(browser(eve), "isolation_request", found.pk)
    assert "4 are enough" in page
    assert "Ask anew" in page


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("approve_isolation", {"version": "0"}),
        ("refuse_isolation", {"comment": ""}),
        ("comment_isolation", {"text": ""}),
    ],
)
def test_a_page_that_shows_what_was_refused_keeps_itself_up_to_date(installation, eve, ada, name, sent) -> None:
    """By the request's own address: that which refused only takes what is sent to it."""
    found, client = asked_by(eve, installation.tenant), browser(ada)
    page = client.post(reverse(name, args=[found.pk]), sent).content.decode()
    [address] = re.findall(r'id="live" data-live hx-get="([^"]+)"', page)
    assert client.get(unescape(address), headers={"HX-Request": "true"}).status_code == 200


def test_who_asked_changes_comments_and_withdraws(installation, eve, ada) -> None:
    queues = [{"name": "Telemetry", "partitions": 2, "delivery": "at_most_once", "retention_ms": -1}]
    found, client = asked_by(eve, installation.tenant, queues=queues), browser(eve)
    form = seen(client, "change_isolation", found.pk)
    assert 'value="2"' in form
    client.post(
        reverse("change_isolation", args=[found.pk]), {**typed(installation.queue, partitions="3"), "reason": "x"}
    )
    found.refresh_from_db()
    # What the form does not offer stays as it was asked for.
    assert found.queues == [{"name": "Telemetry", "delivery": "at_most_once", "retention_ms": -1, "partitions": 3}]
    client.post(reverse("comment_isolation", args=[found.pk]), {"text": HOSTILE})
    page = seen(browser(ada), "isolation_request", found.pk)
    assert "&lt;script&gt;" in page
    assert HOSTILE not in page
    browser(ada).post(reverse("withdraw_isolation", args=[found.pk]))
    found.refresh_from_db()
    assert found.state == IsolationState.REQUESTED
    assert "Nobody decides on Telemetry any more" in seen(client, "withdraw_isolation", found.pk)
    client.post(reverse("withdraw_isolation", args=[found.pk]))
    found.refresh_from_db()
    assert found.state == IsolationState.REFUSED


def test_who_asks_while_one_is_open_is_led_to_that(installation, eve) -> None:
    found = asked_by(eve, installation.tenant)
    answer = browser(eve).get(reverse("request_isolation", args=[installation.tenant.pk]))
    assert answer.url == reverse("isolation_request", args=[found.pk])


def test_a_return_shows_its_plan_and_what_failed_is_tried_again(installation, eve, ada) -> None:
    found, client = asked_by(eve, installation.tenant), browser(ada)
    address = reverse("retire_isolation", args=[found.pk])
    assert "only one that is active can be" in seen(client, "retire_isolation", found.pk)
    approve_request(Actor("ada", ada), found)
    run_until_final(IsolationRequest.objects.get().operation)
    assert "Telemetry: removed when empty" in seen(client, "retire_isolation", found.pk)
    assert client.post(address, {}).status_code == 302
    found.refresh_from_db()
    assert found.state == IsolationState.RETIRING
    IsolationRequest.objects.update(state=IsolationState.FAILED, error="broker-7 is down")
    fail_operation(found.operation)
    assert "roker-7 is down" in seen(client, "isolation_request", found.pk)
    told = seen(browser(eve), "isolation_request", found.pk)
    assert "roker-7" not in told
    assert "administrators see why" in told
    assert "It goes on from where it was" in seen(client, "retry_isolation", found.pk)
    assert client.post(reverse("retry_isolation", args=[found.pk])).status_code == 302
    found.refresh_from_db()
    assert found.state == IsolationState.RETIRING


def test_the_page_is_loaded_again_when_the_state_is_another(installation, eve) -> None:
    found, client = asked_by(eve, installation.tenant), browser(eve)
    address, headers = reverse("isolation_request", args=[found.pk]), {"HX-Request": "true"}
    same = client.get(address, {"state": "requested"}, headers=headers)
    assert "HX-Refresh" not in same
    assert "<html" not in same.content.decode()
    assert client.get(address, {"state": "approved"}, headers=headers)["HX-Refresh"] == "true"


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR, Role.TENANT_VIEWER, Role.TENANT_ADMIN])
def test_only_administrators_decide(installation, ada, role) -> None:
    found = asked_by(ada, installation.tenant)
    client = browser(person("pat", role, installation.tenant if role.is_of_tenant else None))
    assert "Administrators decide on it" in seen(client, "isolation_decision", found.pk)
    for name in ("approve_isolation", "refuse_isolation", "retry_isolation", "retire_isolation"):
        assert client.post(reverse(name, args=[found.pk]), {"comment": "x"}).status_code == 403
    found.refresh_from_db()
    assert found.state == IsolationState.REQUESTED


def test_of_others_requests_a_tenants_people_know_nothing(installation, eve, ada) -> None:
    other = create_tenant(SYSTEM, "Foundry")
    found = asked_by(ada, other, reason="secret bursts")
    client = browser(eve)
    page = seen(client, "isolation_requests")
    assert "Foundry" not in page
    assert "Nobody has asked" in page
    reads = ("isolation_request", "isolation_decision", "change_isolation")
    assert [client.get(reverse(name, args=[found.pk])).status_code for name in reads] == [404] * 3
    writes = ("change_isolation", "comment_isolation", "withdraw_isolation")
    assert [client.post(reverse(name, args=[found.pk])).status_code for name in writes] == [404] * 3
    assert client.get(reverse("request_isolation", args=[other.pk])).status_code == 404
    assert client.post(reverse("preview_isolation", args=[other.pk])).status_code == 404


def test_the_list_is_narrowed_by_state_tenant_and_text(installation, ada) -> None:
    other = create_tenant(SYSTEM, "Foundry")
    asked_by(ada, installation.tenant)
    asked_by(ada, other, reason="night shift")
    client = browser(ada)
    assert "night shift" in seen(client, "isolation_requests")
    assert "night shift" not in seen(client, "isolation_requests", tenant=installation.tenant.pk)
    assert "bursts" not in seen(client, "isolation_requests", q="night")
    assert "Nothing matches" in seen(client, "isolation_requests", state="active")


def test_pages_ask_as_often_for_many_rows_as_for_few(installation, ada, django_assert_max_num_queries) -> None:
    client, asked = browser(ada), []
    for number in range(12):
        found = asked_by(ada, create_tenant(SYSTEM, f"Tenant {number}"))
        if number in (0, 11):
            for name, args in (("isolation_requests", ()), ("isolation_request", (found.pk,)), ("overview", ())):
                with django_assert_max_num_queries(MOST_QUERIES) as queries:
                    seen(client, name, *args)
                asked.append(len(queries))
    assert asked[:3] == asked[3:]
