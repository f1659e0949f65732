"""An installation on several workers that host consumers: the service instances of one cluster.

Each keeps a journal of what its handler was given, which outlives it.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, NamedTuple, Self

import psycopg

from queueapi.supervisor.child import die_with_parent
from queueapi.supervisor.children import children
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.handlers import handler
from queuecore.messages import Record
from queuecore.topics import TopicPartitionInfo
from tests.reliability.journal import Begun, Journal

ROOT: Final = Path(__file__).resolve().parents[2]
TOPIC: Final = "traced"
# Short, so that a test waits for seconds. The provider may miss nobody later than the cluster does.
SHORT_LEASES: Final = {
    "SWITCHYARD_CLUSTER_LEASE_MS": "4000",
    "SWITCHYARD_CLUSTER_COORDINATOR_LEASE_MS": "2000",
    "SWITCHYARD_QUEUE_LOG_SESSION_TIMEOUT_MS": "3000",
}

_FOLDER: Final = "SWITCHYARD_DATA_DIR"
_SERVICE: Final = "SWITCHYARD_SERVICE_ID"
_PARTITIONS: Final = "TEST_PARTITIONS"


class Owned(NamedTuple):
    """Who has a partition. `taken_at` is by the store's clock, as that stores it."""

    owner: str | None
    epoch: int
    taken_at: Any


@handler("test.trace")
def trace(record: Record, _context: DeliveryContext) -> None:
    _own_journal().write(f"{time.time():.6f} {record.topic} {record.data.decode()}\n")


@cache
def _own_journal() -> IO[str]:
    path = _journal_path(Path(os.environ[_FOLDER]), os.environ[_SERVICE])
    return path.open("a", buffering=1)


def _journal_path(folder: Path, service_id: str) -> Path:
    return folder / f"{service_id}.journal"


class ClusterInstallation:
    """One queue whose partitions its hosts share; its cluster is in SQLite, or in the PostgreSQL database given."""

    def __init__(
        self, folder: Path, partitions: int, settings: Mapping[str, str] = SHORT_LEASES, database_url: str = ""
    ) -> None:
        self.folder = folder
        self.infos = [TopicPartitionInfo(TOPIC, number) for number in range(partitions)]
        self._database_url = database_url
        self.environment = {
            **os.environ,
            **settings,
            _FOLDER: str(folder),
            _PARTITIONS: str(partitions),
            "SWITCHYARD_HANDLERS": __name__,
            "SWITCHYARD_DATABASE_URL": database_url,
        }
        program = f"from {__name__} import prepare; prepare()"
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=self.environment, check=True)

    @property
    def coordinator(self) -> str:
        """Empty while there is none."""
        rows = self.ask("select coordinator from cluster_clusterstate")
        return str(rows[0][0]) if rows else ""

    @property
    def owned(self) -> dict[str, Owned]:
        """By the partitions' names, all that the coordinator knows of."""
        rows = self.ask("select name, owner, epoch, taken_at from cluster_partition")
        return {name: Owned(owner, epoch, taken_at) for name, owner, epoch, taken_at in rows}

    def owned_by(self, service_id: str) -> set[str]:
        return {name for name, one in self.owned.items() if one.owner == service_id}

    def ask(self, question: str) -> list[tuple[Any, ...]]:
        connection: Any
        if self._database_url:
            connection = psycopg.connect(self._database_url)
        else:
            connection = sqlite3.connect(self.folder / "cluster.sqlite3", timeout=10)
        with closing(connection):
            return list(connection.execute(question).fetchall())


class Host:
    """One instance: a worker as `manage.py up` starts it. Runs inside the block; killed on leaving it, if it still
    runs."""

    def __init__(self, installation: ClusterInstallation, service_id: str, **settings: str) -> None:
        self.service_id = service_id
        self._environment = {**installation.environment, **settings, _SERVICE: service_id}
        self._log = installation.folder / f"{service_id}.log"
        self._journal = Journal(_journal_path(installation.folder, service_id))

    def __enter__(self) -> Self:
        program = f"from {__name__} import become_worker; become_worker()"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program],
                cwd=ROOT,
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(),
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> float:
        """At once, with no chance to say anything; when."""
        self.process.send_signal(signal.SIGKILL)
        at = time.time()
        self.process.wait()
        return at

    @property
    def begun(self) -> list[Begun]:
        """What its handler was given so far, in this order."""
        return self._journal.begun

    def output(self) -> str:
        return self._log.read_text(errors="replace")


def become_worker() -> None:
    """The one that `manage.py up` starts in such an environment. It has this process's id."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    [command] = [child.command for child in children() if child.name == "consumer"]
    os.execv(command[0], command)  # noqa: S606 - our own command, in our place


def prepare() -> None:
    """Make the installation that the environment names."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    django.setup()
    from django.core.management import call_command

    from queueapi.actions.actor import SYSTEM
    from queueapi.actions.queues import create_queue
    from queueapi.actions.tenants import ensure_system_tenant
    from queueapi.runtime import close_provider

    call_command("migrate", verbosity=0)
    create_queue(
        SYSTEM,
        ensure_system_tenant(),
        name="Traced",
        topic=TOPIC,
        handler="test.trace",
        partitions=int(os.environ[_PARTITIONS]),
        submit_strategy="SEQUENTIAL",
    )
    close_provider()
