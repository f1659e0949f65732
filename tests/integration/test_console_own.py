"""What a tenant's people see in the console: their own, and nothing of others."""

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from console.own_pages import OWN
from console.urls import urlpatterns
from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.pauses import pause_queue
from queueapi.actions.replays import start_replay
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import LetterState, OperationState, Role
from queueapi.models import (
    ApiToken,
    AuditEntry,
    DeadLetter,
    LagCurrent,
    Operation,
    Pause,
    PipelineRun,
    PipelineStanding,
    Queue,
    Replay,
    Tenant,
    TenantUsageDay,
)
from queuecore.messages import OF_SENDERS
from tests.alerts import make_alert
from tests.letters import make_letter, make_letters
from tests.page_forms import confirm
from tests.people import person, token_of

pytestmark = pytest.mark.django_db

MOST_QUERIES = 15
LISTS = ("overview", "alerts", "queues", "dead_letters", "isolation_requests", "usage", "operations")
FOR_ADMINS = ("audit", "tokens", "create_token")
STAFFS = (
    *("pending_requests", "services", "partitions", "rebalances", "alert_rules", "alert_channels", "silences"),
    *("tenants", "tenant_profiles", "users", "export_queues"),
)


class World(NamedTuple):
    """Greenhouse and Foundry share Main, and have a queue and letters of their own each."""

    tenant: Tenant
    other: Tenant
    shared: Queue
    own: Queue
    others: Queue


@pytest.fixture
def world() -> World:
    tenant, other = create_tenant(SYSTEM, "Greenhouse"), create_tenant(SYSTEM, "Foundry")
    shared = _queue(ensure_system_tenant(), "Main")
    world = World(tenant, other, shared, _queue(tenant, "Beds"), _queue(other, "Ovens"))
    for queue, whose in ((shared, tenant), (world.own, tenant), (shared, other), (world.others, other)):
        make_letter(queue, tenant=whose, exception_message=f"{whose.name} is too hot")
        Operation.objects.create(kind="replay", summary=f"Replay for {whose.name}", total=1, tenant_id=whose.pk)
    for queue in (shared, world.others):
        make_alert(queue)
    pause_queue(Actor("ada"), shared, tenant=other, reason="Foundry floods it")
    return world


def _queue(tenant: Tenant, name: str) -> Queue:
    return Queue.objects.create(tenant=tenant, name=name, topic=name.lower(), handler="log")


def browser(world: World, role: Role = Role.TENANT_ADMIN) -> Client:
    client = Client()
    client.force_login(person("eve", role, world.tenant))
    return client


def browser_of(world: World, name: str) -> Client:
    client = Client()
    client.force_login(person(name, Role.TENANT_VIEWER, world.tenant))
    return client


def seen(client: Client, name: str, *args: Any, **query: Any) -> str:
    answer = client.get(reverse(name, args=args), query)
    assert answer.status_code == 200, name
    return answer.content.decode()


@pytest.mark.parametrize("role", [Role.TENANT_ADMIN, Role.TENANT_VIEWER])
def test_every_list_shows_their_own_and_nothing_of_others(world, role) -> None:
    client = browser(world, role)
    token_of(person("root", Role.ADMINISTRATOR), ["queues:read"])
    AuditEntry.objects.create(actor_name="ada", action="x", object_type="y", object_id="1", tenant_id=world.other.pk)
    TenantUsageDay.objects.create(tenant_id=world.other.pk, day=timezone.now().date(), sent=987_654)
    for name in (*LISTS, *(FOR_ADMINS if role == Role.TENANT_ADMIN else ())):
        page = seen(client, name)
        assert "Foundry" not in page, name
        assert "Ovens" not in page, name
        assert "987,654" not in page, name
        assert 'aria-label="Main"' in page, name


def test_the_home_page_tells_how_their_queues_do_and_what_waits(world) -> None:
    day = timezone.now().date()
    TenantUsageDay.objects.create(tenant_id=world.tenant.pk, day=day, sent=1234, handled=1200, stored_bytes=4096)
    home = seen(browser(world), "overview")
    assert "2 open dead letters wait" in home
    assert "1,234 <small>sent</small>" in home
    assert "Beds" in home
    assert "Main" in home
    assert "Nobody has asked yet" in home
    assert "Paused" not in home


def test_a_shared_queue_is_theirs_no_more_once_they_have_their_own(world) -> None:
    _queue(world.tenant, "main")
    page = seen(browser(world), "queues")
    assert page.count(">our own<") == 2
    assert "shared</span>" not in page


def test_navigation_offers_what_the_role_may_see(world) -> None:
    admins, viewers = seen(browser(world), "overview"), seen(browser_of(world, "ned"), "overview")
    offered = {name: f'href="{reverse(name)}"' for name in ("audit", "tokens", "isolation_requests", *STAFFS)}
    assert [name for name, link in offered.items() if link in admins] == ["audit", "tokens", "isolation_requests"]
    assert [name for name, link in offered.items() if link in viewers] == ["isolation_requests"]


@pytest.mark.parametrize("role", [Role.TENANT_ADMIN, Role.TENANT_VIEWER])
def test_pages_of_those_who_run_the_system_are_closed(world, role) -> None:
    client = browser(world, role)
    for name in STAFFS:
        answer = client.get(reverse(name))
        assert answer.status_code == 403, name
        assert "That page is not your tenant" in answer.content.decode()
    for name in ("queue_messages", "queue_groups", "queue_configuration"):
        assert client.get(reverse(name, args=[world.own.pk])).status_code == 403


def test_every_page_is_for_them_or_closed() -> None:
    """A page that is new is closed to them until somebody has thought of whose things it shows."""
    assert OWN.keys() <= {pattern.name for pattern in urlpatterns if hasattr(pattern, "name")}


@pytest.mark.parametrize("role", [Role.TENANT_ADMIN, Role.TENANT_VIEWER])
def test_what_is_anothers_is_not_there(world, role) -> None:
    client = browser(world, role)
    letter = DeadLetter.objects.filter(tenant=world.other).first()
    operation = Operation.objects.filter(tenant_id=world.other.pk).first()
    assert letter is not None
    assert operation is not None
    addresses = [
        reverse("queue", args=[world.others.pk]),
        reverse("queue_charts", args=[world.others.pk]),
        reverse("dead_letter", args=[letter.pk]),
        reverse("letter_payload", args=[letter.pk]),
        reverse("operation", args=[operation.pk]),
    ]
    assert [client.get(address).status_code for address in addresses] == [404] * len(addresses)


def test_nothing_of_another_is_changed_nor_what_all_share(world) -> None:
    client = browser(world)
    letter = DeadLetter.objects.filter(tenant=world.other).first()
    operation = Operation.objects.filter(tenant_id=world.other.pk).first()
    pause = Pause.objects.get()
    token, _ = token_of(person("root", Role.ADMINISTRATOR), ["queues:read"])
    assert letter is not None
    assert operation is not None
    refused = [
        ("pause_queue", [world.others.pk], {"reason": "x"}),
        ("pause_queue", [world.shared.pk], {"reason": "x"}),
        ("resume_queue", [world.shared.pk, pause.pk], {}),
        ("note_letter", [letter.pk], {"note": "x"}),
        ("cancel_operation", [operation.pk], {}),
        ("revoke_token", [token.pk], {}),
    ]
    for name, args, data in refused:
        assert client.post(reverse(name, args=args), data).status_code == 404, name
    for name in ("replay_letters", "discard_letters"):
        for chosen in ({"letter": str(letter.pk)}, {"group": str(letter.group_id)}):
            client.post(reverse(name), {**chosen, "confirm": "yes", "reason": "x"})
    letter.refresh_from_db()
    operation.refresh_from_db()
    assert (letter.state, letter.note, operation.state) == (LetterState.OPEN, "", OperationState.PENDING)
    assert list(Pause.objects.all()) == [pause]


def test_a_group_of_a_shared_queue_is_discarded_as_far_as_it_is_theirs(world) -> None:
    group = DeadLetter.objects.get(tenant=world.tenant, queue=world.shared).group_id
    answer = browser(world).post(
        reverse("discard_letters"), {"group": str(group), "confirm": "yes", "reason": "known"}, follow=True
    )
    assert "1 letter was discarded" in answer.content.decode()
    states = dict(DeadLetter.objects.filter(queue=world.shared).values_list("tenant__name", "state"))
    assert states == {"Greenhouse": LetterState.DISCARDED, "Foundry": LetterState.OPEN}


def test_their_administrators_pause_their_own_queue_and_viewers_are_told_why_not(world) -> None:
    client = browser(world)
    page = seen(client, "queue", world.own.pk)
    assert "of your own" in page
    refused = client.post(reverse("pause_queue", args=[world.own.pk]), {"what": "0", "reason": ""})
    assert "This field is required" in refused.content.decode()
    typed = {"what": "", "reason": "tests"}
    plan = client.post(reverse("pause_queue", args=[world.own.pk]), typed)
    assert "1 queue would be paused" in plan.content.decode()
    assert not world.own.pauses.exists()
    assert client.post(reverse("pause_queue", args=[world.own.pk]), {**typed, "confirm": "yes"}).status_code == 302
    pause = world.own.pauses.get()
    assert "tests" in seen(client, "queue", world.own.pk)
    resume = reverse("resume_queue", args=[world.own.pk, pause.pk])
    assert "1 queue would be resumed" in client.post(resume).content.decode()
    assert client.post(resume, {"confirm": "yes"}).status_code == 302
    assert not world.own.pauses.exists()
    assert "data-selection" in client.get(reverse("dead_letters")).content.decode()
    viewers = browser_of(world, "ned")
    assert "data-selection" not in viewers.get(reverse("dead_letters")).content.decode()
    assert "which may not operate queues" in seen(viewers, "queue", world.own.pk)
    assert viewers.post(reverse("pause_queue", args=[world.own.pk]), {"reason": "x"}).status_code == 403


def test_a_shared_queue_shows_neither_services_nor_others(world) -> None:
    now = timezone.now()
    LagCurrent.objects.create(
        queue=world.shared, partition=0, topic="main.0", consumer_group="g", end_offset=9, committed_offset=4,
        lag_messages=5, as_of=now, status="ok", reason="OK: keeps up", status_since=now - timedelta(hours=1),
    )  # fmt: skip
    page = seen(browser(world), "queue", world.shared.pk)
    assert "shared with others" in page
    assert "Foundry" not in page
    assert "Owner" not in page
    assert 'id="pauses"' not in page
    charts = browser_of(world, "charts").get(reverse("queue_charts", args=[world.shared.pk]))
    assert charts.status_code == 200


def test_a_letter_is_looked_at_noted_and_decided_on(world) -> None:
    letter, client = DeadLetter.objects.get(tenant=world.tenant, queue=world.own), browser(world)
    page = seen(client, "dead_letter", letter.pk)
    assert "Greenhouse is too hot" in page
    assert "temperature" in page
    plan = client.post(reverse("replay_letters"), {"letter": str(letter.pk)}).content.decode()
    assert "1 message will be sent again" in plan
    assert client.get(reverse("letter_payload", args=[letter.pk])).content == b'{"temperature": 21.5}'
    client.post(reverse("note_letter", args=[letter.pk]), {"note": "a sensor"})
    client.post(reverse("discard_letters"), {"letter": str(letter.pk), "confirm": "yes", "reason": "known"})
    page = seen(client, "dead_letter", letter.pk)
    assert "a sensor" in page
    assert "Restore…" in page
    viewers = browser_of(world, "ned")
    assert "which may not operate dead letters" in seen(viewers, "dead_letter", letter.pk)
    assert viewers.post(reverse("replay_letters"), {"letter": str(letter.pk)}).status_code == 403


def test_their_letters_tell_the_exact_time_to_who_cannot_point_at_its_age(world) -> None:
    DeadLetter.objects.update(failed_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    shown = re.sub(r"<[^>]+>", " ", seen(browser(world), "dead_letters"))
    assert "2026-01-02 03:04:05 UTC" in shown


def test_a_letter_names_no_service_of_the_system(world) -> None:
    told = {**dict.fromkeys(OF_SENDERS, b"core-1"), "unit": b"Celsius"}
    headers = {name: base64.b64encode(value).decode() for name, value in told.items()}
    letter = make_letter(world.own, tenant=world.tenant, headers=headers, service="rule-engine-1")
    page = seen(browser(world), "dead_letter", letter.pk)
    assert "Celsius" in page
    assert "core-1" not in page
    assert "rule-engine-1" not in page


def test_tokens_are_made_for_their_own_tenant_alone(world) -> None:
    client = browser(world)
    asked = {"name": "feed", "lasts": "7 days", "role": "tenant_viewer", "what": "read"}
    assert client.post(reverse("create_token"), {**asked, "tenant": str(world.other.pk)}).status_code == 200
    assert not ApiToken.objects.exists()
    assert "never shown again" in client.post(reverse("create_token"), asked).content.decode()
    token = ApiToken.objects.get()
    assert (token.tenant, token.role) == (world.tenant, Role.TENANT_VIEWER)
    assert "feed" in seen(client, "tokens")


def test_audit_tells_their_administrators_what_was_done_and_not_from_where(world) -> None:
    AuditEntry.objects.create(
        actor_name="ada", action="suspend", object_type="tenant", object_id="1", tenant_id=world.tenant.pk,
        address="10.1.2.3",
    )  # fmt: skip
    page = seen(browser(world), "audit")
    assert "suspend" in page
    assert "10.1.2.3" not in page
    assert browser_of(world, "ned").get(reverse("audit")).status_code == 403


def test_their_replay_leads_to_their_letters_of_it(world) -> None:
    mine, theirs = (make_letter(world.shared, tenant=one) for one in (world.tenant, world.other))
    client = browser(world)
    confirm(client, reverse("replay_letters"), {"letter": str(mine.pk)})
    replay = Replay.objects.get()
    Replay.objects.update(sent=1)
    asked = f"?replay={replay.pk}&state=replaying"
    page = seen(client, "operation", replay.operation_id)
    assert f'href="{reverse("dead_letters")}{asked}"'.replace("&", "&amp;") in page
    listed = client.get(reverse("dead_letters") + asked)
    assert [row.pk for row in listed.context["page"].object_list] == [mine.pk]
    assert reverse("operation", args=[replay.operation_id]) in listed.content.decode()
    of_others = start_replay(SYSTEM, [theirs.pk])
    page = seen(client, "dead_letters", replay=of_others.pk)
    assert "No dead letters match" in page
    assert str(of_others.operation_id) not in page


def test_the_audit_tells_nothing_of_by_which_token_an_operator_came(world) -> None:
    token, _ = token_of(person("ada", Role.OPERATOR), ["tenants:write"])
    AuditEntry.objects.create(
        actor_name="ada", action="suspend", object_type="tenant", object_id="1", tenant_id=world.tenant.pk, token=token
    )
    page = seen(browser(world), "audit")
    assert "suspend" in page
    assert "by token" not in page
    assert token.prefix not in page
    root = Client()
    root.force_login(person("root", Role.ADMINISTRATOR))
    assert token.prefix in seen(root, "audit")


def test_which_names_others_have_does_not_change_what_the_audit_finds(world) -> None:
    told = {"object_type": "queue", "object_id": "1"}
    AuditEntry.objects.create(**told, actor_name="ada.lovelace", action="pause", tenant_id=world.tenant.pk)
    client = browser(world)
    before = [_found(client, actor="ada"), _found(client, action="pau"), _found(client, target="queu")]
    for whose in (world.other.pk, None):
        AuditEntry.objects.create(actor_name="ada", action="pau", object_type="queu", object_id="1", tenant_id=whose)
    assert [_found(client, actor="ada"), _found(client, action="pau"), _found(client, target="queu")] == before
    assert before == [(["pause"], None)] * 3


def test_their_older_entries_are_found_however_much_others_do(world, monkeypatch) -> None:
    monkeypatch.setattr("console.audit_filters.SEARCHED", 3)
    monkeypatch.setattr("console.views.audit.SEARCHED", 3)
    told = {"actor_name": "ada", "object_type": "queue", "object_id": "1"}
    # With that by which the tenant was made, these are three.
    for action in ("create", "change"):
        AuditEntry.objects.create(**told, action=action, tenant_id=world.tenant.pk)
    for _ in range(3):
        AuditEntry.objects.create(**told, action="delete", tenant_id=world.other.pk)
    client = browser(world)
    assert _found(client, actor="ad") == (["change", "create"], None)
    AuditEntry.objects.create(**told, action="pause", tenant_id=world.tenant.pk)
    assert _found(client, actor="ad") == (["pause", "change", "create"], 3)


def _found(client: Client, **asked: str) -> tuple[list[str], int | None]:
    """Of which actions there are entries, and among how many was searched, if not among all."""
    context = client.get(reverse("audit"), asked).context
    return [row.entry.action for row in context["page"].object_list], context["searched"]


def test_the_audit_names_what_is_theirs_and_nothing_else(world) -> None:
    for queue in (world.own, world.others):
        AuditEntry.objects.create(
            actor_name="ada", action="change", object_type="queue", object_id=str(queue.pk), tenant_id=world.tenant.pk
        )
    page = seen(browser(world), "audit")
    assert f'title="{world.own.pk}">Beds<' in page
    assert "Ovens" not in page


def test_that_figures_are_old_is_told_without_what_runs_here(world) -> None:
    before = timezone.now() - timedelta(hours=1)
    times = {"newest_event_at": before, "started_at": before, "finished_at": before}
    PipelineRun.objects.create(query="events", batch_id=1, events=1, **times)
    PipelineStanding.objects.update_or_create(
        pk=1, defaults={"ran_at": before, "error": "spark-3 refused the connection"}
    )
    client = browser(world)
    alert = make_alert(world.own)
    for page in (
        *(seen(client, name) for name in ("queues", "usage", "alerts")),
        seen(client, "queue", world.own.pk),
        seen(client, "alert", alert.pk),
    ):
        assert "Figures are 1 h old." in page
        assert "spark-3" not in page
        assert reverse("pipeline") not in page


def test_what_an_operation_of_an_isolation_waits_for_is_not_told(world) -> None:
    operation = Operation.objects.create(
        kind="isolate_tenant", summary="Isolate", total=5, tenant_id=world.tenant.pk, lease_owner="worker-7",
        state=OperationState.RUNNING,
    )  # fmt: skip
    operation.log.create(text="waits until broker-9 has told")
    page = seen(browser(world), "operation", operation.pk)
    assert "worker-7" not in page
    assert "broker-9" not in page


@pytest.mark.parametrize("name", [*LISTS, *FOR_ADMINS])
def test_pages_ask_as_often_for_many_rows_as_for_few(world, django_assert_max_num_queries, name) -> None:
    client, asked = browser(world), []
    for _ in range(2):
        with django_assert_max_num_queries(MOST_QUERIES) as queries:
            seen(client, name)
        asked.append(len(queries))
        if len(asked) == 2:
            break
        make_letters(world.own, 5, tenant=world.tenant)
        for number in range(5):
            _queue(world.tenant, f"Queue {number}")
            Operation.objects.create(kind="replay", summary="more", total=1, tenant_id=world.tenant.pk)
            TenantUsageDay.objects.create(
                tenant_id=world.tenant.pk, day=timezone.now().date() - timedelta(days=number), sent=1
            )
            token_of(person(f"p{number}", Role.TENANT_ADMIN, world.tenant), ["queues:read"])
    assert asked[0] == asked[1]


def test_a_queues_and_a_letters_page_ask_a_bounded_number_of_times(world, django_assert_max_num_queries) -> None:
    client, letter = browser(world), DeadLetter.objects.get(tenant=world.tenant, queue=world.own)
    for name, args in (("queue", [world.own.pk]), ("queue", [world.shared.pk]), ("dead_letter", [letter.pk])):
        with django_assert_max_num_queries(MOST_QUERIES):
            seen(client, name, *args)
