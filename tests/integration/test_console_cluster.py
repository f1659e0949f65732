"""The cluster's pages: services, partitions, rebalances, and planning one."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from queueapi.actions.actor import SYSTEM
from queueapi.actions.operations import log_operation
from queueapi.actions.rebalances import start_rebalance
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.cluster.models import Partition, Rebalance, ServiceInstance
from queueapi.models import AuditEntry, Operation, Queue
from queuecore.topics import ServiceType
from tests.cluster_kit import FakeCluster, newest_rebalance, partitions_named
from tests.databases import all_queries

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>"
LISTS = ("services", "partitions", "rebalances", "plan_rebalance")
MOST_QUERIES = 16


@pytest.fixture
def cluster(db) -> FakeCluster:
    cluster = FakeCluster(partitions_named("Orders", "orders", 6))
    cluster.join("a", "b")
    cluster.settle()
    return cluster


@pytest.fixture
def queue(cluster) -> Queue:
    return Queue.objects.create(
        tenant=ensure_system_tenant(), name="Orders", topic="orders", handler="log", partitions=6
    )


@pytest.fixture
def browser(client: Client, settings: Any) -> Client:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    client.force_login(User.objects.create_superuser("root", password="secret"))
    return client


def text_of(response: HttpResponse) -> str:
    """What a person reads, on one line."""
    without_tags = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"\s+", " ", without_tags)


def drawn(response: HttpResponse) -> list[str]:
    """What each line of the drawn moves says."""
    page = response.content.decode()
    told = re.findall(r"<path [^>]*><title>([^<]*)</title>", page)
    assert bool(told) == ('<svg class="flow"' in page)
    return told


def every_page() -> list[str]:
    return [
        *(reverse(name) for name in LISTS),
        reverse("rebalance", args=[newest_rebalance().pk]),
        reverse("drain_service", args=["a"]),
        reverse("undrain_service", args=["a"]),
    ]


def test_only_staff_see_and_change_anything(client, cluster) -> None:
    for url in every_page():
        assert client.get(url).headers["Location"].startswith("/login/")
    client.force_login(User.objects.create_user("visitor"))
    for url in every_page():
        assert client.get(url).status_code == 403
        client.post(url, {"reason": "x", "leaving": "a"})
    client.post(reverse("cancel_rebalance", args=[newest_rebalance().pk]))
    assert not ServiceInstance.objects.filter(is_draining=True).exists()
    assert not Operation.objects.exists()


def test_an_empty_cluster_says_what_is_missing(browser) -> None:
    assert "No service instance is there" in text_of(browser.get(reverse("services")))
    assert "No partitions yet" in text_of(browser.get(reverse("partitions")))
    assert "No rebalances yet" in text_of(browser.get(reverse("rebalances")))
    shown = text_of(browser.get(reverse("plan_rebalance")))
    assert "No service is left to consume anything" in shown
    assert "No service is there that could leave" in shown


@pytest.mark.parametrize("name", LISTS)
def test_however_many_there_are_few_questions_are_asked(browser, cluster, name) -> None:
    cluster.join(*(f"s{number}" for number in range(10)))
    cluster.settle()
    with all_queries() as asked:
        assert browser.get(reverse(name)).status_code == 200
    assert len(asked) <= MOST_QUERIES


def test_services_are_shown_with_their_load(browser, cluster) -> None:
    cluster.join(
        "c", service_types=(ServiceType.EDQS, ServiceType.TB_CORE), weight=2.5, labels=frozenset({"gpu", "ssd"})
    )
    response = browser.get(reverse("services"))
    shown = text_of(response)
    assert "a coordinator" in shown
    assert "b coordinator" not in shown
    for text in ("Alive", "2.5", "EDQS +1", "gpu +1", "machine-1 7"):
        assert text in shown
    assert "3 of its share of 3.0" in response.content.decode()
    assert f'href="{reverse("partitions")}?owner=b"' in response.content.decode()


def test_the_state_of_a_service_is_told(browser, cluster) -> None:
    cluster.join("c", "d")
    past = timezone.now() - timedelta(seconds=30)
    ServiceInstance.objects.filter(service_id="b").update(is_draining=True)
    ServiceInstance.objects.filter(service_id="c").update(lease_expires_at=past)
    ServiceInstance.objects.filter(service_id="d").update(gone_at=past, is_lost=True)
    shown = text_of(browser.get(reverse("services")))
    for text in ("Draining not empty yet", "Expired lease ended", "Lost 30 s ago"):
        assert text in shown
    for life, kept in (("draining", "b"), ("lost", "c")):
        rows = browser.get(reverse("services"), {"life": life}).context["page"].object_list
        assert kept in {row.service.service_id for row in rows}
    assert [row.service.service_id for row in browser.get(reverse("services"), {"q": "B"}).context["page"]] == ["b"]
    assert "Nothing matches" in text_of(browser.get(reverse("services"), {"q": "nobody"}))


@pytest.mark.parametrize("name", ["services", "partitions", "rebalances"])
def test_a_live_part_is_only_the_part_with_its_filters(browser, cluster, name) -> None:
    whole = browser.get(reverse(name), {"q": "o"}).content.decode()
    assert f'hx-get="{reverse(name)}?q=o"' in whole
    part = browser.get(reverse(name), {"q": "o"}, headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode()
    assert "HX-Request" in part.headers["Vary"]


@pytest.mark.parametrize("name", ["services", "partitions", "rebalances"])
def test_lists_sort_by_every_column_both_ways(browser, cluster, name) -> None:
    page = browser.get(reverse(name)).content.decode()
    columns = set(re.findall(r"\?sort=-?(\w+)", page))
    assert len(columns) >= 5
    for column in columns:
        for direction in ("", "-"):
            assert browser.get(reverse(name), {"sort": f"{direction}{column}"}).status_code == 200


def test_a_service_is_drained_after_its_plan(browser, cluster) -> None:
    url = reverse("drain_service", args=["b"])
    plan = browser.get(url)
    assert "3 partitions would move" in text_of(plan)
    assert drawn(plan) == ["3 partitions move from b to a"]
    assert "an assumption: no rebalance has shown it yet" in text_of(plan)
    assert not ServiceInstance.objects.get(service_id="b").is_draining
    done = browser.post(url, follow=True)
    assert "Draining: b gives its partitions away" in text_of(done)
    cluster.settle()
    assert "can be stopped" in text_of(browser.get(reverse("services")))
    back = reverse("undrain_service", args=["b"])
    assert "3 partitions would move" in text_of(browser.get(back))
    assert drawn(browser.get(back)) == ["3 partitions move from a to b"]
    assert "as in recent rebalances" in text_of(browser.get(back))
    assert "b gets its share of partitions again" in text_of(browser.post(back, follow=True))
    assert set(AuditEntry.objects.values_list("action", flat=True)) == {"drain", "undrain"}


def test_a_service_that_has_left_meanwhile_is_not_drained(browser, cluster) -> None:
    cluster.store.leave(cluster.members["b"])
    url = reverse("drain_service", args=["b"])
    for response in (browser.get(url, follow=True), browser.post(url, follow=True)):
        assert "Not drained: b has left, or was lost" in text_of(response)
    assert browser.get("/services/nobody/drain/").status_code == 404
    assert browser.get("/services/a%00/drain/").status_code == 404


def test_partitions_are_shown_with_who_has_them(browser, cluster, queue) -> None:
    response = browser.get(reverse("partitions"))
    assert text_of(response).count("Consumed") == 6
    assert reverse("queue", args=[queue.pk]) in response.content.decode()
    owned = browser.get(reverse("partitions"), {"owner": "b", "queue": "Orders"}).context["page"]
    assert {row.partition.owner for row in owned} == {"b"}
    assert "Everything is where it should be" in text_of(browser.get(reverse("partitions"), {"unsettled": "true"}))
    start_rebalance(SYSTEM, reason="b goes", leaving=["b"])
    cluster.step()
    moving = text_of(browser.get(reverse("partitions"), {"unsettled": "true"}))
    assert (moving.count("Moving"), moving.count("Consumed")) == (3, 0)


def test_partitions_that_nobody_has_say_so(browser, cluster) -> None:
    Partition.objects.filter(name="orders.0").update(owner=None, idle_since=timezone.now() - timedelta(minutes=3))
    Partition.objects.filter(name="orders.1").update(owner=None, target=None, idle_since=timezone.now())
    Partition.objects.filter(name="orders.2").update(target=None)
    shown = text_of(browser.get(reverse("partitions")))
    for text in ("To be taken nobody", "idle 3 min ago", "Nobody may have it", "To be released"):
        assert text in shown


def test_queues_of_the_same_name_are_told_apart_by_their_tenant(browser, cluster, queue) -> None:
    tenant = create_tenant(SYSTEM, "Greenhouse")
    other = Queue.objects.create(tenant=tenant, name="Orders", topic="orders", handler="log", partitions=1)
    cluster.partitions = [
        *cluster.partitions,
        *partitions_named("Orders", f"orders.isolated.{tenant.id}", 1, tenant.id),
    ]
    cluster.settle()
    rows = browser.get(reverse("partitions")).context["page"].object_list
    assert {row.queue.pk for row in rows} == {queue.pk, other.pk}


def test_partitions_are_paged(browser, db) -> None:
    cluster = FakeCluster(partitions_named("Many", "many", 30))
    cluster.join("a")
    cluster.settle()
    page = browser.get(reverse("partitions")).context["page"]
    assert (len(page.object_list), page.paginator.count) == (25, 30)


def test_rebalances_are_listed_with_what_they_did(browser, cluster) -> None:
    operation = start_rebalance(SYSTEM, reason=HOSTILE, leaving=["b"])
    cluster.settle()
    response = browser.get(reverse("rebalances"))
    shown = text_of(response)
    assert HOSTILE not in response.content.decode()
    for text in ("a, b joined", "Asked for by system", "Done", "3 of 3", "6 of 6"):
        assert text in shown
    tabs = {tab.value: tab.number for tab in response.context["tabs"]}
    assert (tabs[""], tabs["done"], tabs["failed"]) == (2, 2, 0)
    assert len(browser.get(reverse("rebalances"), {"cause": "request"}).context["page"]) == 1
    assert len(browser.get(reverse("rebalances"), {"q": "joined"}).context["page"]) == 1
    assert reverse("rebalance", args=[operation.params["rebalance"]]) in response.content.decode()


def test_a_rebalances_page_tells_all_of_it(browser, cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="b goes", leaving=["b"])
    url = reverse("rebalance", args=[operation.params["rebalance"]])
    waiting = text_of(browser.get(url))
    assert "Planned" in waiting
    assert "It has not been planned yet" in waiting
    cluster.step()
    running = browser.get(url)
    assert "Running" in text_of(running)
    assert "0 of 3 partitions" in text_of(running)
    assert reverse("operation", args=[operation.pk]) in running.content.decode()
    before, after = running.context["tables"]
    assert (before.title, before.largest_deviation, after.title) == ("Before", 3, "As planned")
    assert [(row.service, row.count) for row in before.rows] == [("a", 3), ("b", 3)]
    assert [(row.service, row.count) for row in after.rows] == [("a", 6), ("b", None)]
    cluster.move()
    cluster.step()
    done = browser.get(url, headers={"HX-Request": "true"})
    assert done.status_code == 286, "the last update"
    assert "100 %" in text_of(done)
    assert "in the middle" in text_of(done)
    assert 'disabled title="It is over: done."' in done.content.decode()


def test_one_that_failed_says_why(browser, cluster) -> None:
    now = timezone.now()
    Rebalance.objects.create(
        state="failed", cause="membership", reason="c left", error="c did not release", created_at=now, finished_at=now
    )
    shown = text_of(browser.get(reverse("rebalance", args=[newest_rebalance().pk])))
    assert "C did not release" in shown
    assert "Failed" in shown


def test_one_that_nobody_is_there_to_do_says_so(browser, cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="b goes")
    ServiceInstance.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    shown = text_of(browser.get(reverse("rebalance", args=[operation.params["rebalance"]])))
    assert "No service instance is alive to do it" in shown


def test_a_rebalance_is_cancelled_from_its_page(browser, cluster) -> None:
    cluster.join("c")
    cluster.step()
    rebalance = newest_rebalance()
    url = reverse("cancel_rebalance", args=[rebalance.pk])
    assert "services that were to leave stay draining" in text_of(browser.get(url))
    assert "Cancelling: what has not moved stays" in text_of(browser.post(url, follow=True))
    assert "It is being cancelled already" in text_of(browser.get(reverse("rebalance", args=[rebalance.pk])))
    cluster.step()
    assert "Not cancelled: this rebalance is already cancelled" in text_of(browser.post(url, follow=True))
    assert "That cannot be done" in text_of(browser.get(url))


def test_its_operation_leads_to_it_and_cannot_be_paused(browser, cluster) -> None:
    operation = start_rebalance(SYSTEM, reason="b goes")
    log_operation(operation, HOSTILE)
    response = browser.get(reverse("operation", args=[operation.pk]))
    assert reverse("rebalance", args=[operation.params["rebalance"]]) in response.content.decode()
    assert 'id="hold"' not in response.content.decode()
    assert "What has not moved stays where it is" in text_of(response)
    paused = browser.post(reverse("pause_operation", args=[operation.pk]), follow=True)
    assert "Not paused: a rebalance cannot be paused" in text_of(paused)


def test_what_if_is_shown_before_anything_is_done(browser, cluster, queue) -> None:
    now = text_of(browser.get(reverse("plan_rebalance")))
    assert "Nothing would move" in now
    asked = {"leaving": ["b"], "joining": "2", "weight": "2", "queue": str(queue.pk), "partitions": "8"}
    response = browser.get(reverse("plan_rebalance"), asked)
    shown = text_of(response)
    assert "8 would be placed" in shown
    assert "nobody's: 8" in shown.replace("&#x27;", "'")
    assert "3 partitions that nobody has go to new-1" in drawn(response)
    assert "orders would have 8 new partitions instead of its 6" in shown.lower()
    resize = f"{reverse('resize_queue', args=[queue.pk])}?partitions=8"
    assert f'href="{resize}"' in response.content.decode()
    assert 'name="partitions" value="8"' in browser.get(resize).content.decode()
    assert "new-1" in shown
    assert 'id="apply" disabled title="A service joins by being started' in response.content.decode()
    assert 'value="b" id="id_leaving_1" checked' in response.content.decode()
    assert not Operation.objects.exists()


def test_services_that_join_can_be_named(browser, cluster) -> None:
    response = browser.get(reverse("plan_rebalance"), {"joining_ids": "x, y,x", "joining": "9"})
    shown = text_of(response)
    assert "2 partitions would move" in shown
    assert "new-1" not in shown
    assert drawn(response) == ["1 partition moves from a to x", "1 partition moves from b to y"]


def test_where_a_resized_queues_partitions_would_be_is_drawn(browser, cluster, queue) -> None:
    address = reverse("resize_queue", args=[queue.pk])
    assert not drawn(browser.get(address))
    with all_queries() as queries:
        response = browser.post(address, {"partitions": "7"})
    assert len(queries) <= MOST_QUERIES
    assert drawn(response) == ["4 partitions that nobody has go to a", "3 partitions that nobody has go to b"]
    unknown = Queue.objects.create(tenant=queue.tenant, name="New", topic="new", handler="log", partitions=2)
    response = browser.post(reverse("resize_queue", args=[unknown.pk]), {"partitions": "3"})
    assert "new.2" in text_of(response)
    assert not drawn(response)


def test_a_plan_is_applied(browser, cluster) -> None:
    url = reverse("plan_rebalance")
    planned = browser.get(url, {"leaving": ["b"]})
    assert '<input type="hidden" name="leaving" value="b">' in planned.content.decode()
    done = browser.post(url, {"leaving": ["b"], "reason": "new disk"}, follow=True)
    assert done.redirect_chain[0][0] == reverse("rebalance", args=[newest_rebalance().pk])
    assert "new disk" in text_of(done)
    assert ServiceInstance.objects.get(service_id="b").is_draining
    assert Operation.objects.get().created_by.username == "root"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"reason": " "}, "say in 1 to 500 characters why"),
        ({"leaving": ["nobody"]}, "nobody is not one of the available choices"),
        ({"joining": "1"}, "a service joins by being started"),
        ({"joining": "-1"}, "greater than or equal to 0"),
        ({"joining_ids": "a b"}, "a b"),
        ({"joining_ids": "a"}, "is there already"),
        ({"weight": "0"}, "greater than or equal to 0.001"),
        ({"partitions": "4"}, "Choose both"),
    ],
)
def test_what_was_typed_is_kept_when_it_is_refused(browser, cluster, typed, told) -> None:
    response = browser.post(reverse("plan_rebalance"), {"reason": "because", "leaving": ["b"], **typed})
    assert response.status_code == 200
    assert told in text_of(response).replace("&#x27;", "'")
    form = response.context["form"]
    for name, value in typed.items():
        assert form[name].value() == value
    assert not Operation.objects.exists()
    assert not ServiceInstance.objects.filter(is_draining=True).exists()


def test_hostile_names_are_only_ever_text(browser, cluster) -> None:
    Partition.objects.filter(name="orders.0").update(owner=HOSTILE, target=HOSTILE, queue=HOSTILE, label=HOSTILE)
    ServiceInstance.objects.filter(service_id="b").update(host=HOSTILE, labels=[HOSTILE, HOSTILE])
    for name in LISTS:
        assert HOSTILE not in browser.get(reverse(name)).content.decode()


def test_the_overview_leads_to_services(browser, cluster) -> None:
    assert f'href="{reverse("services")}">All services' in browser.get(reverse("overview")).content.decode()
