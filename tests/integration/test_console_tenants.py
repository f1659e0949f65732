"""The pages of tenants and their profiles."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from console.templatetags.console import NOTHING
from console.tenant_forms import ProfileForm, TenantForm
from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.tenant_profiles import change_profile, create_profile
from queueapi.actions.tenant_states import suspend_tenant
from queueapi.actions.tenants import change_tenant, create_tenant, ensure_system_tenant
from queueapi.choices import TenantState
from queueapi.models import (
    DEFAULT_PROFILE,
    AuditEntry,
    IsolationRequest,
    LagCurrent,
    Queue,
    Tenant,
    TenantProfile,
    TenantUsageDay,
)
from queueapi.runtime import close_provider
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.submit.strategies import SubmitStrategyType
from tests.alerts import make_alert
from tests.letters import make_letter
from tests.page_forms import confirm, fields_of

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>"
MOST_QUERIES = 13
MOST_QUERIES_OF_A_TENANT = 15


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password="secret"))
    return client


@pytest.fixture
def tenant() -> Tenant:
    return create_tenant(Actor("ada"), "Acme", description="Contract 1")


@pytest.fixture
def small() -> TenantProfile:
    return create_profile(SYSTEM, name="small", messages_per_s=1500, burst_s=3, stored_bytes=2 * 1024**2)


@pytest.fixture
def messages_of_its_own(tmp_path: Path, settings) -> Iterator[None]:
    settings.SWITCHYARD = replace(settings.SWITCHYARD, data_dir=tmp_path)
    close_provider()
    yield
    close_provider()


def page(browser: Client, name: str, *args: Any, **query: Any) -> str:
    answer = browser.get(reverse(name, args=args), query)
    assert answer.status_code == 200
    return answer.content.decode()


def filled_in(row: Any, **changes: Any) -> dict[str, Any]:
    """What a browser sends of a form that was filled in so."""
    form = (TenantForm if isinstance(row, Tenant) else ProfileForm)(instance=row)
    shown = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in {**shown, **changes}.items() if value not in (None, False)}


# Lists


def test_tenants_are_listed_with_what_holds_for_them(browser, tenant, small) -> None:
    change_tenant(SYSTEM, tenant, profile=small)
    Queue.objects.create(tenant=tenant, name="Own", topic="own", handler="log")
    shown = page(browser, "tenants")
    for text in ("Acme", "1,500/s", "small", "Active", "no limit"):
        assert text in shown
    assert reverse("tenant", args=[tenant.pk]) in shown


def test_tenants_are_narrowed_down(browser, tenant, small) -> None:
    create_tenant(SYSTEM, "Bolt", profile=small)
    suspend_tenant(SYSTEM, tenant, "unpaid")
    for query, there, gone in (
        ({"q": "CONTRACT"}, "Acme", "Bolt"),
        ({"profile": str(small.pk)}, "Bolt", "Acme"),
        ({"state": "suspended"}, "Acme", "Bolt"),
    ):
        rows = page(browser, "tenants", **query).partition("<tbody>")[2]
        assert there in rows
        assert gone not in rows
    assert "No tenants match these filters" in page(browser, "tenants", q="nobody")


def test_no_tenants_yet(browser) -> None:
    Tenant.objects.all().delete()
    assert "No tenants yet" in page(browser, "tenants")


def test_a_profile_draws_the_strategies_that_it_may_allow(browser, small) -> None:
    form = page(browser, "change_tenant_profile", small.pk)
    assert form.count("<figure") == len(SubmitStrategyType) + len(ProcessingStrategyType)
    assert "this queue" not in form


def test_profiles_are_listed_with_how_many_have_them(browser, tenant, small) -> None:
    shown = page(browser, "tenant_profiles")
    assert "default" in shown
    assert "small" in shown
    assert f"{reverse('tenants')}?profile={DEFAULT_PROFILE}" in shown
    assert "small" not in page(browser, "tenant_profiles", q="def").partition("<tbody>")[2]


@pytest.mark.parametrize("name", ["tenants", "tenant_profiles"])
def test_lists_ask_the_database_as_often_for_many_rows_as_for_few(browser, django_assert_max_num_queries, name) -> None:
    asked = []
    for rows in (2, 20):
        for _ in range(rows):
            Tenant.objects.create(name=f"t {uuid4()}", profile=TenantProfile.objects.create(name=f"p {uuid4()}"))
        with django_assert_max_num_queries(MOST_QUERIES) as queries:
            page(browser, name, size="100")
        asked.append(len(queries))
    assert asked[0] == asked[1]


# One tenant


def test_a_tenants_page_says_where_each_quota_comes_from(browser, tenant, small, django_assert_max_num_queries) -> None:
    change_tenant(SYSTEM, tenant, profile=small, messages_per_s=7)
    Queue.objects.create(tenant=tenant, name="Own", topic="own", handler="log")
    with django_assert_max_num_queries(MOST_QUERIES_OF_A_TENANT):
        shown = page(browser, "tenant", tenant.pk)
    for text in (
        "7/s",
        "its own",
        "(profile: 1,500/s)",
        "2 MiB",
        "its profile",
        "Own",
        "Contract 1",
        "ada",
        "create",
    ):
        assert text in shown
    assert "0 messages (0 B); refused: 0" in shown


def test_a_tenants_page_joins_all_that_is_its(browser, tenant, django_assert_max_num_queries) -> None:
    own = Queue.objects.create(tenant=tenant, name="Own", topic="own", handler="log")
    shared = Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log")
    others = create_tenant(SYSTEM, "Foundry")
    for queue, whose in ((own, tenant), (shared, tenant), (shared, others), (shared, others)):
        make_letter(queue, tenant=whose)
    make_alert(own)
    day = timezone.now().date()
    TenantUsageDay.objects.create(tenant_id=tenant.pk, day=day, sent=4321, stored_bytes=3 * 1024**2)
    IsolationRequest.objects.create(tenant=tenant, queues=[{"name": "Main"}], reason="x", requested_by_name="gus")
    with django_assert_max_num_queries(MOST_QUERIES_OF_A_TENANT):
        shown = page(browser, "tenant", tenant.pk)
    letters = shown[shown.index('id="letters"') : shown.index('id="alerts"')]
    assert letters.count('<td class="num text-bad">1</td>') == 2
    for text in ("rule", "Firing", "4,321", "3.0 MiB", "gus", "Requested"):
        assert text in shown
    assert f"?tenant={tenant.pk}" in shown[shown.index('id="audit-title"') :]


def test_a_tenants_page_says_how_each_queue_gets_on_that_its_messages_go_through(browser, tenant) -> None:
    own = Queue.objects.create(tenant=tenant, name="Own", topic="own", handler="log")
    replaced = Queue.objects.create(tenant=ensure_system_tenant(), name="OWN", topic="replaced", handler="log")
    shared = Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log")
    now = timezone.now()
    LagCurrent.objects.create(
        queue=shared, partition=0, topic="main.0", consumer_group="c", end_offset=9, lag_messages=4321, as_of=now,
        status="stop", reason="STOP: no commit for 4 min", status_since=now - timedelta(minutes=4),
    )  # fmt: skip
    for whose in (tenant, create_tenant(SYSTEM, "Foundry")):
        make_letter(shared, tenant=whose)
    shown = page(browser, "tenant", tenant.pk)
    its, others = shown[shown.index('id="queues"') :].split('id="shared"')
    assert str(own.pk) in its
    assert f"own.isolated.{tenant.pk}" in its
    assert "4,321" in others
    assert "No commit for 4 min" in others
    assert "4 min ago" in others
    assert f"queue={shared.pk}&amp;tenant={tenant.pk}" in others
    assert str(replaced.pk) not in shown
    assert 'id="shared"' not in page(browser, "tenant", ensure_system_tenant().pk)


def test_usage_compares_tenants(browser, tenant) -> None:
    others, day = create_tenant(SYSTEM, "Foundry"), timezone.now().date()
    TenantUsageDay.objects.create(tenant_id=tenant.pk, day=day, sent=10, sent_bytes=2048, stored_bytes=0)
    TenantUsageDay.objects.create(tenant_id=others.pk, day=day - timedelta(days=2), sent=90, sent_bytes=1)
    TenantUsageDay.objects.create(tenant_id=uuid4(), day=day - timedelta(days=40), sent=77_777)
    week = page(browser, "usage")
    assert week.index("Foundry") < week.index("Acme")
    assert "2.0 KiB" in week
    assert [week.count(f'<td class="num">{stored}</td>') for stored in ("0 B", "\N{EN DASH}")] == [1, 1]
    assert "77,777" not in week
    assert "77,777" in page(browser, "usage", days="90")
    today = page(browser, "usage", days="1")
    assert "Foundry" not in today
    assert f"from={day}" in today


def test_usage_is_narrowed_to_tenants_by_name_and_keeps_its_days(browser, tenant) -> None:
    others, day = create_tenant(SYSTEM, "Foundry"), timezone.now().date()
    for whose in (tenant, others):
        TenantUsageDay.objects.create(tenant_id=whose.pk, day=day - timedelta(days=20), sent=10)
    shown = page(browser, "usage", days="30", q="found", sort="sent")
    assert "Foundry</a>" in shown
    assert "Acme</a>" not in shown
    sent = fields_of(shown, 'role="search"')
    assert sent == {"q": "found", "days": "30", "sort": "sent"}
    assert "No tenants match" in page(browser, "usage", days="30", q="nobody")
    assert "Nothing was used since" in page(browser, "usage", days="1", q="found")


def test_recent_changes_are_told_field_by_field(browser, tenant, small) -> None:
    change_profile(Actor("ada"), small, description="one of the first")
    recent = {
        name: page(browser, name, pk).partition('id="audit-title"')[2].partition("</section>")[0]
        for name, pk in (("tenant", tenant.pk), ("tenant_profile", small.pk))
    }
    for name, field, value in (
        ("tenant", "description", "Contract 1"),
        ("tenant_profile", "description", "one of the first"),
    ):
        assert f'<dt class="mono">{field}</dt>' in recent[name]
        assert f"<ins>{value}</ins>" in recent[name]
        assert "{" not in recent[name]


def test_what_people_typed_is_only_ever_text(browser) -> None:
    hostile = create_tenant(SYSTEM, HOSTILE, description=HOSTILE)
    suspend_tenant(SYSTEM, hostile, HOSTILE)
    create_profile(SYSTEM, name=HOSTILE, description=HOSTILE, label=HOSTILE)
    profile = TenantProfile.objects.get(name=HOSTILE)
    for name, pk in (("tenant", hostile.pk), ("tenant_profile", profile.pk), ("delete_tenant_profile", profile.pk)):
        assert HOSTILE not in page(browser, name, pk)
    assert HOSTILE not in page(browser, "tenants") + page(browser, "tenant_profiles")


def test_a_queues_tenant_is_a_link(browser, tenant) -> None:
    queue = Queue.objects.create(tenant=tenant, name="Own", topic="own", handler="log")
    link = f'href="{reverse("tenant", args=[tenant.pk])}"'
    assert link in page(browser, "queue", queue.pk)
    assert link in page(browser, "queues")
    assert link in page(browser, "audit")


# Forms


def test_a_tenant_is_created_and_changed(browser, small) -> None:
    made = confirm(browser, reverse("create_tenant"), {"name": "Acme", "profile": str(small.pk)})
    assert "Created: tenant Acme." in made.content.decode()
    tenant = Tenant.objects.get(name="Acme")
    assert tenant.profile == small
    data = filled_in(tenant, messages_per_s="9", profile=str(DEFAULT_PROFILE))
    assert "Changed." in confirm(browser, reverse("change_tenant", args=[tenant.pk]), data).content.decode()
    tenant.refresh_from_db()
    assert (tenant.messages_per_s, tenant.profile_id) == (9, DEFAULT_PROFILE)
    assert AuditEntry.objects.get(action="change").actor_name == "root"


def test_a_profile_is_created_and_changed(browser) -> None:
    data = {"name": "gold", "burst_s": "5", "submit_strategies": ["BURST", "BATCH"], "approves_isolation": "on"}
    made = confirm(browser, reverse("create_tenant_profile"), data)
    assert "Created: profile gold." in made.content.decode()
    profile = TenantProfile.objects.get(name="gold")
    assert (profile.submit_strategies, profile.approves_isolation) == (["BURST", "BATCH"], True)
    url = reverse("change_tenant_profile", args=[profile.pk])
    confirm(browser, url, filled_in(profile, max_queues="2", approves_isolation=False))
    profile.refresh_from_db()
    assert (profile.max_queues, profile.approves_isolation, profile.submit_strategies) == (2, False, ["BURST", "BATCH"])


@pytest.mark.parametrize(
    ("name", "typed", "told"),
    [
        ("create_tenant", {"name": "ACME", "description": "typed"}, "another tenant is called so"),
        ("create_tenant", {"name": "", "description": "typed"}, "This field is required"),
        ("create_tenant", {"name": "New", "description": "typed", "burst_s": "0"}, "greater than or equal to 1"),
        ("create_tenant_profile", {"name": "Default", "description": "typed", "burst_s": "1"}, "another profile is"),
        (
            "create_tenant_profile",
            {"name": "x", "description": "typed", "burst_s": "1", "min_retention_ms": "2", "max_retention_ms": "1"},
            "use no less than min_retention_ms",
        ),
    ],
)
def test_what_was_typed_is_kept_when_it_is_refused(browser, tenant, name, typed, told) -> None:
    shown = browser.post(reverse(name), {"profile": str(DEFAULT_PROFILE), **typed}).content.decode()
    assert told in shown
    assert 'value="typed"' in shown
    assert (Tenant.objects.filter(description="typed").count(), TenantProfile.objects.count()) == (0, 1)


def test_the_default_profile_keeps_its_name(browser) -> None:
    default = TenantProfile.objects.get(pk=DEFAULT_PROFILE)
    url = reverse("change_tenant_profile", args=[default.pk])
    shown = browser.post(url, filled_in(default, name="standard")).content.decode()
    assert "Not changed: name: the default profile keeps its name" in shown
    assert 'value="standard"' in shown


def test_a_plan_is_shown_and_changes_nothing(browser, tenant) -> None:
    default = TenantProfile.objects.get(pk=DEFAULT_PROFILE)
    for name, row, field, typed, told in (
        ("change_tenant", tenant, "bytes_per_s", "5 MiB", ("Bytes per second", "5 MiB/s")),
        ("change_tenant_profile", default, "max_queues", "1500", ("Most queues", "1,500")),
        ("change_tenant_profile", default, "max_retention_ms", "36 h", ("Longest retention", "36 h")),
        ("change_tenant_profile", default, "stored_bytes", "1.5 TiB", ("Stored bytes", "1,536 GiB")),
    ):
        data = filled_in(row, **{field: typed})
        shown = browser.post(reverse(name, args=[row.pk]), data).content.decode()
        assert "What would change" in shown
        label, value = told
        assert (
            f'<th scope="row">{label}</th><td class="breakable">{NOTHING}</td><td class="breakable">{value}</td>'
            in shown
        )
        row.refresh_from_db()
        assert getattr(row, field) is None


def test_lengths_and_sizes_are_typed_and_told_with_their_units(browser, small) -> None:
    typed = {"stored_bytes": "50 MiB", "bytes_per_s": "1536", "min_retention_ms": "90 s", "max_retention_ms": "36 h"}
    url = reverse("change_tenant_profile", args=[small.pk])
    confirm(browser, url, filled_in(small, **typed))
    small.refresh_from_db()
    kept = (small.stored_bytes, small.bytes_per_s, small.min_retention_ms, small.max_retention_ms)
    assert kept == (50 * 1024**2, 1536, 90_000, 129_600_000)
    for name in ("tenant_profile", "change_tenant_profile"):
        shown = page(browser, name, small.pk)
        for told in ("50 MiB", "1,536 B", "90 s", "36 h"):
            assert told in shown, (name, told)
    refused = browser.post(url, filled_in(small, max_retention_ms="a week")).content.decode()
    assert "cannot be read; write it as" in refused
    assert "greater than or equal to 1" in browser.post(url, filled_in(small, stored_bytes="-1 B")).content.decode()


def test_a_plan_names_profiles(browser, tenant, small) -> None:
    url = reverse("change_tenant", args=[tenant.pk])
    shown = browser.post(url, filled_in(tenant, profile=str(small.pk))).content.decode()
    assert '<td class="breakable">default</td><td class="breakable">small</td>' in shown


# Suspending and deleting


def test_a_tenant_is_suspended_and_resumed(browser, tenant) -> None:
    url = reverse("suspend_tenant", args=[tenant.pk])
    assert "Messages that it has are consumed as ever" in browser.get(url).content.decode()
    assert "This field is required" in browser.post(url, {"reason": ""}).content.decode()
    assert "Suspended: unpaid." in browser.post(url, {"reason": "unpaid"}, follow=True).content.decode()
    asked = browser.get(reverse("resume_tenant", args=[tenant.pk])).content.decode()
    assert "Within seconds every process takes what is published for it" in asked
    assert '<td class="breakable">suspended</td><td class="breakable">active</td>' in asked
    resumed = browser.post(reverse("resume_tenant", args=[tenant.pk]), follow=True).content.decode()
    assert "Acme publishes again within seconds" in resumed
    tenant.refresh_from_db()
    assert tenant.state == TenantState.ACTIVE
    again = browser.post(reverse("resume_tenant", args=[tenant.pk]), follow=True).content.decode()
    assert "it was not suspended any more" in again


def test_the_systems_tenant_says_why_it_is_not_suspended(browser) -> None:
    system = ensure_system_tenant()
    assert "Not to be suspended: the system" in page(browser, "tenant", system.pk)
    refused = browser.post(reverse("suspend_tenant", args=[system.pk]), {"reason": "x"}).content.decode()
    assert "Not suspended: the system" in refused


def test_a_tenant_is_deleted_after_a_plan(browser, tenant, messages_of_its_own) -> None:
    queue = Queue.objects.create(tenant=tenant, name="Own", topic="own", handler="log")
    url = reverse("delete_tenant", args=[tenant.pk])
    assert "It has 1 queue of its own, such as Own; delete it first." in browser.get(url).content.decode()
    assert "Not deleted: it has 1 queue" in browser.post(url, follow=True).content.decode()
    queue.delete()
    planned = browser.get(url).content.decode()
    assert "It will be gone" in planned
    assert "Messages of it that wait in shared queues" in planned
    assert "Deleted: tenant Acme." in browser.post(url, follow=True).content.decode()
    assert not Tenant.objects.filter(pk=tenant.pk).exists()


def test_a_profile_is_deleted_after_a_plan(browser, tenant, small) -> None:
    change_tenant(SYSTEM, tenant, profile=small)
    url = reverse("delete_tenant_profile", args=[small.pk])
    assert "Tenants have profile small: Acme; give them another profile first" in browser.get(url).content.decode()
    assert "Not deleted: tenants have profile small" in browser.post(url, follow=True).content.decode()
    change_tenant(SYSTEM, tenant, profile=TenantProfile.objects.get(pk=DEFAULT_PROFILE))
    planned = browser.get(url).content.decode()
    assert "It will be gone" in planned
    assert '<th scope="row">Approve isolation requests automatically</th><td class="breakable">no</td>' in planned
    assert "[]" not in planned
    assert "Deleted: profile small." in browser.post(url, follow=True).content.decode()


def test_strangers_are_sent_to_sign_in(client, tenant, small) -> None:
    for name, pk in (("tenant", tenant.pk), ("delete_tenant", tenant.pk), ("tenant_profile", small.pk)):
        assert client.post(reverse(name, args=[pk])).status_code == 302
    assert Tenant.objects.filter(pk=tenant.pk).exists()
