"""The same journey on Kafka, PostgreSQL and Redis: other settings, nothing else."""

import shutil
from uuid import uuid4

import pytest

from queuecore.testing.waiting import wait_until
from queuecore.topics import SYSTEM_TENANT
from tests.services import require_or_skip
from tests.system import RunningSystem

FIRST_LAG_S = 400


@pytest.fixture(scope="module")
def system(tmp_path_factory, kafka_service, postgres_service, redis_service):
    if shutil.which("java") is None:
        require_or_skip("Java 17 is not installed, so Spark cannot compute the lag; install openjdk-17-jre-headless")
    services = (kafka_service, postgres_service, redis_service)
    environment = {name: value for service in services for name, value in service.environment().items()}
    with RunningSystem(tmp_path_factory.mktemp("stack"), "--demo", environment=environment) as running:
        running.wait_for_demo()
        yield running


def letter_of(system: RunningSystem, entity: str) -> dict | None:
    return next((letter for letter in system.get_all("dead-letters") if letter["key"] == entity), None)


def test_a_message_fails_is_replayed_and_succeeds(system: RunningSystem) -> None:
    entity = str(uuid4())
    reading = {"sensor": 1, "temperature": 20.0, "fault": "until_replayed"}
    body = {"tenant": str(SYSTEM_TENANT), "entity": entity, "payload": reading}
    assert system.request("POST", "queues/main/messages", body)["offset"] >= 0
    letter = wait_until(lambda: letter_of(system, entity))
    operation = system.request("POST", f"dead-letters/{letter['id']}/replay")
    wait_until(lambda: system.request("GET", f"operations/{operation['id']}")["state"] == "succeeded")
    wait_until(lambda: system.request("GET", f"dead-letters/{letter['id']}")["state"] == "replayed")


def test_spark_computes_the_lag_from_kafka(system: RunningSystem) -> None:
    lag = wait_until(lambda: {row["topic"]: row for row in system.get_all("lag")}, FIRST_LAG_S)
    assert {f"tb_core.{number}" for number in range(3)} <= lag.keys()
    wait_until(lambda: any(row["committed_offset"] for row in system.get_all("lag")), FIRST_LAG_S)
