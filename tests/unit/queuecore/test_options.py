"""A word that means nothing is refused where it is written, with those that mean something."""

from typing import Any

import pytest

from queuecore.errors import ConfigurationError
from queuecore.providers.base import TopicSpec
from queuecore.providers.memory import MemoryStorage
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.routing import RoutedQueue
from queuecore.topics import MAX_PARTITIONS


@pytest.mark.parametrize(
    ("kind", "wrong", "choices"),
    [
        (ProducerOptions, {"acks": "2"}, "0, 1, all"),
        (ProducerOptions, {"compression": "gzip"}, "none, lz4, zstd"),
        (ConsumerOptions, {"strategy": "roundrobin"}, "range, round_robin, sticky"),
        (ConsumerOptions, {"auto_offset_reset": "x"}, "earliest, latest"),
        (ConsumerOptions, {"isolation": "none"}, "read_committed, read_uncommitted"),
        (TopicSpec, {"name": "t", "cleanup": "compakt"}, "delete, compact, compact,delete"),
        (MemoryStorage, {"when_full": "rejct"}, "block, reject"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(kind: Any, wrong: dict[str, str], choices: str) -> None:
    [name, value] = list(wrong.items())[-1]
    with pytest.raises(ConfigurationError, match=f"{name} is {value!r}; choose one of {choices}"):
        kind(**wrong)


@pytest.mark.parametrize("kind", [TopicSpec, RoutedQueue])
@pytest.mark.parametrize("partitions", [-1, 0, MAX_PARTITIONS + 1])
def test_a_topic_has_no_more_partitions_than_there_may_be(kind: Any, partitions: int) -> None:
    with pytest.raises(ConfigurationError, match=f"cannot have {partitions} partitions"):
        kind("t", partitions)
    assert kind("t", MAX_PARTITIONS).partitions == MAX_PARTITIONS
