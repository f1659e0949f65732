"""The topics that a queue has at the provider."""

from collections.abc import Iterator
from typing import Final

from queueapi.models import Queue
from queueapi.selectors.topics import queues_naming
from queuecore.providers.base import DAY_MS, FOR_EVER, TopicSpec
from queuecore.topics import ProviderPartition, payload_partition

# Letters wait for a person.
LETTER_RETENTION_MS: Final = 90 * DAY_MS


def message_specs(queue: Queue) -> list[TopicSpec]:
    """How the topics of its messages are to be."""
    return [
        TopicSpec(
            info.full_topic_name,
            retention_ms=queue.retention_ms,
            retention_bytes=queue.retention_bytes,
            segment_bytes=queue.segment_bytes,
            replication_factor=queue.replication_factor,
            properties=tuple(sorted(queue.custom_properties.items())),
        )
        for info in queue.partition_infos()
    ]


def topics_of(queue: Queue) -> Iterator[TopicSpec]:
    """Of its messages, letters and state, as they are to be created."""
    copies = queue.replication_factor
    yield from message_specs(queue)
    yield TopicSpec(queue.letter_topic, queue.letter_topic_partitions, LETTER_RETENTION_MS, replication_factor=copies)
    for name in queue.state_topic_names():
        yield TopicSpec(name, retention_ms=FOR_EVER, cleanup="compact", replication_factor=copies)


def topics_to_remove(queue: Queue) -> list[str]:
    """What is the queue's alone: queues may share a topic for letters."""
    own = list(_topic_names(queue))
    others = queues_naming(own).exclude(pk=queue.pk)
    shared = {name for other in others for name in _letter_topics(other)}
    return [name for name in own if name not in shared]


def _topic_names(queue: Queue) -> Iterator[str]:
    yield from (info.full_topic_name for info in queue.partition_infos())
    yield from _letter_topics(queue)
    yield from queue.state_topic_names()


def _letter_topics(queue: Queue) -> tuple[str, str]:
    """Payloads that are too large for their letters have a topic beside them, once there is one."""
    topic = queue.letter_topic
    return topic, payload_partition(ProviderPartition(topic, 0)).full_topic_name
