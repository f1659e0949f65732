"""What the web server shows Prometheus: lag, and how fresh it is."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from rest_framework.test import APIClient

from queueapi.choices import Role
from queueapi.models import LagCurrent, Tenant
from queuecore.metrics.names import METRICS
from tests.integration.figures_kit import World, lag, ran, two_tenants
from tests.people import api_of, bearer, person, token_of

METRICS_URL = "/metrics"
# As Prometheus asks.
ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"


@pytest.fixture
def world(db) -> World:
    made = two_tenants()
    lag(made.shared, 0, lag_messages=5, lag_seconds=2.5, consumer_group="a")
    lag(made.shared, 1, lag_messages=7, lag_seconds=None, consumer_group="b")
    lag(made.own, lag_messages=40, lag_seconds=9.0)
    lag(made.foreign, lag_messages=900)
    return made


@pytest.fixture
def api(db) -> APIClient:
    return api_of(person("root", Role.AUDITOR))


def shown(client: APIClient) -> dict[str, dict[tuple[str, ...], float]]:
    """By metric and the values of its labels; read as Prometheus would."""
    answer = client.get(METRICS_URL, headers={"Accept": ACCEPT})
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = list(text_string_to_metric_families(b"".join(answer).decode()))
    told = {metric.name: metric for metric in METRICS}
    assert len({family.name for family in families}) == len(families), "all lines of a metric are together"
    for family in families:
        assert (family.documentation, family.type) == (told[family.name].help, told[family.name].kind)
    return {family.name: {tuple(one.labels.values()): one.value for one in family.samples} for family in families}


def test_lag_of_every_partition(api, world) -> None:
    found = shown(api)
    assert found["queue_consumer_lag"] == {
        ("Telemetry", "System", "a", "0"): 5,
        ("Telemetry", "System", "b", "1"): 7,
        ("Own", "Greenhouse", "g", "0"): 40,
        ("Own", "Foundry", "g", "0"): 900,
    }
    assert found["queue_consumer_lag_seconds"] == {
        ("Telemetry", "System", "a", "0"): 2.5,
        ("Own", "Greenhouse", "g", "0"): 9.0,
    }


def test_lag_of_every_queue_where_partitions_are_too_many(api, world, settings) -> None:
    settings.SWITCHYARD = replace(settings.SWITCHYARD, metrics_lag_by="queue")
    found = shown(api)
    assert found["queue_consumer_lag"] == {
        ("Telemetry", "System"): 12,
        ("Own", "Greenhouse"): 40,
        ("Own", "Foundry"): 900,
    }
    assert found["queue_consumer_lag_seconds"][("Telemetry", "System")] == 2.5


@pytest.mark.parametrize("by", ["partition", "queue"])
def test_what_is_not_sampled_any_more_is_not_told(api, world, settings, by) -> None:
    settings.SWITCHYARD = replace(settings.SWITCHYARD, metrics_lag_by=by)
    LagCurrent.objects.update(as_of=timezone.now())
    LagCurrent.objects.exclude(queue=world.own).exclude(partition=1).update(as_of=timezone.now() - timedelta(minutes=5))
    found = shown(api)
    assert sorted(found["queue_consumer_lag"].values()) == [7, 40]
    assert list(found["queue_consumer_lag_seconds"].values()) == [9.0]


def test_names_are_told_as_they_are(api, world) -> None:
    strange = 'Acme "A\\B"\nLtd'
    Tenant.objects.filter(pk=world.other.pk).update(name=strange)
    assert shown(api)["queue_consumer_lag"][("Own", strange, "g", "0")] == 900


def test_the_pipelines_age_is_there_for_alerts(api, world) -> None:
    ran(timezone.now() - timedelta(minutes=5), failed_runs=3, backlog_events=120)
    found = shown(api)
    [age] = found["switchyard_pipeline_age_seconds"].values()
    assert age >= 301
    assert found["switchyard_pipeline_failed_runs"] == {(): 3}
    assert found["switchyard_pipeline_backlog_events"] == {(): 120}


def test_what_is_not_known_is_not_told(api, world) -> None:
    LagCurrent.objects.all().delete()
    assert shown(api) == {"queue_consumer_lag": {}, "queue_consumer_lag_seconds": {}}
    ran(timezone.now(), backlog_events=None)
    assert "switchyard_pipeline_backlog_events" not in shown(api)


def test_a_tenants_token_shows_its_own_and_the_shared_and_nothing_of_the_system(world) -> None:
    ran(timezone.now())
    _, secret = token_of(person("ada", Role.TENANT_ADMIN, world.tenant), ["lag:read"])
    found = shown(bearer(secret))
    assert {queue[:2] for queue in found["queue_consumer_lag"]} == {("Telemetry", "System"), ("Own", "Greenhouse")}
    assert found.keys() == {"queue_consumer_lag", "queue_consumer_lag_seconds"}


def test_what_prometheus_needs_is_a_token_with_two_scopes(world) -> None:
    ran(timezone.now())
    _, secret = token_of(person("ada", Role.OPERATOR), ["lag:read", "pipeline:read"])
    assert shown(bearer(secret)).keys() >= {"queue_consumer_lag", "switchyard_pipeline_age_seconds"}


def test_nobody_else_is_shown_anything(world) -> None:
    _, secret = token_of(person("ada", Role.OPERATOR), ["queues:read"])
    for client, status, code in ((APIClient(), 401, "not_authenticated"), (bearer(secret), 403, "permission_denied")):
        answer = client.get(METRICS_URL, headers={"Accept": "text/plain"})
        assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_it_asks_once_however_many_partitions_there_are(api, world) -> None:
    few = _asked(api)
    for number in range(2, 6):
        lag(world.shared, number)
    # PostgreSQL reads by cursors, each with a name of its own.
    assert len(_asked(api)) == len(few)
    assert sum("lagcurrent" in query for query in few) == 1


def _asked(client: Any) -> list[str]:
    with CaptureQueriesContext(connection) as asked:
        b"".join(client.get(METRICS_URL))
    return [query["sql"] for query in asked.captured_queries]
