"""The handler of hosts under test: it works for a moment, and writes down when it began and ended."""

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any, Final

from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.handlers import handler
from queuecore.messages import Record
from queuecore.topics import ProviderPartition
from tests.reliability.cluster_journal import Journal, What

HANDLER: Final = "test.cluster"
# How many run side by side for one consumer.
CONCURRENCY: Final = 2
# In the host's environment: where its journal is.
JOURNAL: Final = "CLUSTER_CHECK_JOURNAL"
_LONGEST_WORK_S: Final = 0.006


class Desk:
    """What a host's process writes, and under which epochs it has its partitions."""

    def __init__(self) -> None:
        self._journal: Journal | None = None
        # Also of partitions that it has no longer: handlers that were left behind are of those.
        self.epochs: dict[ProviderPartition, int] = {}
        # Whether this process shall stand still in the middle of its next commit.
        self.stops_in_commit = False

    @property
    def journal(self) -> Journal:
        if self._journal is None:
            path = Path(os.environ[JOURNAL])
            self._journal = Journal(path, path.stem)
        return self._journal

    def stop_in_commit(self) -> None:
        """Here, if so, until somebody has it go on."""
        if self.stops_in_commit:
            self.stops_in_commit = False
            self.journal.note(What.PAUSED)
            # To this thread: else it may go on for a moment before the process stands still.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


DESK: Final = Desk()


@handler(HANDLER)
def note(record: Record, context: DeliveryContext) -> None:
    entity, _, number = record.data.decode().rpartition("/")
    place = ProviderPartition(record.topic, record.partition)
    epoch, call = DESK.epochs.get(place, 0), next(DESK.journal.calls)
    message: dict[str, Any] = {"place": str(place), "offset": record.offset, "entity": entity, "number": int(number)}
    DESK.journal.note(What.BEGUN, epoch=epoch, call=call, **message)
    time.sleep(random.uniform(0, _LONGEST_WORK_S))
    DESK.journal.note(What.ENDED, epoch=epoch, call=call, **message)
