"""Lag over REST: of partitions, of queues, of all of them, and how it was."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from queueapi.choices import Role
from queueapi.models import LagCurrent, LagDay, LagHour, LagMinute
from tests.integration.figures_kit import NOON, World, lag, two_tenants
from tests.people import api_of, person

LAG, QUEUES = "/api/v1/lag", "/api/v1/queues"


@pytest.fixture
def world(db) -> World:
    """With figures of all queues."""
    made = two_tenants()
    lag(made.shared, 0, lag_messages=5, lag_seconds=2.0, status="warn", trend_per_s=1.0, reason="WARN: grows")
    lag(made.shared, 1, lag_messages=7, lag_seconds=None, drain_eta_s=3.0)
    lag(
        made.own, lag_messages=40, lag_seconds=8.5, status="stop", reason="STOP: no commit for 4 min", status_since=NOON
    )
    lag(made.foreign, lag_messages=900, lag_seconds=90.0, status="stall")
    return made


@pytest.fixture
def api(db) -> APIClient:
    return api_of(person("root", Role.AUDITOR))


@pytest.fixture
def tenants_api(world) -> APIClient:
    return api_of(person("ada", Role.TENANT_VIEWER, world.tenant))


def listed(answer: Any, name: str = "lag_messages") -> list[Any]:
    assert answer.status_code == 200, answer.content
    return [row[name] for row in answer.json()["results"]]


def test_a_partition_tells_all_that_is_known_of_it(api, world) -> None:
    [row] = api.get(LAG, {"queue": world.own.id}).json()["results"]
    assert (row["queue_name"], row["tenant"], row["partition"]) == ("Own", str(world.tenant.id), 0)
    assert (row["status"], row["reason"]) == ("stop", "STOP: no commit for 4 min")
    assert (row["lag_seconds"], row["status_since"]) == (8.5, "2026-03-14T12:00:00Z")
    assert all(row[name] is None for name in ("trend_per_s", "drain_eta_s", "oldest_age_s"))
    assert api.get(f"{LAG}/{row['id']}").json() == row


@pytest.mark.parametrize(
    ("asked", "messages"),
    [
        ({"status": "stop"}, [40]),
        ({"lag_messages__gte": 40}, [40, 900]),
        ({"lag_seconds__gte": 8.5}, [40, 900]),
        ({"status": "ok", "lag_seconds__gte": 0}, []),
    ],
)
def test_a_list_is_narrowed(api, world, asked, messages) -> None:
    assert sorted(listed(api.get(LAG, asked))) == messages


def test_a_tenants_queues_are_asked_for_by_the_tenant(api, world) -> None:
    assert listed(api.get(LAG, {"tenant": world.other.id})) == [900]
    assert listed(api.get(f"{LAG}/queues", {"tenant": world.other.id})) == [900]


@pytest.mark.parametrize(
    ("ordering", "messages"),
    [
        ("-lag_messages", [900, 40, 7, 5]),
        ("lag_messages", [5, 7, 40, 900]),
        ("-lag_seconds", [900, 40, 5, 7]),
        ("lag_seconds", [7, 5, 40, 900]),
    ],
)
def test_the_worst_come_first_page_by_page_and_the_unknown_last(api, world, ordering, messages) -> None:
    answer, found = api.get(LAG, {"ordering": ordering, "page_size": 1}), []
    while True:
        found += listed(answer)
        if (following := answer.json()["next"]) is None:
            break
        answer = api.get(following)
    assert found == messages


def test_a_queue_is_as_its_worst_partition(api, world) -> None:
    shared = api.get(f"{QUEUES}/telemetry/lag").json()
    assert (shared["status"], shared["worst_partition"], shared["reason"]) == ("warn", 0, "WARN: grows")
    assert (shared["partitions"], shared["lag_messages"], shared["lag_seconds"]) == (2, 12, 2.0)
    assert (shared["statuses"]["ok"], shared["statuses"]["warn"], shared["statuses"]["stop"]) == (1, 1, 0)
    assert shared["drain_eta_s"] is None, "one of them never catches up"
    LagCurrent.objects.filter(queue=world.shared).update(drain_eta_s=4.0)
    assert api.get(f"{QUEUES}/telemetry/lag").json()["drain_eta_s"] == 4.0


def test_a_queue_that_nobody_has_sampled_is_listed_as_such(api, world) -> None:
    LagCurrent.objects.filter(queue=world.shared).delete()
    rows = {row["queue"]: row for row in api.get(f"{LAG}/queues").json()["results"]}
    unknown = rows[str(world.shared.id)]
    assert (unknown["partitions"], unknown["status"], unknown["lag_messages"]) == (0, None, None)
    assert rows[str(world.own.id)]["status"] == "stop"


def test_queues_are_asked_for_by_what_a_partition_of_theirs_is(api, world) -> None:
    assert listed(api.get(f"{LAG}/queues", {"status": "ok"}), "queue") == [str(world.shared.id)]


def test_all_of_it_together(api, world) -> None:
    totals = api.get(f"{LAG}/totals").json()
    assert (totals["partitions"], totals["lag_messages"], totals["lag_seconds"]) == (4, 952, 90.0)
    assert api.get(f"{LAG}/totals", {"status": "stop"}).json()["lag_messages"] == 40


@pytest.fixture
def silent(world) -> None:
    """Samples are fresh, but for two partitions of which none come any more: all of the foreign queue's, and one of the
    shared one's, which was the worst."""
    LagCurrent.objects.update(as_of=timezone.now())
    behind = LagCurrent.objects.filter(queue=world.foreign) | LagCurrent.objects.filter(queue=world.shared, partition=0)
    behind.update(as_of=timezone.now() - timedelta(minutes=5))


def test_what_is_not_sampled_any_more_does_not_count(api, world, silent) -> None:
    totals = api.get(f"{LAG}/totals").json()
    assert (totals["partitions"], totals["unsampled"]) == (2, 2)
    assert (totals["lag_messages"], totals["lag_seconds"], totals["statuses"]["stall"]) == (47, 8.5, 0)
    assert api.get(f"{LAG}/totals", {"status": "stall"}).json()["lag_messages"] is None
    assert len(listed(api.get(LAG))) == 4, "each says itself of when it is"


def test_queues_are_not_found_by_what_is_not_sampled_any_more(api, world, silent) -> None:
    found = {status: listed(api.get(f"{LAG}/queues", {"status": status})) for status in ("ok", "warn", "stall", "stop")}
    assert found == {"ok": [7], "warn": [], "stall": [], "stop": [40]}


def test_a_queue_is_as_its_worst_partition_that_is_sampled(api, world, silent) -> None:
    shared = api.get(f"{QUEUES}/telemetry/lag").json()
    assert (shared["status"], shared["worst_partition"], shared["partitions"]) == ("ok", 1, 1)
    assert (shared["lag_messages"], shared["lag_seconds"]) == (7, None)


def test_a_queue_of_which_nothing_is_sampled_any_more_is_told_as_it_was(api, world, silent) -> None:
    foreign = api.get(f"{QUEUES}/{world.foreign.id}/lag").json()
    assert (foreign["status"], foreign["lag_messages"], foreign["partitions"]) == ("stall", 900, 1)
    assert foreign["as_of"] < (timezone.now() - timedelta(minutes=4)).isoformat()


def test_where_no_samples_come_at_all_those_count_that_came_to_the_end(api, world) -> None:
    """Within a minute: not all are sampled at once."""
    LagCurrent.objects.filter(queue=world.own).update(as_of=NOON - timedelta(seconds=59))
    LagCurrent.objects.filter(queue=world.foreign).update(as_of=NOON - timedelta(seconds=61))
    totals = api.get(f"{LAG}/totals").json()
    assert (totals["lag_messages"], totals["unsampled"], totals["as_of"]) == (52, 1, "2026-03-14T12:00:00Z")
    assert listed(api.get(f"{LAG}/queues", {"status": "stop"})) == [40]


def test_a_clock_that_is_ahead_leaves_nobody_out(api, world) -> None:
    LagCurrent.objects.update(as_of=timezone.now())
    LagCurrent.objects.filter(queue=world.own).update(as_of=timezone.now() + timedelta(minutes=5))
    assert api.get(f"{LAG}/totals").json()["unsampled"] == 0


def test_a_tenants_people_see_their_own_and_the_shared(tenants_api, world) -> None:
    assert sorted(listed(tenants_api.get(LAG))) == [5, 7, 40]
    assert sorted(listed(tenants_api.get(f"{LAG}/queues"))) == [12, 40]
    assert tenants_api.get(f"{LAG}/totals").json()["lag_messages"] == 52
    assert tenants_api.get(f"{QUEUES}/own/lag").json()["lag_messages"] == 40
    assert tenants_api.get(f"{QUEUES}/{world.foreign.id}/lag").status_code == 404
    assert listed(tenants_api.get(f"{LAG}/queues", {"tenant": world.other.id})) == []


def _fill(queue: Any) -> None:
    """A point each minute, hour and day up to noon; how many messages lag says of what."""
    for model, stretch, messages in ((LagMinute, "minutes", 1), (LagHour, "hours", 60), (LagDay, "days", 1440)):
        at = NOON - timedelta(hours=12) if model is LagDay else NOON
        points = [at - timedelta(**{stretch: number}) for number in range(5)]
        model.objects.bulk_create(model(queue=queue, at=point, lag_messages=messages, samples=3) for point in points)


@pytest.mark.parametrize(
    ("begin", "resolution", "messages", "first"),
    [
        ("2026-03-14T11:57:30Z", "minute", 1, "2026-03-14T11:57:00Z"),
        ("2026-03-14T06:00:00Z", "minute", 1, "2026-03-14T11:56:00Z"),
        ("2026-03-14T05:59:59Z", "hour", 60, "2026-03-14T08:00:00Z"),
        ("2026-02-28T11:59:59Z", "day", 1440, "2026-03-10T00:00:00Z"),
    ],
)
def test_a_history_is_of_stretches_that_fit_its_length(api, world, begin, resolution, messages, first) -> None:
    _fill(world.own)
    asked = {"from": begin, "to": "2026-03-14T12:00:00Z", "tenant": str(world.tenant.id)}
    told = api.get(f"{QUEUES}/own/lag/history", asked).json()
    assert told["resolution"] == resolution
    assert {point["lag_messages"] for point in told["points"]} == {messages}
    assert told["points"][0]["at"] == first
    assert all(point["at"] < "2026-03-14T12:00:00Z" for point in told["points"])


def test_a_history_is_of_the_resolution_that_is_asked_for(api, world) -> None:
    _fill(world.shared)
    asked = {"from": "2026-03-14T09:30:00Z", "to": "2026-03-14T12:00:00Z", "resolution": "hour"}
    told = api.get(f"{QUEUES}/telemetry/lag/history", asked).json()
    assert (told["from"], told["to"]) == ("2026-03-14T09:00:00Z", "2026-03-14T12:00:00Z")
    assert [point["at"][11:13] for point in told["points"]] == ["09", "10", "11"]


def test_a_history_is_of_the_last_hour_where_nothing_is_said(api, world) -> None:
    told = api.get(f"{QUEUES}/telemetry/lag/history").json()
    assert (told["resolution"], told["points"]) == ("minute", [])


@pytest.mark.parametrize(
    ("asked", "field", "remedy"),
    [
        ({"from": "2026-03-14T12:00:00Z", "to": "2026-03-14T12:00:00Z"}, "from", "is not before `to`"),
        (
            {"from": "2026-03-12T00:00:00Z", "to": "2026-03-14T12:00:00Z", "resolution": "minute"},
            "from",
            "up to 1,500 points, one for each minute",
        ),
        ({"to": "0001-01-01T00:00:00Z"}, "to", "there is no time an hour before it"),
        ({"resolution": "week"}, "resolution", "week"),
    ],
)
def test_a_history_that_cannot_be_told_is_refused_with_what_to_ask_instead(api, world, asked, field, remedy) -> None:
    answer = api.get(f"{QUEUES}/telemetry/lag/history", asked)
    assert answer.status_code == 400
    assert remedy in answer.json()["errors"][field][0]


@pytest.mark.parametrize("path", ["lag/history", "processing", "heat"])
def test_another_tenants_figures_do_not_exist(tenants_api, world, path) -> None:
    assert tenants_api.get(f"{QUEUES}/{world.foreign.id}/{path}").status_code == 404
    assert tenants_api.get(f"{QUEUES}/telemetry/{path}").status_code == 200
