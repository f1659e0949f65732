"""Two people who have the form of one thing open: the second is shown what the first did, and nothing is lost."""

from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from console.views import alert_rules
from queueapi.actions.actor import Actor
from queueapi.actions.alert_channels import change_channel
from queueapi.actions.alert_rules import change_rule
from queueapi.actions.isolation import change_request, comment_on_request, request_isolation
from queueapi.actions.letter_edits import note_group, note_letter
from queueapi.actions.tenant_profiles import change_profile, create_profile
from queueapi.actions.tenants import change_tenant, create_tenant, ensure_system_tenant
from queueapi.actions.users import set_user_role
from queueapi.choices import Role
from queueapi.models import Account, AlertRule, Queue
from tests.alerts import make_channel, make_rule
from tests.letters import make_letter
from tests.page_forms import confirm, fields_of, words_of
from tests.people import person

pytestmark = pytest.mark.django_db

BOB = Actor("bob")
SECRET = "a secret of some length"


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(person("ada", Role.ADMINISTRATOR))
    return client


@pytest.fixture
def queue() -> Queue:
    return Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log")


@dataclass(frozen=True)
class Shared:
    """A thing, the address of its form, what somebody else does to it meanwhile and how that is told, what is typed
    into the form then, and what both together have made of it."""

    thing: Any
    address: str
    meanwhile: Callable[[], object]
    told: tuple[str, ...]
    typed: dict[str, str]
    both: Callable[[Any], dict[str, Any]]
    wanted: dict[str, Any]


def of_rule(queue: Queue) -> Shared:
    rule, channel = make_rule(queue, threshold=100), make_channel(name="On call")
    return Shared(
        rule,
        reverse("change_alert_rule", args=[rule.pk]),
        lambda: change_rule(BOB, rule, threshold=50.0, for_s=60, channels=[channel], resolve_at=None),
        ("Fires above 100 50 bob", "90", "Who is told when it fires \N{EN DASH} On call bob", "nothing else"),
        {"threshold": "90", "description": "mine"},
        lambda now: {
            "threshold": now.threshold, "for_s": now.for_s, "description": now.description,
            "channels": [each.name for each in now.channels.all()],
        },
        {"threshold": 90, "for_s": 60, "description": "mine", "channels": ["On call"]},
    )  # fmt: skip


def of_channel(_queue: Queue) -> Shared:
    options = {"url": "https://hooks.example.org/hook", "secret": SECRET}
    channel = make_channel(name="Pager", kind="webhook", options=options)
    return Shared(
        channel,
        reverse("change_alert_channel", args=[channel.pk]),
        lambda: change_channel(BOB, channel, options={**options, "timeout_ms": 7000}),
        ("Timeout (ms) 10000 7000 bob",),
        {"name": "Beeper"},
        lambda now: {"name": now.name, "timeout_ms": now.options["timeout_ms"], "secret": now.options["secret"]},
        {"name": "Beeper", "timeout_ms": 7000, "secret": SECRET},
    )


def of_tenant(_queue: Queue) -> Shared:
    tenant = create_tenant(BOB, "Acme")
    small = create_profile(BOB, name="small")
    return Shared(
        tenant,
        reverse("change_tenant", args=[tenant.pk]),
        lambda: change_tenant(BOB, tenant, messages_per_s=7.0, profile=small),
        ("Messages per second \N{EN DASH} 7 bob", "Profile default small bob"),
        {"description": "mine", "messages_per_s": "9"},
        lambda now: {"description": now.description, "rate": now.messages_per_s, "profile": now.profile.name},
        {"description": "mine", "rate": 9, "profile": "small"},
    )


def of_profile(_queue: Queue) -> Shared:
    profile = create_profile(BOB, name="small", max_queues=3)
    return Shared(
        profile,
        reverse("change_tenant_profile", args=[profile.pk]),
        lambda: change_profile(BOB, profile, max_queues=4, approves_isolation=True, submit_strategies=["BURST"]),
        ("Most queues 3 4 bob", "Approve isolation requests automatically no yes bob"),
        {"description": "mine"},
        lambda now: {
            "description": now.description, "max_queues": now.max_queues, "approves": now.approves_isolation,
            "submit": now.submit_strategies,
        },
        {"description": "mine", "max_queues": 4, "approves": True, "submit": ["BURST"]},
    )  # fmt: skip


def of_role(_queue: Queue) -> Shared:
    gus, tenant = person("gus", Role.OPERATOR), create_tenant(BOB, "Acme")
    return Shared(
        gus,
        reverse("change_user_role", args=[gus.pk]),
        lambda: set_user_role(BOB, gus, Role.TENANT_VIEWER, tenant),
        ("Role Operator: see all but users", "Tenant \N{EN DASH} Acme bob"),
        {"role": "tenant_admin"},
        lambda now: {"role": now.account.role, "tenant": now.account.tenant.name},
        {"role": "tenant_admin", "tenant": "Acme"},
    )


KINDS = (of_rule, of_channel, of_tenant, of_profile, of_role)


def opened(browser: Client, address: str) -> dict[str, Any]:
    return fields_of(browser.get(address).content.decode())


def again(thing: Any) -> Any:
    return type(thing)._base_manager.get(pk=thing.pk)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("button", ["plan", "confirm"])
def test_whoever_comes_second_is_shown_what_the_first_changed_and_goes_on(browser, queue, kind, button) -> None:
    shared = kind(queue)
    form = {**opened(browser, shared.address), **shared.typed}
    shared.meanwhile()
    first = shared.both(again(shared.thing))
    answer = browser.post(shared.address, {**form, button: "yes"})
    assert answer.status_code == 409
    shown = words_of(answer)
    assert "Somebody else has changed this" in shown
    for told in shared.told:
        assert told in shown, told
    assert shared.both(again(shared.thing)) == first
    kept = fields_of(answer.content.decode())
    assert {name: kept[name] for name in shared.typed} == shared.typed
    # Having seen it, they go on.
    assert "Changed" in words_of(confirm(browser, shared.address, kept))
    assert shared.both(again(shared.thing)) == shared.wanted


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_who_is_alone_is_not_in_anybodys_way(browser, queue, kind) -> None:
    shared = kind(queue)
    form = {**opened(browser, shared.address), **shared.typed}
    assert "Changed" in words_of(confirm(browser, shared.address, form))


def test_what_is_changed_between_the_look_and_the_change_is_not_lost(browser, queue, monkeypatch) -> None:
    """Compared once more where nobody can be in between."""
    shared = of_rule(queue)
    plan = browser.post(shared.address, {**opened(browser, shared.address), **shared.typed})
    form = {**fields_of(plan.content.decode()), "confirm": "yes"}
    make, made = alert_rules.RuleChangeForm, []

    def making(*args: Any, **kwargs: Any) -> Any:
        if len(made) == 1:
            shared.meanwhile()
        made.append(make(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(alert_rules, "RuleChangeForm", making)
    answer = browser.post(shared.address, form)
    assert answer.status_code == 409
    assert AlertRule.objects.get(pk=shared.thing.pk).threshold == 50


def test_another_secret_is_noticed_though_neither_is_shown(browser) -> None:
    options = {"url": "https://hooks.example.org/hook", "timeout_ms": 10_000, "secret": SECRET}
    channel = make_channel(name="Pager", kind="webhook", options=options)
    address = reverse("change_alert_channel", args=[channel.pk])
    form = {**opened(browser, address), "secret": "mine, and long enough"}
    assert "secret or headers ******** ********" in words_of(browser.post(address, form))
    change_channel(BOB, channel, options={**options, "secret": "bob's, and long enough"})
    answer = browser.post(address, form)
    assert answer.status_code == 409
    assert "What is not shown here ******** ******** bob" in words_of(answer)
    assert "long enough" not in answer.content.decode()
    confirm(browser, address, fields_of(answer.content.decode()))
    assert again(channel).options["secret"] == "mine, and long enough"


def test_what_is_typed_after_the_plan_is_planned_first(browser, queue) -> None:
    shared = of_rule(queue)
    plan = browser.post(shared.address, {**opened(browser, shared.address), **shared.typed})
    sent = {**fields_of(plan.content.decode()), "threshold": "200", "confirm": "yes"}
    answer = browser.post(shared.address, sent)
    assert "This is not what the plan before was for" in words_of(answer)
    assert again(shared.thing).threshold == 100
    browser.post(shared.address, {**fields_of(answer.content.decode()), "confirm": "yes"})
    assert again(shared.thing).threshold == 200


def test_what_was_planned_before_another_changed_it_is_not_confirmed(browser, queue) -> None:
    shared = of_rule(queue)
    plan = browser.post(shared.address, {**opened(browser, shared.address), **shared.typed})
    sent = {**fields_of(plan.content.decode()), "confirm": "yes"}
    shared.meanwhile()
    clash = browser.post(shared.address, sent)
    assert clash.status_code == 409
    assert "planned" not in fields_of(clash.content.decode())


def test_what_was_shown_of_another_thing_is_compared_with_nothing(browser, queue) -> None:
    ours, other = of_rule(queue), of_tenant(queue)
    form = {**opened(browser, ours.address), "seen": opened(browser, other.address)["seen"]}
    assert "Changed" in words_of(confirm(browser, ours.address, form))


# Isolation requests


@pytest.fixture
def eve(installation: Any) -> User:
    return person("eve", Role.TENANT_ADMIN, installation.tenant)


def test_of_two_who_change_a_request_the_second_is_told(client, installation, eve) -> None:
    name = installation.queue.name
    asked = [{"name": name, "partitions": 2}]
    found = request_isolation(Actor("eve", eve, tenant_id=eve.account.tenant_id), installation.tenant, asked, "bursts")
    client.force_login(eve)
    address, prefix = reverse("change_isolation", args=[found.pk]), f"queue-{installation.queue.pk}"
    form = {**opened(client, address), f"{prefix}-retries": "7"}
    comment_on_request(BOB, found, "a comment is none")
    change_request(BOB, found, queues=[{"name": name, "partitions": 3}], reason="bursts in May")
    answer = client.post(address, form)
    assert answer.status_code == 409
    shown = words_of(answer)
    for told in (f"{name}: Partitions 2 3 bob", "Reason bursts bursts in May bob"):
        assert told in shown, told
    assert client.post(address, fields_of(answer.content.decode())).status_code == 302
    found.refresh_from_db()
    assert found.queues == [{"name": name, "partitions": 3, "retries": 7}]
    assert found.reason == "bursts in May"


def test_a_comment_is_in_nobodys_way(client, installation, eve) -> None:
    asked = [{"name": installation.queue.name, "partitions": 2}]
    found = request_isolation(Actor("eve", eve, tenant_id=eve.account.tenant_id), installation.tenant, asked, "bursts")
    client.force_login(eve)
    address = reverse("change_isolation", args=[found.pk])
    form = {**opened(client, address), "reason": "bursts in June"}
    comment_on_request(BOB, found, "why?")
    assert client.post(address, form).status_code == 302
    found.refresh_from_db()
    assert found.reason == "bursts in June"


# Notes


@pytest.mark.parametrize("is_group", [True, False])
def test_nobody_writes_over_a_note_that_they_have_not_read(browser, queue, is_group) -> None:
    letter = make_letter(queue)
    noted = letter.group if is_group else letter
    page = f"{reverse('dead_letters')}?state=open&group={noted.pk}"
    page = page if is_group else reverse("dead_letter", args=[noted.pk])
    address = reverse("note_group" if is_group else "note_letter", args=[noted.pk])
    seen = fields_of(browser.get(page).content.decode(), f'action="{address}"')["seen"]
    (note_group if is_group else note_letter)(BOB, noted.pk, "billing is away")
    answer = browser.post(address, {"note": "mine", "seen": seen})
    assert answer.status_code == 409
    assert "Note (empty) billing is away bob" in words_of(answer).replace("\N{EN DASH}", "(empty)")
    assert again(noted).note == "billing is away"
    kept = fields_of(answer.content.decode())
    assert kept["note"] == "mine"
    assert browser.post(address, kept).headers["Location"] == unescape(page)
    assert again(noted).note == "mine"


def test_a_note_that_is_too_long_stays_typed(browser, queue) -> None:
    letter = make_letter(queue)
    answer = browser.post(reverse("note_letter", args=[letter.pk]), {"note": "n" * 2001})
    assert "at most 2000 characters" in words_of(answer)
    assert "n" * 2001 in answer.content.decode()
    assert Account.objects.count() == 1
