"""What a queue's topics are, and which queues the topics of a provider make.

A queue is there when all its topics are: its dead-letter topic says how many partitions it has, and each of them is a
topic of its own or a part of the one topic of the queue's name. A dead-letter topic alone is somebody else's.
"""

from collections.abc import Mapping
from typing import Final

from queuecore.errors import ConfigurationError, QueueError
from queuecore.providers.base import TopicSpec
from queuecore.routing import RoutedQueue
from queuecore.topics import TopicPartitionInfo, check_no_clash, dead_letter_partition

_LETTERS: Final = ".dlq"

Topics = Mapping[str, TopicSpec]


def topics_of(queue: RoutedQueue) -> dict[str, int]:
    """The topics that hold the queue's messages, with their numbers of partitions."""
    if queue.use_internal_partition:
        return {queue.topic: queue.partitions}
    return {f"{queue.topic}.{number}": 1 for number in queue.numbers}


def letters_of(queue: RoutedQueue) -> str:
    return dead_letter_partition(TopicPartitionInfo(queue.topic)).full_topic_name


def find_queue(name: str, topics: Topics) -> RoutedQueue | None:
    """The queue of that name, if all of it is there."""
    if (letters := topics.get(f"{name}{_LETTERS}")) is None or not _may_be_queue(name):
        return None
    for is_inside in (True, False):
        queue = RoutedQueue(name, letters.partitions, use_internal_partition=is_inside)
        if all(one in topics and topics[one].partitions == count for one, count in topics_of(queue).items()):
            return queue
    return None


def queue_names(topics: Topics) -> list[str]:
    endings = (one.removesuffix(_LETTERS) for one in topics if one.endswith(_LETTERS))
    return sorted(name for name in endings if find_queue(name, topics) is not None)


def check_possible(wanted: RoutedQueue, topics: Topics) -> None:
    """ConfigurationError where something else is in the queue's place, InvalidName where Kafka would take one of its
    topics for another. A part of it that is there already is fine: a creation may have been cut short."""
    if (there := find_queue(wanted.topic, topics)) is not None:
        refuse_another(wanted, there)
        return
    if not wanted.use_internal_partition and wanted.topic in topics:
        raise _taken(wanted.topic, wanted.topic, topics[wanted.topic], "topics of other names")
    taken = {one.replace(".", "_"): one for one in topics}
    for topic, count in {**topics_of(wanted), letters_of(wanted): wanted.partitions}.items():
        if topic in topics and topics[topic].partitions != count:
            raise _taken(wanted.topic, topic, topics[topic], f"{count} there")
        check_no_clash([taken.get(topic.replace(".", "_"), topic), topic])


def refuse_another(wanted: RoutedQueue, there: RoutedQueue) -> None:
    """ConfigurationError where they are not the same."""
    name = wanted.topic
    if wanted.use_internal_partition != there.use_internal_partition:
        how = "inside one topic" if there.use_internal_partition else "in topics of their own"
        raise ConfigurationError(f"queue {name!r} is there already with its partitions {how}; ask for the same")
    if wanted.partitions != there.partitions:
        raise ConfigurationError(
            f"queue {name!r} is there already with {there.partitions} partitions, not {wanted.partitions}; another "
            f"number would send entities elsewhere and lose their order. Ask for {there.partitions}, or use a new name"
        )


def _may_be_queue(name: str) -> bool:
    """Whether a queue could have been created under this name; anything may be at a provider."""
    try:
        RoutedQueue(name, 1)
    except QueueError:
        return False
    return True


def _taken(queue: str, topic: str, there: TopicSpec, needed: str) -> ConfigurationError:
    return ConfigurationError(
        f"topic {topic!r} is there already with {there.partitions} partitions and is no part of a queue {queue!r}, "
        f"which needs {needed}; use another name for the queue, or remove the topic"
    )
