"""Hosts that stand still, are killed, replaced, stopped and cut off from their database, under load: after the first
commit of an epoch none of an earlier one takes effect, no message is lost, and order per entity is kept."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

import psycopg
import pytest

from queuecore.testing.services import KafkaService, PostgresService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.reliability.cluster_cuts import Cuts, PostgresCuts, SqliteCuts
from tests.reliability.cluster_faults import Faults
from tests.reliability.cluster_installation import Installation
from tests.reliability.cluster_judge import Story, judge
from tests.reliability.cluster_rows import PostgresDatabase, SqliteDatabase

# Another one, other faults: for who wants to try many, or one again.
SEED = os.environ.get("TEST_SEED", "7")
SHORT_S: Final = 35.0
LONG_S: Final = float(os.environ.get("TEST_SECONDS", "150"))
# What a host logs where something failed that nobody had thought of.
_UNEXPECTED: Final = ("the cluster agent failed", "the coordinator failed", "the consumer host failed")


def settings(lease_ms: int, session_ms: int, provider: str = "LOG") -> dict[str, str]:
    return {
        "SWITCHYARD_CLUSTER_LEASE_MS": str(lease_ms),
        "SWITCHYARD_CLUSTER_COORDINATOR_LEASE_MS": str(lease_ms // 2),
        "SWITCHYARD_CLUSTER_REBALANCE_DELAY_MS": "100",
        f"SWITCHYARD_QUEUE_{provider}_SESSION_TIMEOUT_MS": str(session_ms),
    }


QUICK: Final = settings(lease_ms=2_000, session_ms=2_000)


def check(installation: Installation, cuts: Cuts, duration_s: float) -> None:
    lease_s = int(installation.settings["SWITCHYARD_CLUSTER_LEASE_MS"]) / 1000
    faults = Faults(installation, cuts, lease_s, SEED)
    print(f"TEST_SEED={SEED}")
    try:
        installation.prepare()
        load = installation.start_load(SEED)
        faults.start()
        faults.run(duration_s)
        assert load.end() == 0, load.log.read_text()[-2000:]
        wait_until_settled(installation, faults)
        for host in faults.hosts.values():
            assert host.end() == 0, f"{host.life}: {host.log.read_text()[-2000:]}"
        assert_kept(installation)
    except AssertionError as error:
        error.add_note(f"again with TEST_SEED={SEED}; journals and logs are in {installation.folder}")
        raise
    finally:
        installation.kill_all()
        print("\n".join(faults.done))


def wait_until_settled(installation: Installation, faults: Faults) -> None:
    """Every partition is a living host's, as evenly as can be, and all that was stored is committed."""
    names = set(faults.hosts)

    def is_settled() -> bool:
        faults.check_in_the_end()
        return installation.database.read().is_settled(names)

    try:
        wait_until(is_settled, DEADLINE_S)
        with installation.provider() as provider:
            wait_until(lambda: installation.is_all_committed(provider), 2 * DEADLINE_S)
    except AssertionError as error:
        error.add_note(installation.database.read().told())
        raise


def assert_kept(installation: Installation) -> None:
    with installation.provider() as provider:
        letters = installation.letters(provider)
    events = installation.events()
    breaches = judge(Story(events, letters))
    assert not breaches, "\n".join(breaches[:20])
    unexpected = [
        f"{one.life}: {line}"
        for one in installation.running
        for line in one.log.read_text().splitlines()
        if any(said in line for said in _UNEXPECTED)
    ]
    assert not unexpected, "\n".join(unexpected)


@contextmanager
def new_database(service: PostgresService) -> Iterator[PostgresDatabase]:
    name = f"cluster_{uuid4().hex[:12]}"
    with psycopg.connect(service.url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    yield PostgresDatabase(f"{service.url.rpartition('/')[0]}/{name}")


def on_sqlite(folder: Path, duration_s: float) -> None:
    database = SqliteDatabase(folder)
    check(Installation(folder, database, QUICK), SqliteCuts(database), duration_s)


def on_postgres(folder: Path, service: PostgresService, duration_s: float) -> None:
    with new_database(service) as database, PostgresCuts(database) as cuts:
        check(Installation(folder, database, QUICK), cuts, duration_s)


class TestShort:
    def test_on_sqlite(self, tmp_path: Path) -> None:
        on_sqlite(tmp_path, SHORT_S)

    def test_on_postgres(self, tmp_path: Path, postgres_service: PostgresService) -> None:
        on_postgres(tmp_path, postgres_service, SHORT_S)


@pytest.mark.full
class TestLong:
    def test_on_sqlite(self, tmp_path: Path) -> None:
        on_sqlite(tmp_path, LONG_S)

    def test_on_postgres(self, tmp_path: Path, postgres_service: PostgresService) -> None:
        on_postgres(tmp_path, postgres_service, LONG_S)

    def test_on_kafka(self, tmp_path: Path, postgres_service: PostgresService, kafka_service: KafkaService) -> None:
        kafka = {
            "SWITCHYARD_QUEUE_TYPE": "kafka",
            "SWITCHYARD_QUEUE_KAFKA_BOOTSTRAP_SERVERS": kafka_service.bootstrap_servers,
            **settings(lease_ms=8_000, session_ms=6_000, provider="KAFKA"),
        }
        with new_database(postgres_service) as database, PostgresCuts(database) as cuts:
            check(Installation(tmp_path, database, kafka, kafka_service.bootstrap_servers), cuts, LONG_S)
