"""A consumer host in a process of its own, without Celery, that writes down all it does. SIGTERM ends it in good order.

    python -m tests.reliability.cluster_host <service id>

SIGUSR1 has it stand still in the middle of its next commit, and SIGUSR2 not. Its installation and its leases are in the
environment, as an installation's always are, and so is its journal.
"""

import os
import signal
import sys
import threading
from typing import Final

import django

# As a worker's, whose parent starts another.
DIED: Final = 70


def main(service_id: str) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    django.setup()
    from queueapi import runtime
    from tests.reliability.cluster_handler import DESK
    from tests.reliability.cluster_journal import What
    from tests.reliability.cluster_recording import RecordedProvider
    from workers.host import ConsumerHost

    class RecordedHost(ConsumerHost):
        def lease_over(self) -> None:
            super().lease_over()
            DESK.journal.note(What.OVER)

    open_provider = runtime.open_provider
    runtime.open_provider = lambda settings: RecordedProvider(open_provider(settings))
    ended = threading.Event()
    deaths: list[str] = []

    def die(reason: str) -> None:
        deaths.append(reason)
        ended.set()

    def stop_in_commit(number: int, _: object) -> None:
        DESK.stops_in_commit = number == signal.SIGUSR1

    host = RecordedHost(service_id, on_death=die)
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, stop_in_commit)
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    host.start()
    ended.wait()
    host.stop()
    for reason in deaths:
        sys.stderr.write(f"{service_id} ended: {reason}\n")
    return DIED if deaths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
