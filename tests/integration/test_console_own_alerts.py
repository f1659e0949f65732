"""Alerts in the console as a tenant's people see them: of their own queues, and nothing of others or of the system."""

import re
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.alerts import acknowledge_alert
from queueapi.actions.silences import silence_alert
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import AlertState, Role
from queueapi.models import Alert, AuditEntry, Queue, Tenant
from tests.alerts import make_alert, make_channel, make_rule
from tests.people import person

pytestmark = pytest.mark.django_db

MOST_QUERIES = 15
ROLES = (Role.TENANT_ADMIN, Role.TENANT_VIEWER)


class World(NamedTuple):
    """Of each of three queues something is wrong: Greenhouse's own, Foundry's, and the one that all share."""

    tenant: Tenant
    own: Alert
    others: Alert
    shared: Alert

    @property
    def foreign(self) -> tuple[Alert, Alert]:
        return self.others, self.shared


@pytest.fixture
def world() -> World:
    tenant, other = create_tenant(SYSTEM, "Greenhouse"), create_tenant(SYSTEM, "Foundry")
    queues = (_queue(tenant, "Beds"), _queue(other, "Ovens"), _queue(ensure_system_tenant(), "Main"))
    return World(tenant, *(make_alert(queue) for queue in queues))


def _queue(tenant: Tenant, name: str) -> Queue:
    return Queue.objects.create(tenant=tenant, name=name, topic=name.lower(), handler="log")


def browser(world: World, role: Role = Role.TENANT_ADMIN) -> Client:
    client = Client()
    client.force_login(person(f"eve of {role}", role, world.tenant))
    return client


def seen(client: Client, name: str, *args: Any, **query: Any) -> str:
    """What a person reads, on one line."""
    answer = client.get(reverse(name, args=args), query)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.mark.parametrize("role", ROLES)
def test_the_list_has_their_own_and_nothing_else(world, role) -> None:
    acknowledge_alert(Actor("bob"), make_alert(world.own.queue, reason="it is cold"))
    client = browser(world, role)
    shown = seen(client, "alerts")
    for text in ("150 messages wait in queue Beds", "It is cold", "bob", "Open 2", "Firing 1", "Acknowledged 1"):
        assert text in shown
    for text in ("Ovens", "queue Main", "Foundry"):
        assert text not in shown
    assert reverse("alert_rules") not in client.get(reverse("alerts")).content.decode()


@pytest.mark.parametrize("role", ROLES)
def test_what_is_anothers_or_the_systems_is_not_there(world, role) -> None:
    client = browser(world, role)
    for alert in world.foreign:
        assert client.get(reverse("alert", args=[alert.pk])).status_code == 404
        expected = 404 if role == Role.TENANT_ADMIN else 403
        assert client.post(reverse("acknowledge_alert", args=[alert.pk]), {"note": "x"}).status_code == expected
    assert set(Alert.objects.values_list("state", flat=True)) == {AlertState.FIRING}


def test_alerts_are_narrowed_sorted_and_turned_over(world) -> None:
    client, other = browser(world), _queue(world.tenant, "Pots")
    yesterday = timezone.now() - timedelta(days=1)
    critical = make_alert(other, severity="critical", reason="pots are broken", since=yesterday, fired_at=yesterday)
    for asked in ({"q": "BROKEN"}, {"severity": "critical"}, {"queue": str(other.pk)}, {"q": critical.rule_name}):
        shown = seen(client, "alerts", **asked)
        assert "Pots are broken" in shown, asked
        assert "150 messages wait" not in shown, asked
    oldest_first = seen(client, "alerts", sort="since")
    assert oldest_first.index("Pots are broken") < oldest_first.index("150 messages wait")
    for number in range(25):
        make_alert(other, reason=f"alert {number}")
    first, second = seen(client, "alerts"), seen(client, "alerts", page="2")
    assert "Open 27" in first
    assert (first.count("Pots are broken"), second.count("150 messages wait")) == (1, 1)


def test_filters_know_of_nothing_that_is_anothers(world) -> None:
    client = browser(world)
    page = client.get(reverse("alerts"), {"queue": str(world.others.queue_id), "tenant": "x", "rule": "y"})
    shown = page.content.decode()
    assert page.status_code == 200
    assert "Ovens" not in shown
    assert "Select a valid choice" in shown
    assert 'name="tenant"' not in shown


def test_nothing_of_theirs_is_wrong(world) -> None:
    client = browser(world)
    now = timezone.now()
    Alert.objects.filter(pk=world.own.pk).update(state=AlertState.RESOLVED, resolved_at=now, resolution="it is over")
    assert "Nothing of yours is wrong" in seen(client, "alerts")
    assert "150 messages wait in queue Beds" in seen(client, "alerts", state="resolved")
    assert "Nothing matches" in seen(client, "alerts", q="nothing is called so")


def test_an_alert_tells_what_is_wrong_and_its_story_but_not_whom_it_was_told(world) -> None:
    channel = make_channel(name="pager of bob")
    rule = make_rule(world.own.queue, channels=[channel], name="Beds wait")
    alert = make_alert(world.own.queue, rule, since=timezone.now() - timedelta(minutes=3))
    silence_alert(Actor("bob"), alert, until=timezone.now() + timedelta(hours=1), reason="an upgrade of broker-9")
    client = browser(world, Role.TENANT_VIEWER)
    shown = seen(client, "alert", alert.pk)
    for text in ("Beds wait: Beds", "150 messages wait in queue Beds", "for the first time", "Fired", "100 messages"):
        assert text in shown
    for text in ("pager of bob", "broker-9", "Silence it", "Nobody is told"):
        assert text not in shown
    page = client.get(reverse("alert", args=[alert.pk])).content.decode()
    assert f'href="{reverse("queue", args=[world.own.queue_id])}">See why' in page
    assert reverse("alert_rule", args=[rule.pk]) not in page


@pytest.mark.parametrize("metric", ["lag_messages", "open_letters", "error_rate"])
def test_what_explains_it_is_a_page_of_theirs(world, metric) -> None:
    client, alert = browser(world), make_alert(world.own.queue, metric=metric)
    assert client.get(alert.link).status_code == 200
    Alert.objects.filter(pk=alert.pk).update(queue=None)
    alert.refresh_from_db()
    assert client.get(alert.link).status_code == 200
    assert "which is gone" in seen(client, "alert", alert.pk)


def test_their_administrators_acknowledge_and_viewers_are_told_why_not(world) -> None:
    acknowledge, viewers = reverse("acknowledge_alert", args=[world.own.pk]), browser(world, Role.TENANT_VIEWER)
    assert "which may not operate alerts" in seen(viewers, "alert", world.own.pk)
    assert viewers.post(acknowledge, {"note": "x"}).status_code == 403
    client = browser(world)
    refused = client.post(acknowledge, {"note": "x" * 501})
    assert "at most 500 characters" in refused.content.decode()
    answer = client.post(acknowledge, {"note": "we water them"}, follow=True)
    assert "it does not escalate" in answer.content.decode()
    world.own.refresh_from_db()
    assert (world.own.state, world.own.note) == (AlertState.ACKNOWLEDGED, "we water them")
    assert AuditEntry.objects.get(action="acknowledge").tenant_id == world.tenant.pk
    assert "we water them" in seen(client, "alert", world.own.pk)


def test_what_is_over_cannot_be_acknowledged(world) -> None:
    resolved = {"state": AlertState.RESOLVED, "resolved_at": timezone.now(), "resolution": "it is over"}
    Alert.objects.filter(pk=world.own.pk).update(**resolved)
    answer = browser(world).post(reverse("acknowledge_alert", args=[world.own.pk]), {"note": "late"})
    assert "Not acknowledged" in answer.content.decode()


@pytest.mark.parametrize("role", ROLES)
def test_silencing_is_for_those_who_run_the_system(world, role) -> None:
    address = reverse("silence_alert", args=[world.own.pk])
    assert browser(world, role).post(address, {"lasts": "1 hour", "reason": "x"}).status_code == 403


@pytest.mark.parametrize("role", ROLES)
def test_the_frame_the_home_page_and_the_search_lead_to_them(world, role) -> None:
    client = browser(world, role)
    home = client.get(reverse("overview")).content.decode()
    assert 'title="1 firing"' in home
    assert "1 alert of yours fires" in home
    assert f'id="tile-alerts" href="{reverse("alerts")}"' in home
    found = client.get(reverse("search"), {"q": "rule"}).content.decode()
    assert reverse("alert", args=[world.own.pk]) in found
    assert not [alert for alert in world.foreign if reverse("alert", args=[alert.pk]) in found]


def test_pages_ask_as_often_for_many_alerts_as_for_few(world, django_assert_max_num_queries) -> None:
    client, asked = browser(world), []
    for _ in range(2):
        for name, args in (("alerts", []), ("alert", [world.own.pk])):
            with django_assert_max_num_queries(MOST_QUERIES) as queries:
                seen(client, name, *args)
            asked.append(len(queries))
        for _number in range(10):
            make_alert(world.own.queue)
    assert asked[:2] == asked[2:]


def test_the_live_part_has_no_frame(world) -> None:
    client = browser(world)
    for address in (reverse("alerts"), reverse("alert", args=[world.own.pk])):
        part = client.get(address, headers={"HX-Request": "true"}).content.decode()
        assert "<html" not in part
        assert "150 messages wait" in part
