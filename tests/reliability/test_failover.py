"""What becomes of a cluster when a host dies, or cannot reach the others: the first two rows of the table in
docs/howto/cluster.md. The other two are in test_failover_queues.py."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest

from queuecore.testing.services import PostgresService
from queuecore.testing.waiting import DEADLINE_S
from tests.reliability.cluster_hosting import ClusterInstallation, Host, Owned
from tests.reliability.cluster_proxy import Proxy
from tests.reliability.kafka_load import wait_until
from tests.reliability.trickle import Trickle

PARTITIONS = 6
PATIENCE_S = 2 * DEADLINE_S
CUTS = [
    pytest.param(True, id="nothing comes through"),
    pytest.param(False, id="connections are refused", marks=pytest.mark.full),
]


@pytest.fixture
def running() -> Iterator[ExitStack]:
    """Ends what a test has started."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def database_url(postgres_service: PostgresService) -> str:
    """An empty PostgreSQL database."""
    name = f"failover_{uuid4().hex[:8]}"
    with psycopg.connect(postgres_service.url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return urlunsplit(urlsplit(postgres_service.url)._replace(path=f"/{name}"))


def is_shared(installation: ClusterInstallation, hosts: Sequence[Host]) -> bool:
    """Whether all have the same part, and there are no others."""
    owned = installation.owned.values()
    counts = [sum(one.owner == host.service_id for one in owned) for host in hosts]
    return len(owned) == sum(counts) == PARTITIONS and max(counts) - min(counts) <= 1


def is_consumed(hosts: Sequence[Host], partitions: set[str], since: float = 0.0) -> bool:
    """Whether these were given messages of all these partitions since then."""
    return partitions <= {one.partition for host in hosts for one in host.begun if one.at > since}


def handled(hosts: Sequence[Host]) -> set[str]:
    return {one.data for host in hosts for one in host.begun}


def kept(owned: dict[str, Owned], partitions: set[str]) -> dict[str, tuple[str | None, int]]:
    return {name: (owned[name].owner, owned[name].epoch) for name in partitions}


def test_node_crash(tmp_path: Path, running: ExitStack) -> None:
    """Three hosts; one is killed, then the coordinator. Each time the survivors divide what the dead one had, under new
    epochs, while their own partitions stay theirs under the old ones. All that was acknowledged is handled."""
    installation = ClusterInstallation(tmp_path / "data", PARTITIONS)
    hosts = [running.enter_context(Host(installation, f"host-{number}")) for number in (1, 2, 3)]
    wait_until(lambda: is_shared(installation, hosts), PATIENCE_S)
    with Trickle(installation.folder / "log", installation.infos) as trickle:
        wait_until(lambda: is_consumed(hosts, set(installation.owned)), PATIENCE_S)
        leader = installation.coordinator
        survivors = survive_a_crash(installation, hosts, min({host.service_id for host in hosts} - {leader}))
        leader = wait_until(lambda: installation.coordinator)
        survive_a_crash(installation, survivors, leader)
    wait_until(lambda: trickle.acknowledged <= handled(hosts), PATIENCE_S)
    assert trickle.refusals == []


def survive_a_crash(installation: ClusterInstallation, hosts: Sequence[Host], victim: str) -> list[Host]:
    """Those who have all of it then."""
    before, orphans = installation.owned, installation.owned_by(victim)
    [died_at] = [host.kill() for host in hosts if host.service_id == victim]
    survivors = [host for host in hosts if host.service_id != victim]
    wait_until(lambda: is_shared(installation, survivors), PATIENCE_S)
    wait_until(lambda: is_consumed(survivors, orphans, died_at), PATIENCE_S)

    after, unmoved = installation.owned, set(before) - orphans
    assert kept(after, unmoved) == kept(before, unmoved)
    assert min(after[name].epoch for name in orphans) > max(one.epoch for one in before.values())
    return survivors


@pytest.mark.parametrize("silently", CUTS)
def test_network_partition(tmp_path: Path, running: ExitStack, database_url: str, silently: bool) -> None:
    """Three hosts, of which the coordinator is cut off from the cluster's database alone: it could read and commit
    still. It begins nothing after its lease has ended by the database's clock. Only then do the others take over, under
    newer epochs. When the network is back it joins again, and gets its share."""
    installation = ClusterInstallation(tmp_path / "data", PARTITIONS, database_url=database_url)
    proxy = running.enter_context(Proxy(database_url))
    lonely = running.enter_context(Host(installation, "lonely", SWITCHYARD_DATABASE_URL=proxy.url))
    wait_until(lambda: installation.coordinator == "lonely", PATIENCE_S)
    others = [running.enter_context(Host(installation, f"host-{number}")) for number in (1, 2)]
    hosts = [lonely, *others]
    wait_until(lambda: is_shared(installation, hosts), PATIENCE_S)
    with Trickle(installation.folder / "log", installation.infos) as trickle:
        before, share = installation.owned, installation.owned_by("lonely")
        wait_until(lambda: is_consumed([lonely], share), PATIENCE_S)
        proxy.cut(silently=silently)
        wait_until(lambda: is_shared(installation, others), PATIENCE_S)
        [(ended,)] = installation.ask(
            "select extract(epoch from lease_expires_at)::float from cluster_serviceinstance "
            "where service_id = 'lonely'"
        )
        wait_until(lambda: is_consumed(others, share, ended), PATIENCE_S)

        taken = installation.owned
        assert min(taken[name].epoch for name in share) > max(one.epoch for one in before.values())
        assert min(taken[name].taken_at.timestamp() for name in share) >= ended
        assert [one for one in lonely.begun if one.at >= ended] == []
        assert [one for host in others for one in host.begun if one.partition in share and one.at < ended] == []
        unmoved = set(before) - share
        assert kept(taken, unmoved) == kept(before, unmoved)

        silent_to = len(lonely.begun)
        proxy.mend()
        wait_until(lambda: is_shared(installation, hosts), PATIENCE_S)
        regained = installation.owned_by("lonely")
        wait_until(lambda: regained <= {one.partition for one in lonely.begun[silent_to:]}, PATIENCE_S)
        assert min(installation.owned[name].epoch for name in regained) > max(one.epoch for one in taken.values())
    wait_until(lambda: trickle.acknowledged <= handled(hosts), PATIENCE_S)
    assert trickle.refusals == []
