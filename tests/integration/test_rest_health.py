"""Whether the parts that nobody sees are at work, for a monitor."""

from datetime import timedelta

import pytest
from django.utils import timezone

from queueapi import runtime
from queueapi.cluster.models import ServiceInstance
from queueapi.models import Operation, PipelineRun, PipelineStanding
from queuecore.errors import ProviderUnavailable


def health(client) -> dict[str, str]:
    answer = client.get("/api/v1/health")
    assert answer.status_code == 200
    told = answer.json()
    parts = {part["name"]: part["why"] for part in told["parts"]}
    assert told["status"] == ("degraded" if any(parts.values()) else "ok")
    return {name: why for name, why in parts.items() if why}


@pytest.fixture
def at_work(installation) -> None:
    """A host, and figures that are fresh."""
    now = timezone.now()
    until = now + timedelta(minutes=1)
    ServiceInstance.objects.create(
        service_id="a",
        service_types=["TB_CORE"],
        pid=1,
        started_at=now,
        heartbeat_at=now,
        lease_expires_at=until,
    )
    PipelineRun.objects.create(query="log", batch_id=1, events=1, newest_event_at=now, finished_at=now, started_at=now)


def test_nothing_wrong_is_ok(at_work, admin_client) -> None:
    assert health(admin_client) == {}


def test_each_part_says_what_is_wrong_with_it(at_work, admin_client, monkeypatch) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    ServiceInstance.objects.update(lease_expires_at=long_ago)
    PipelineRun.objects.update(newest_event_at=long_ago, finished_at=long_ago)
    operation = Operation.objects.create(kind="replay", summary="Replay", total=1)
    Operation.objects.filter(pk=operation.pk).update(created_at=long_ago)

    def away(_: object) -> None:
        raise ProviderUnavailable("no broker answers")

    monkeypatch.setattr(type(runtime.provider().admin()), "topic_names", away)
    told = health(admin_client)
    assert told.pop("figures").endswith(
        "UTC: the pipeline does not run, or its run takes long; look at the spark and tasks workers"
    )
    assert told == {
        "provider": "log does not answer: no broker answers",
        "consumers": "no consumer host has a lease: messages wait; start one",
        "tasks": "1 operations wait for a worker for over a minute; look at the tasks workers",
    }


def test_a_pipeline_that_fails_says_why(at_work, admin_client) -> None:
    PipelineStanding.objects.create(ran_at=timezone.now(), error="Java is missing; install Java 17")
    assert health(admin_client) == {"figures": "the pipeline failed: Java is missing; install Java 17"}
