"""A producer in a process of its own: messages of some entities, each with its own running number, at a bounded rate.

    python -m tests.reliability.cluster_load <seed>

What is stored is written down. SIGTERM ends it, and so does having sent the most that there shall be.
"""

import os
import random
import signal
import sys
import threading
import time
from typing import Final
from uuid import UUID

import django

ENTITIES: Final = 16
PER_SECOND: Final = 150
MOST: Final = 100_000
_ROUND: Final = 15
_ACK_TIMEOUT_S: Final = 30.0


class Source:
    """The messages of one entity. Once one of them was not acknowledged, it falls silent: what became of that one is
    not known, so nobody can say what should come next."""

    def __init__(self, info: object, name: str, key: UUID) -> None:
        self.info, self.name, self.key = info, name, key
        self.number = 0
        self.is_silent = False


def main(seed: str) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    django.setup()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    chance = random.Random(f"{seed}/load")
    sources = _sources(chance)
    started = time.monotonic()
    for sent in range(0, MOST, _ROUND):
        if stopping.wait(max(0.0, started + sent / PER_SECOND - time.monotonic())):
            break
        talking = [source for source in sources if not source.is_silent]
        _publish(chance.sample(talking, min(_ROUND, len(talking))))
    return 0


def _sources(chance: random.Random) -> list[Source]:
    from django.db import connections

    from queueapi.models import Queue
    from queuecore.hashing import partition_of
    from tests.reliability.cluster_handler import HANDLER

    sources = []
    for queue in Queue.objects.filter(handler=HANDLER):
        for number in range(ENTITIES):
            key = UUID(int=chance.getrandbits(128), version=4)
            info = queue.partition_info(partition_of(key, queue.partitions))
            sources.append(Source(info, f"{queue.name}-{number}", key))
    connections.close_all()
    return sources


def _publish(sources: list[Source]) -> None:
    """One message of each of these, together."""
    from queueapi import runtime
    from queuecore.errors import QueueError
    from queuecore.messages import QueueMessage
    from queuecore.sending import send
    from queuecore.topics import ProviderPartition
    from tests.reliability.cluster_handler import DESK
    from tests.reliability.cluster_journal import What

    producer = runtime.provider().producer()
    messages = [QueueMessage(one.key, f"{one.name}/{one.number}".encode()) for one in sources]
    sent = [
        (one, send(producer, one.info, message))  # type: ignore[arg-type]
        for one, message in zip(sources, messages, strict=True)
    ]
    for one, stored in sent:
        try:
            where = stored.result(_ACK_TIMEOUT_S)
        except (QueueError, TimeoutError):
            one.is_silent = True
            continue
        place = str(ProviderPartition(where.topic, where.partition))
        DESK.journal.note(What.STORED, place=place, offset=where.offset, entity=one.name, number=one.number)
        one.number += 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
