"""The rest of what the pipeline computes, over REST: processing, heat, letters, requests, usage, and itself."""

import csv
import io
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from queueapi.choices import Role
from queueapi.models import (
    DeadLetterTrend,
    PartitionHeat,
    ProcessingDay,
    ProcessingHour,
    ProcessingMinute,
    QueueSkew,
    RequestCurrent,
    RequestDay,
    RequestHour,
    RequestStats,
    TenantUsageDay,
)
from tests.integration.figures_kit import NOON, World, lag, ran, two_tenants
from tests.letters import make_letter
from tests.people import api_of, person

API = "/api/v1"
TIME = {"from": "2026-03-14T11:00:00Z", "to": "2026-03-14T12:00:00Z"}


@pytest.fixture
def world(db) -> World:
    return two_tenants()


@pytest.fixture
def api(db) -> APIClient:
    return api_of(person("root", Role.AUDITOR))


@pytest.fixture
def tenants_api(world) -> APIClient:
    return api_of(person("ada", Role.TENANT_VIEWER, world.tenant))


def test_what_became_of_messages_is_told_by_the_minute(api, tenants_api, world) -> None:
    for minutes in (1, 60, 61):
        at = NOON - timedelta(minutes=minutes)
        ProcessingMinute.objects.create(queue=world.shared, at=at, handled=minutes, failed=2, p99_ms=12.5, buckets=[1])
    for client in (api, tenants_api):
        told = client.get(f"{API}/queues/telemetry/processing", TIME).json()
        assert [(point["at"], point["handled"]) for point in told["points"]] == [
            ("2026-03-14T11:00:00Z", 60),
            ("2026-03-14T11:59:00Z", 1),
        ]
        assert (told["points"][0]["failed"], told["points"][0]["p99_ms"], told["resolution"]) == (2, 12.5, "minute")


@pytest.mark.parametrize(("asked", "model"), [("hour", ProcessingHour), ("day", ProcessingDay)])
def test_what_became_of_messages_is_told_of_longer_stretches(api, tenants_api, world, asked, model) -> None:
    model.objects.create(queue=world.shared, at=NOON.replace(hour=0), handled=5, p99_ms=9.5, buckets=[1])
    for client in (api, tenants_api):
        query = {"from": "2026-03-14T00:00:00Z", "to": "2026-03-14T12:00:00Z", "resolution": asked}
        told = client.get(f"{API}/queues/telemetry/processing", query).json()
        assert told["resolution"] == asked
        assert [(point["at"], point["p99_ms"]) for point in told["points"]] == [("2026-03-14T00:00:00Z", 9.5)]


def _heat(world: World, queue: Any) -> None:
    tenants = [str(world.tenant.id), str(world.other.id), ""]
    shares = [{"tenant_id": tenant, "messages": 3} for tenant in tenants]
    entities = [{**share, "key": str(number), "is_uuid": False} for number, share in enumerate(shares)]
    for partition in range(3):
        told = {"messages": 10 * partition, "share": partition / 3, "entities": entities, "tenants": shares}
        PartitionHeat.objects.create(queue=queue, partition=partition, is_hot=partition == 2, as_of=NOON, **told)
    other = {"partitions": 12, "hash_function": "sha256", "skew": 1.1, "moved": 0.75}
    QueueSkew.objects.create(queue=queue, skew=2.0, entities_seen=40, what_if=[other], as_of=NOON)


def test_how_evenly_messages_are_spread_and_what_would_change_that(api, world) -> None:
    _heat(world, world.shared)
    told = api.get(f"{API}/queues/telemetry/heat").json()
    assert (told["skew"], told["entities_seen"], told["partition_count"]) == (2.0, 40, 3)
    assert told["what_if"] == [{"partitions": 12, "hash_function": "sha256", "skew": 1.1, "moved": 0.75}]
    assert [(row["partition"], row["is_hot"]) for row in told["partitions"]] == [(2, True), (1, False), (0, False)]
    assert [row["key"] for row in told["partitions"][0]["entities"]] == ["0", "1", "2"]


def test_a_tenant_sees_of_a_shared_queues_heat_which_entities_are_its_own(tenants_api, world) -> None:
    _heat(world, world.shared)
    for row in tenants_api.get(f"{API}/queues/telemetry/heat").json()["partitions"]:
        assert [share["tenant"] for share in row["entities"]] == [str(world.tenant.id)]
        assert [share["tenant"] for share in row["tenants"]] == [str(world.tenant.id)]


def test_in_a_queue_of_its_own_all_of_it_is_the_tenants(tenants_api, world) -> None:
    _heat(world, world.own)
    [row, *_] = tenants_api.get(f"{API}/queues/own/heat").json()["partitions"]
    assert len(row["entities"]) == 3


def test_heat_that_nobody_has_counted(api, world) -> None:
    told = api.get(f"{API}/queues/telemetry/heat").json()
    assert all(told[name] is None for name in ("skew", "entities_seen", "as_of"))
    assert (told["what_if"], told["partition_count"], told["partitions"]) == ([], 0, [])


def test_when_the_letters_of_a_group_came(api, world) -> None:
    group = make_letter(world.shared).group
    for hours in (1, 2, 300):
        told = {"fingerprint": group.fingerprint, "at": NOON - timedelta(hours=hours), "letters": hours}
        DeadLetterTrend.objects.create(queue=world.shared, **told)
    DeadLetterTrend.objects.create(queue=world.shared, fingerprint="another", at=NOON, letters=9)
    told = api.get(f"{API}/dead-letter-groups/{group.pk}/trend", {"to": "2026-03-14T12:00:00Z"}).json()
    assert (told["resolution"], told["from"]) == ("hour", "2026-03-07T12:00:00Z")
    assert [point["letters"] for point in told["points"]] == [2, 1]


@pytest.fixture
def requests(db) -> None:
    for service, topic, pending, as_of in (
        ("shop-1", "prices", 5, NOON),
        ("shop-1", "stock", 9000, NOON),
        ("shop-2", "prices", 0, NOON - timedelta(seconds=20)),
        ("gone-1", "prices", 70, NOON - timedelta(hours=1)),
    ):
        figures = {"pending": pending, "timed_out": pending // 10, "oldest_pending_ms": pending, "lag_p99_ms": 40.0}
        asked = {"service_id": service, "request_topic": topic, **figures}
        RequestCurrent.objects.create(**asked, as_of=as_of)
        RequestStats.objects.create(**asked, at=as_of)


def test_pending_requests_have_the_worst_first(api, requests) -> None:
    rows = api.get(f"{API}/pending-requests").json()["results"]
    assert [row["pending"] for row in rows] == [9000, 70, 5, 0]
    assert api.get(f"{API}/pending-requests/{rows[0]['id']}").json() == rows[0]
    by_name = api.get(f"{API}/pending-requests", {"ordering": "service_id"}).json()["results"]
    assert [row["service_id"] for row in by_name] == ["gone-1", "shop-1", "shop-1", "shop-2"]


@pytest.mark.parametrize(
    ("asked", "pending"),
    [
        ({"service_id": "shop-1"}, [9000, 5]),
        ({"request_topic": "prices", "pending__gte": 5}, [70, 5]),
        ({"timed_out__gte": 100}, [9000]),
    ],
)
def test_pending_requests_are_narrowed(api, requests, asked, pending) -> None:
    rows = api.get(f"{API}/pending-requests", asked).json()["results"]
    assert [row["pending"] for row in rows] == pending


def test_who_is_gone_waits_for_nothing(api, requests) -> None:
    totals = api.get(f"{API}/pending-requests/totals").json()
    assert (totals["services"], totals["counts"]["pending"], totals["counts"]["timed_out"]) == (2, 9005, 900)
    assert (totals["oldest_pending_ms"], totals["slowest_p99_ms"]) == (9000, 40.0)
    assert totals["as_of"] == "2026-03-14T12:00:00Z"


def test_nobody_asks_anything(api) -> None:
    totals = api.get(f"{API}/pending-requests/totals").json()
    assert (totals["services"], totals["counts"]["pending"], totals["as_of"]) == (0, 0, None)


def test_what_requests_were_like(api, requests) -> None:
    asked = {"from": "2026-03-14T11:30:00Z", "to": "2026-03-14T12:00:00Z"}
    [row] = api.get(f"{API}/pending-requests/history", asked).json()["results"]
    assert (row["service_id"], row["at"]) == ("shop-2", "2026-03-14T11:59:40Z")
    assert len(api.get(f"{API}/pending-requests/history", {"service_id": "shop-1"}).json()["results"]) == 2


def test_what_requests_were_like_in_longer_stretches(api, requests) -> None:
    RequestHour.objects.create(service_id="shop-1", request_topic="prices", at=NOON, pending=5)
    RequestDay.objects.create(service_id="shop-1", request_topic="prices", at=NOON.replace(hour=0), pending=9)
    told = [
        [row["pending"] for row in api.get(f"{API}/pending-requests/history", asked).json()["results"]]
        for asked in ({"resolution": "hour"}, {"resolution": "day"}, {"resolution": "day", "service_id": "shop-2"})
    ]
    assert told == [[5], [9], []]
    refused = api.get(f"{API}/pending-requests/history", {"resolution": "week"})
    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["resolution"])


@pytest.fixture
def usage(world) -> None:
    gone = uuid4()
    for number, tenant in enumerate((world.tenant.id, world.other.id, gone), 1):
        for day in (1, 2, 3):
            told = {"sent": number, "handled": 10 * number, "stored_bytes": 100 * day}
            TenantUsageDay.objects.create(tenant_id=tenant, day=date(2026, 3, day), **told)


def test_usage_by_day(api, world, usage) -> None:
    rows = api.get(f"{API}/usage", {"tenant": world.other.id, "to": "2026-03-03"}).json()["results"]
    assert [(row["day"], row["tenant_name"], row["sent"]) for row in rows] == [
        ("2026-03-02", "Foundry", 2),
        ("2026-03-01", "Foundry", 2),
    ]
    names = {row["tenant_name"] for row in api.get(f"{API}/usage").json()["results"]}
    assert names == {world.tenant.name, "Foundry", None}


def test_usage_in_all(api, world, usage) -> None:
    answer = api.get(f"{API}/usage/totals", {"from": "2026-03-02", "page_size": 2}).json()
    rows = answer["results"] + api.get(answer["next"]).json()["results"]
    assert len(rows) == 3
    [row] = [row for row in rows if row["tenant"] == str(world.other.id)]
    assert (row["days"], row["sent"], row["handled"], row["tenant_name"]) == (2, 4, 40, "Foundry")
    assert (row["most_stored_bytes"], row["stored_byte_days"]) == (300, 500)


def test_of_who_has_no_queues_nobody_says_that_nothing_is_stored(api, world) -> None:
    TenantUsageDay.objects.create(tenant_id=world.tenant.id, day=date(2026, 3, 1), sent=5)
    [day] = api.get(f"{API}/usage").json()["results"]
    [total] = api.get(f"{API}/usage/totals").json()["results"]
    assert (day["stored_bytes"], total["most_stored_bytes"], total["stored_byte_days"]) == (None, None, None)


def test_usage_as_a_file(api, usage) -> None:
    answer = api.get(f"{API}/usage/export.csv", {"from": "2026-03-03"})
    assert answer["Content-Disposition"] == 'attachment; filename="usage.csv"'
    rows = list(csv.DictReader(io.StringIO(b"".join(answer).decode())))
    assert sorted(row["handled"] for row in rows) == ["10", "20", "30"]
    assert {row["day"] for row in rows} == {"2026-03-03"}


def test_a_tenant_sees_what_itself_used(tenants_api, world, usage) -> None:
    assert {row["tenant"] for row in tenants_api.get(f"{API}/usage").json()["results"]} == {str(world.tenant.id)}
    assert len(tenants_api.get(f"{API}/usage/totals").json()["results"]) == 1
    assert tenants_api.get(f"{API}/usage", {"tenant": str(world.other.id)}).json()["results"] == []
    rows = csv.DictReader(io.StringIO(b"".join(tenants_api.get(f"{API}/usage/export.csv")).decode()))
    assert {row["tenant"] for row in rows} == {str(world.tenant.id)}


def test_the_pipeline_says_how_it_is(api) -> None:
    ran(timezone.now(), error="Java is missing; install Java 17", code="java_missing", failed_runs=3, backlog_events=9)
    told = api.get(f"{API}/pipeline").json()
    assert (told["stale"], told["running"], told["failed_runs"], told["backlog_events"]) == (False, True, 3, 9)
    assert (told["error"], told["code"]) == ("Java is missing; install Java 17", "java_missing")
    [run] = told["runs"]
    assert (run["batch_id"], run["events"], run["newest_event_at"]) == (7, 120, told["as_of"])


def test_a_pipeline_that_never_ran(api) -> None:
    told = api.get(f"{API}/pipeline").json()
    assert (told["as_of"], told["ran_at"], told["error"], told["running"], told["runs"]) == (
        None,
        None,
        None,
        False,
        [],
    )


def test_a_pipeline_that_stopped_is_stale(api) -> None:
    ran(timezone.now() - timedelta(minutes=5))
    told = api.get(f"{API}/pipeline").json()
    assert (told["stale"], told["running"]) == (True, False)


@pytest.mark.parametrize(
    ("path", "queries"),
    [
        ("lag/totals", 2),
        ("queues/telemetry/lag", 3),
        ("queues/telemetry/lag/history", 3),
        ("queues/telemetry/processing", 3),
        ("queues/telemetry/heat", 5),
        ("dead-letter-groups/{group}/trend", 2),
        ("pending-requests/totals", 2),
        ("pipeline", 3),
    ],
)
def test_figures_are_asked_for_so_often(api, world, path, queries, django_assert_num_queries) -> None:
    """The queue and its pauses included."""
    _heat(world, world.shared)
    for partition in range(3):
        lag(world.shared, partition)
    ran(timezone.now())
    RequestCurrent.objects.create(service_id="shop-1", request_topic="prices", as_of=timezone.now())
    address = f"{API}/{path}".format(group=make_letter(world.shared).group_id)
    with django_assert_num_queries(queries):
        assert api.get(address).status_code == 200
