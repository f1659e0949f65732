"""Fixtures that give tests a real Kafka, PostgreSQL and Redis, started once for the whole run.

A service that cannot be had here skips the test with the reason; with CI=true it fails it, so that a
pipeline cannot turn green by missing its services.
"""

import os
import shutil
from collections.abc import Iterator
from typing import NoReturn, Protocol, TypeVar

import pytest

from queuecore.testing.services import KafkaService, PostgresService, RedisService, ServiceMissing


class Startable(Protocol):
    """A service, or several that belong together."""

    def start(self) -> None: ...

    def erase(self) -> None: ...


# Members may be missed soon, and hear soon what the group decided: a broker's own are seconds.
QUICK_GROUPS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
}

AnyService = TypeVar("AnyService", bound=Startable)


def require_or_skip(reason: str) -> NoReturn:
    """End the test because something is missing: a skip here, a failure where CI=true promises it is there."""
    if os.environ.get("CI", "").lower() in {"1", "true", "yes"}:
        pytest.fail(f"CI must have this: {reason}", pytrace=False)
    pytest.skip(reason)


def require_program(name: str) -> None:
    """End the test when a program that it runs is not installed."""
    if shutil.which(name) is None:
        require_or_skip(f"{name} is not installed: run scripts/require {name}")


def running(service: AnyService) -> Iterator[AnyService]:
    """Yield the service, started; erase it afterwards. Ends the test when it cannot be had."""
    try:
        service.start()
    except ServiceMissing as error:
        require_or_skip(str(error))
    try:
        yield service
    finally:
        service.erase()


@pytest.fixture(scope="session")
def kafka_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaService]:
    """A Kafka broker for the whole run; tests keep apart by topic and group names of their own."""
    yield from running(KafkaService(tmp_path_factory.mktemp("kafka"), ephemeral=True, settings=QUICK_GROUPS))


@pytest.fixture(scope="session")
def postgres_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresService]:
    """A PostgreSQL server for the whole run; its user may create further databases."""
    yield from running(PostgresService(tmp_path_factory.mktemp("postgres"), ephemeral=True))


@pytest.fixture(scope="session")
def redis_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisService]:
    """A Redis server for the whole run; tests keep apart by key prefixes or database numbers."""
    yield from running(RedisService(tmp_path_factory.mktemp("redis"), ephemeral=True))
