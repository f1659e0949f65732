"""Services, partitions and rebalances over REST."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from queueapi.cluster.databases import cluster_database
from queueapi.cluster.models import Partition, Rebalance, ServiceInstance
from queueapi.models import AuditEntry, Operation
from queueapi.selectors.rebalances import REBALANCE
from queuecore.topics import ServiceType
from tests.cluster_kit import FakeCluster, newest_rebalance, partitions_named

SERVICES, PARTITIONS, REBALANCES = "/api/v1/services", "/api/v1/partitions", "/api/v1/rebalances"


@pytest.fixture
def api(installation) -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    return client


@pytest.fixture
def cluster(installation) -> FakeCluster:
    """Three partitions of the installation's queue, and three of a tenant's."""
    tenant = installation.tenant.id
    own = partitions_named("Own", f"own.isolated.{tenant}", 3, tenant)
    cluster = FakeCluster([*partitions_named("Telemetry", "telemetry", 3), *own])
    cluster.join("a", "b.example")
    cluster.settle()
    return cluster


def names(answer) -> list[str]:
    return [row["name"] for row in answer.json()["results"]]


def ids(answer) -> list[str]:
    return [row["service_id"] for row in answer.json()["results"]]


def test_services_are_listed_and_narrowed_down(api, cluster) -> None:
    cluster.join("c", service_types=(ServiceType.EDQS,), weight=2.0, labels=frozenset({"gpu"}))
    ServiceInstance.objects.filter(service_id="a").update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    listed = api.get(SERVICES)
    assert ids(listed) == ["a", "b.example", "c"]
    row = listed.json()["results"][2]
    assert (row["weight"], row["labels"], row["partitions"], row["draining"]) == (2.0, ["gpu"], 0, False)
    assert ids(api.get(SERVICES, {"alive": "true"})) == ["b.example", "c"]
    assert ids(api.get(SERVICES, {"alive": "false"})) == ["a"]
    assert ids(api.get(SERVICES, {"service_type": "TB_CORE"})) == ["a", "b.example"]
    assert ids(api.get(SERVICES, {"service_type": "EDQS", "alive": "true"})) == ["b.example", "c"]
    assert api.get(SERVICES, {"service_type": "NONE"}).status_code == 400


def test_services_come_in_pages(api, cluster) -> None:
    first = api.get(SERVICES, {"page_size": 1})
    assert ids(first) == ["a"]
    assert ids(api.get(first.json()["next"])) == ["b.example"]


def test_one_service_and_what_it_consumes(api, cluster) -> None:
    answer = api.get(f"{SERVICES}/b.example")
    assert answer.status_code == 200
    found = answer.json()
    assert (found["partitions"], found["alive"], found["host"]) == (3, True, "machine-1")
    assert found["partition_names"] == sorted(name for name, owner in cluster.owners().items() if owner == "b.example")
    assert api.get(f"{SERVICES}/nobody").status_code == 404


def test_a_service_is_drained_after_a_plan_and_let_consume_again(api, cluster) -> None:
    planned = api.post(f"{SERVICES}/b.example/drain?dry_run=true")
    assert planned.status_code == 200
    assert {move["source"] for move in planned.json()["moves"]} == {"b.example"}
    assert planned.json()["after"]["services"] == {"a": {"count": 6, "share": 6.0}}
    assert not ServiceInstance.objects.get(service_id="b.example").is_draining

    drained = api.post(f"{SERVICES}/b.example/drain")
    assert (drained.status_code, drained.json()["draining"]) == (200, True)
    cluster.settle()
    assert api.get(f"{SERVICES}/b.example").json()["partition_names"] == []

    assert len(api.post(f"{SERVICES}/b.example/undrain?dry_run=1").json()["moves"]) == 3
    assert api.post(f"{SERVICES}/b.example/undrain").json()["draining"] is False
    assert list(AuditEntry.objects.filter(object_type="service").values_list("action", flat=True)) == [
        "undrain",
        "drain",
    ]


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_a_service_that_was_lost_cannot_be_drained(api, cluster, query) -> None:
    ServiceInstance.objects.filter(service_id="b.example").update(gone_at=timezone.now(), is_lost=True)
    answer = api.post(f"{SERVICES}/b.example/drain{query}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "there is no service 'b.example'" in answer.json()["detail"]


def test_partitions_are_listed_and_narrowed_down(api, cluster, installation) -> None:
    tenant = str(installation.tenant.id)
    every = api.get(PARTITIONS)
    assert names(every) == sorted(cluster.owners())
    row = every.json()["results"][-1]
    assert (row["name"], row["queue"], row["number"], row["settled"]) == ("telemetry.2", "Telemetry", 2, True)
    assert row["owner"] == row["target"] == cluster.owners()["telemetry.2"]
    assert row["epoch"] > 0
    assert len(names(api.get(PARTITIONS, {"queue": "telemetry"}))) == 3
    assert len(names(api.get(PARTITIONS, {"tenant": tenant}))) == 3
    assert len(names(api.get(PARTITIONS, {"owner": "a"}))) == 3
    assert names(api.get(PARTITIONS, {"settled": "false"})) == []

    api.post(f"{SERVICES}/b.example/drain")
    cluster.step()
    assert len(names(api.get(PARTITIONS, {"settled": "false"}))) == 3
    assert len(names(api.get(PARTITIONS, {"settled": "false", "target": "a"}))) == 3
    assert len(names(api.get(PARTITIONS, {"settled": "true"}))) == 3
    assert api.get(f"{PARTITIONS}/telemetry.0").json()["name"] == "telemetry.0"


def test_a_partition_that_nobody_has_says_since_when(api, cluster) -> None:
    cluster.store.leave(cluster.members["b.example"])
    [row, *_] = api.get(PARTITIONS, {"settled": "false"}).json()["results"]
    assert (row["owner"], row["target"]) == (None, "b.example")
    assert row["idle_since"] is not None


def test_partitions_come_in_pages(api, cluster) -> None:
    seen, answer = [], api.get(PARTITIONS, {"page_size": 4})
    while True:
        seen += names(answer)
        if not (following := answer.json()["next"]):
            break
        answer = api.get(following)
    assert seen == sorted(cluster.owners())


@pytest.mark.parametrize("query", [{"tenant": "nobody"}, {"owner": "a\0"}, {"queue": "\0"}, {"cursor": "x"}])
def test_what_no_partition_can_be_is_a_problem_with_a_code(api, cluster, query) -> None:
    answer = api.get(PARTITIONS, query)
    assert answer.status_code == (404 if "cursor" in query else 400)
    assert answer["content-type"] == "application/problem+json"


def test_a_rebalance_is_planned_without_changing_anything(api, cluster) -> None:
    body = {
        "joining": [{"id": "c", "weight": 2}, {"id": "d", "service_types": ["EDQS"]}],
        "partitions": {"telemetry": 5},
    }
    answer = api.post(f"{REBALANCES}?dry_run=true", body)
    assert answer.status_code == 200
    planned = answer.json()
    assert planned["after"]["services"]["c"]["count"] == 4
    assert planned["placements"] == 5
    assert (planned["pause_ms"], planned["pause_is_assumed"]) == (500, True)
    assert any("telemetry would have 5 new partitions instead of its 3" in text for text in planned["warnings"])
    assert any(text.endswith("dedication: d") for text in planned["warnings"])
    assert not Operation.objects.filter(kind=REBALANCE).exists()


def test_a_rebalance_is_asked_for_and_followed(api, cluster) -> None:
    answer = api.post(REBALANCES, {"reason": "new disk", "leaving": ["b.example"]})
    assert (answer.status_code, answer.json()["kind"]) == (202, "rebalance")
    operation = answer.json()["id"]
    cluster.settle()
    [listed] = api.get(REBALANCES, {"cause": "request"}).json()["results"]
    assert (listed["state"], listed["reason"], listed["requested_by"]) == ("done", "new disk", "root")
    assert "listed_moves" not in listed

    found = api.get(f"{REBALANCES}/{listed['id']}").json()
    assert (found["operation"], found["moves"], found["done"], found["total"]) == (operation, 3, 3, 3)
    assert len(found["listed_moves"]) == 3
    assert set(found["listed_moves"][0]) == {"partition", "source", "target"}
    assert found["balance"]["after"]["services"]["a"] == {"count": 6, "share": 6.0}
    assert found["pause_ms"] >= 250


def test_rebalances_are_narrowed_down(api, cluster) -> None:
    api.post(REBALANCES, {"reason": "to be sure"})
    assert len(api.get(REBALANCES).json()["results"]) == 2
    [waiting] = api.get(REBALANCES, {"state": "planned"}).json()["results"]
    [first] = api.get(REBALANCES, {"cause": "membership"}).json()["results"]
    assert (waiting["cause"], first["state"]) == ("request", "done")
    assert api.get(REBALANCES, {"state": "over"}).status_code == 400
    one = api.get(f"{REBALANCES}/{first['id']}").json()
    assert one["operation"] is None


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "say in 1 to 500 characters why"),
        ({"reason": "x" * 501}, "no more than 500 characters"),
        ({"reason": "x", "leaving": ["nobody"]}, "there is no service 'nobody'"),
        ({"reason": "x", "leaving": "a"}, "Expected a list"),
        ({"reason": "x", "joining": [{"id": "c"}]}, "a service joins by being started"),
        ({"reason": "x", "joining": [{"id": "c", "weight": 0}]}, "use more than 0"),
        ({"reason": "x", "joining": [{"id": "a b"}]}, "a b"),
        ({"reason": "x", "joining": [{"id": "c", "service_types": []}]}, "name at least one"),
        ({"reason": "x", "joining": [{"id": "c", "service_types": ["X"]}]}, "not a valid choice"),
        ({"reason": "x", "partitions": {"telemetry": 5}}, "by being resized: resize it"),
        ({"reason": "x", "partitions": {"nowhere": 5}}, "there is no queue 'nowhere'"),
        ({"reason": "x", "partitions": {"telemetry": 0}}, "greater than or equal to 1"),
        ([], "Expected a dictionary"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_with_what_to_do(api, cluster, body, told) -> None:
    answer = api.post(REBALANCES, body)
    assert answer.status_code == 400
    assert answer["content-type"] == "application/problem+json"
    assert answer.json()["code"] in ("invalid_input", "unknown_service")
    assert told in answer.content.decode()
    assert not Operation.objects.filter(kind=REBALANCE).exists()
    assert not ServiceInstance.objects.filter(is_draining=True).exists()


def test_any_rebalance_is_cancelled_once(api, cluster) -> None:
    cluster.join("c")
    cluster.step()
    rebalance = newest_rebalance()
    answer = api.post(f"{REBALANCES}/{rebalance.id}/cancel")
    assert (answer.status_code, answer.json()["unwanted"]) == (202, True)
    cluster.step()
    again = api.post(f"{REBALANCES}/{rebalance.id}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "already_final")
    assert api.post(f"{REBALANCES}/{uuid4()}/cancel").status_code == 404
    assert api.get(f"{REBALANCES}/nonsense").status_code == 404


def test_however_many_there_are_few_questions_are_asked(api, cluster) -> None:
    Rebalance.objects.bulk_create(
        Rebalance(
            state="done", cause="membership", reason=str(number), created_at=timezone.now(), finished_at=timezone.now()
        )
        for number in range(30)
    )
    Partition.objects.bulk_create(
        Partition(name=f"x.{n}", service_type="TB_CORE", queue="X", number=n, tenant=uuid4()) for n in range(40)
    )
    for path, most in ((SERVICES, 1), (PARTITIONS, 1), (REBALANCES, 1), (f"{REBALANCES}/{newest_rebalance().id}", 1)):
        with CaptureQueriesContext(connections[cluster_database()]) as asked:
            assert api.get(path).status_code == 200
        assert len(asked) <= most, path


def test_guests_see_and_change_nothing(cluster) -> None:
    guest = APIClient()
    guest.force_authenticate(User.objects.create_user("guest", password="secret"))
    for path in (SERVICES, PARTITIONS, REBALANCES):
        assert guest.get(path).status_code == 403
    assert guest.post(REBALANCES, {"reason": "x"}).status_code == 403
    assert guest.post(f"{SERVICES}/a/drain").status_code == 403
    assert not ServiceInstance.objects.filter(is_draining=True).exists()
