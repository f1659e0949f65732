"""A worker that hosts consumers, as `manage.py up` runs it, in an installation of its own.

Its handler writes what it does into a journal that outlives it. Run as a program, this prepares the installation.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

from queueapi.supervisor.child import die_with_parent
from queueapi.supervisor.children import children
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.handlers import handler
from queuecore.messages import QueueMessage, Record
from queuecore.providers.log import LogProvider
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

ROOT = Path(__file__).resolve().parents[2]
QUEUE = TopicPartitionInfo("journal", 0)
LETTERS = ProviderPartition("journal.dlq", 0)
GROUP = "tb_rule_engine_journal-consumer-0"

_FOLDER = "SWITCHYARD_DATA_DIR"


@handler("test.journal")
def note(record: Record, context: DeliveryContext) -> None:
    """`slow` waits for the gate; `poison` kills its process."""
    folder = Path(os.environ[_FOLDER])
    _write(folder, f"begin {record.data.decode()}")
    if record.data == b"poison":
        os.kill(os.getpid(), signal.SIGKILL)
    if record.data == b"slow":
        wait_until((folder / "gate").exists)
    _write(folder, f"end {record.data.decode()}")


def _write(folder: Path, line: str) -> None:
    with (folder / "journal").open("a") as journal:
        journal.write(f"{line}\n")


class Installation:
    """One queue with one partition, handled in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, _FOLDER: str(folder), "SWITCHYARD_HANDLERS": __name__}
        subprocess.run([sys.executable, "-m", __name__], cwd=ROOT, env=self.environment, check=True)

    def publish(self, *messages: str) -> None:
        with closing(LogProvider(self.folder / "log")) as provider:
            for data in messages:
                send_and_wait(provider.producer(), QUEUE, QueueMessage(None, data.encode()), DEADLINE_S)

    def committed(self) -> int:
        with closing(LogProvider(self.folder / "log")) as provider:
            return provider.admin().committed_offsets({GROUP: [QUEUE.place]})[GROUP].get(QUEUE.place, 0)

    def letters(self) -> list[bytes]:
        with closing(LogProvider(self.folder / "log")) as provider, closing(provider.reader()) as reader:
            return [record.data for record in reader.read(LETTERS, 0, 100)]

    def journal(self) -> list[str]:
        path = self.folder / "journal"
        return path.read_text().splitlines() if path.exists() else []

    def times(self, what: str) -> Counter[str]:
        """How often each message was begun or ended."""
        lines = (line.split(maxsplit=1) for line in self.journal())
        return Counter(message for did, message in lines if did == what)

    def open_gate(self) -> None:
        (self.folder / "gate").touch()


class Worker:
    """Runs inside the block; killed on leaving it, if it still runs."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._log = installation.folder / "worker.log"

    def __enter__(self) -> Self:
        [spec] = [child for child in children() if child.name == "consumer"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                spec.command,
                cwd=ROOT,
                env=self._installation.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(),
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait(self, timeout_s: float = DEADLINE_S) -> int:
        return self.process.wait(timeout_s)


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
        name="Journal",
        topic=QUEUE.topic,
        handler="test.journal",
        partitions=1,
        submit_strategy="SEQUENTIAL",
        concurrency=1,
    )
    close_provider()


if __name__ == "__main__":
    prepare()
