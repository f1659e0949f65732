"""What is asked of figures in a database's own way, PostgreSQL answers as SQLite does."""

from datetime import date

import pytest
from rest_framework.test import APIClient

from queueapi.choices import Role
from queueapi.models import TenantUsageDay
from tests.integration.figures_kit import lag, two_tenants
from tests.people import api_of, person

API = "/api/v1"


@pytest.fixture
def api(database) -> APIClient:
    """On figures of seven partitions, of some of which the seconds are not known."""
    made = two_tenants()
    for number, seconds in enumerate((None, 2.25, 0.0, 8.5, 8.5, None)):
        lag(made.shared, number, lag_messages=number, lag_seconds=seconds, status="stall" if number == 2 else "ok")
    lag(made.own, lag_messages=2**40, status="stop")
    for day in (1, 2):
        TenantUsageDay.objects.create(tenant_id=made.other.pk, day=date(2026, 3, day), sent=2**40, stored_bytes=day)
    return api_of(person("root", Role.AUDITOR))


@pytest.mark.parametrize("ordering", ["lag_seconds", "-lag_seconds"])
def test_rows_have_one_order_however_they_are_paged(api, ordering) -> None:
    at_once = [row["id"] for row in api.get(f"{API}/lag", {"ordering": ordering}).json()["results"]]
    address, found = f"{API}/lag?ordering={ordering}&page_size=2", []
    while address:
        page = api.get(address).json()
        found += [row["id"] for row in page["results"]]
        address = page["next"]
    assert found == at_once
    assert len(found) == len(set(found)) == 7
    known = [row["lag_seconds"] for row in api.get(f"{API}/lag", {"ordering": "-lag_seconds"}).json()["results"]]
    assert known == [8.5, 8.5, 2.25, 0.0, None, None, None]


def test_figures_are_added_up_and_the_worst_is_found(api) -> None:
    shared = api.get(f"{API}/queues/telemetry/lag").json()
    assert (shared["status"], shared["worst_partition"], shared["lag_messages"]) == ("stall", 2, 15)
    totals = api.get(f"{API}/lag/totals").json()
    assert (totals["lag_messages"], totals["lag_seconds"]) == (2**40 + 15, 8.5)
    assert totals["statuses"] == {"ok": 5, "warn": 0, "stop": 1, "stall": 1, "rewind": 0}
    assert len(api.get(f"{API}/lag/queues", {"status": "ok"}).json()["results"]) == 1


def test_days_are_added_up(api) -> None:
    [total] = api.get(f"{API}/usage/totals").json()["results"]
    assert (total["tenant_name"], total["sent"], total["stored_byte_days"]) == ("Foundry", 2**41, 3)


def test_prometheus_is_shown_the_same(api) -> None:
    lines = b"".join(api.get("/metrics")).decode().splitlines()
    assert f'queue_consumer_lag{{queue="Own",tenant="Greenhouse",group="g",partition="0"}} {2**40}' in lines
    assert 'queue_consumer_lag_seconds{queue="Telemetry",tenant="System",group="g",partition="1"} 2.25' in lines
