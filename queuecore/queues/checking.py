"""Whether something can be a handler, or hold what it remembers."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from queuecore.errors import ConfigurationError
from queuecore.providers.base import QueueAdmin, TopicSpec
from queuecore.queues.directory import LETTER_RETENTION_MS
from queuecore.topics import TopicPartitionInfo, state_partition

_GENERATORS: Final[tuple[Callable[[object], bool], ...]] = (inspect.isasyncgenfunction, inspect.isgeneratorfunction)


def check_handler(handler: object) -> None:
    """ConfigurationError for what cannot be called, and for what does nothing when it is called: a function with
    `yield`."""
    if not callable(handler):
        raise ConfigurationError(f"the handler is {handler!r}; give a function that takes a record and its context")
    function = _function_of(handler)
    if any(is_generator(function) for is_generator in _GENERATORS):
        raise ConfigurationError(
            f"the handler {handler!r} has a `yield`, so that calling it does nothing; give a function that returns"
        )


def check_state_queue(
    queue: Sequence[TopicPartitionInfo], state: Sequence[TopicPartitionInfo], topics: Mapping[str, TopicSpec]
) -> None:
    """ConfigurationError where one of these queues cannot hold the state of the other."""
    name, wanted = state[0].topic, queue[0].topic
    if name == wanted:
        raise ConfigurationError(f"queue {name!r} cannot hold its own state; create another, with cleanup='compact'")
    if [state_partition(info, name) for info in queue] != list(state):
        inside = queue[0].use_internal_partition
        raise ConfigurationError(
            f"queue {name!r} cannot hold the state of {wanted!r}: it has {len(state)} partitions, and is to have "
            f"{len(queue)} with use_internal_partition={inside}, as that one; create another"
        )
    if not all(topics[info.full_topic_name].is_compacted for info in state):
        raise ConfigurationError(
            f"queue {name!r} cannot hold the state of {wanted!r}: it forgets old messages; create one with "
            "cleanup='compact'"
        )


def _function_of(handler: Callable[..., object]) -> object:
    while isinstance(handler, partial):
        handler = handler.func
    return handler if inspect.isroutine(handler) else type(handler).__call__


def create_letter_topic(admin: QueueAdmin, topic: str, partitions: Sequence[TopicPartitionInfo]) -> None:
    """The topic of its own that a queue's dead letters go to, unless it is there. ConfigurationError where that one
    cannot hold them."""
    if topic in {info.full_topic_name for info in partitions}:
        raise ConfigurationError(f"{topic} holds the queue's messages; name another topic for its dead letters")
    admin.create_topics([TopicSpec(topic, len(partitions), retention_ms=LETTER_RETENTION_MS)])
    there = admin.topics()[topic]
    if there.partitions < len(partitions) or there.is_compacted:
        raise ConfigurationError(
            f"{topic} has {there.partitions} partitions and the clean-up policy {there.cleanup!r}, and cannot hold the "
            f"dead letters of {len(partitions)} partitions; name another topic"
        )
