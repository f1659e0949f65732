"""What the provider of a large installation has: topics, groups with what they have committed, and messages.

A topic is a folder and a row. Only the rows are made of all: a page looks into the folders of those that it shows, and
these are there.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from uuid import UUID

# Of as many queues as two pages of groups show.
_WITH_FILES: Final = 110
# In one queue.
_MESSAGES: Final = 10_000


def fill_provider(data: Path, queues: Sequence[Any]) -> None:
    """For these queues, whose topics nobody has created."""
    from queueapi import runtime
    from queuecore.providers.base import TopicSpec

    first = sorted(queues, key=lambda queue: f"{queue.topic}.")[:_WITH_FILES]
    names = [name for queue in first for name in sorted(queue.topic_names())]
    runtime.provider().admin().create_topics([TopicSpec(name) for name in names])
    _publish(queues[0], min(_MESSAGES, 10 * len(queues)))
    runtime.close_provider()
    with closing(sqlite3.connect(data / "log" / "catalog.sqlite3")) as catalog, catalog:
        catalog.executemany(_TOPIC, ((name, names[0]) for queue in queues for name in queue.topic_names()))
        catalog.executemany(_COMMITTED, _commits(queues))


_TOPIC: Final = """
    insert or ignore into topic select ?, partitions, retention_ms, retention_bytes, segment_bytes, cleanup
    from topic where name = ?
"""
_COMMITTED: Final = "insert into committed (consumer_group, topic, partition, position) values (?, ?, 0, 0)"


def _commits(queues: Iterable[Any]) -> Iterable[tuple[str, str]]:
    from queuecore.topics import ServiceType, group_name

    for queue in queues:
        group = group_name(ServiceType.of(queue.service_type), queue.name, queue.tenant_id, None)
        yield from ((group, topic) for topic in queue.topic_names())


def _publish(queue: Any, count: int) -> None:
    from queueapi import runtime
    from queuecore.messages import QueueMessage
    from queuecore.sending import send, wait_for

    producer = runtime.provider().producer()
    for number in range(count):
        info = queue.partition_info(number % queue.partitions)
        stored = send(producer, info, QueueMessage(UUID(int=number), b'{"temperature": 21.5}'))
    wait_for(stored, info, 60)
