"""Writes in bulk to the installation's main database, in a process of its own.

    python -m tests.reliability.cluster_bulk

It writes many rows in a few large transactions, and says `written`. Then it is in the middle of one more, says
`holding`, and stays there until SIGTERM.
"""

import os
import signal
import sys
import threading
from typing import Final

import django

ROWS: Final = 50_000
_IN_ONE_TRANSACTION: Final = 10_000
WRITTEN: Final = "written"
HOLDING: Final = "holding"


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    django.setup()
    released = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: released.set())
    from django.db import transaction

    from queueapi.models import Operation, OperationLogEntry

    operation = Operation.objects.create(kind="bulk", summary="many rows")

    def write(count: int) -> None:
        rows = (OperationLogEntry(operation=operation, text=f"row {number}") for number in range(count))
        OperationLogEntry.objects.bulk_create(rows, batch_size=1_000)

    for _ in range(0, ROWS, _IN_ONE_TRANSACTION):
        with transaction.atomic():
            write(_IN_ONE_TRANSACTION)
    print(WRITTEN, flush=True)
    with transaction.atomic():
        write(_IN_ONE_TRANSACTION)
        print(HOLDING, flush=True)
        released.wait()
    assert operation.log.count() == ROWS + _IN_ONE_TRANSACTION
    return 0


if __name__ == "__main__":
    sys.exit(main())
