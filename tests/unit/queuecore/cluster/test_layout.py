"""Partitions as columns: in an order of their own, whatever order they come in."""

import random
from uuid import UUID

import pytest

from queuecore.cluster.layout import Layout, layout_of
from queuecore.cluster.services import ClusterPartition
from queuecore.errors import ConfigurationError
from tests.unit.queuecore.cluster.assignment_kit import CORE, queue

PARTITIONS = [*queue("b", 11), *queue("a", 2), *queue("c", 3, UUID(int=7)), *queue("c.core", 1, kind=CORE)]


def as_objects(layout: Layout) -> list[ClusterPartition]:
    return [one for each in layout.queues for one in layout.partitions(each)]


def test_queues_are_in_the_order_of_their_names_and_partitions_of_their_numbers() -> None:
    layout = layout_of(PARTITIONS)
    assert layout.names[:4] == ["a.0", "a.1", "b.0", "b.1"]
    assert layout.names[11:13] == ["b.9", "b.10"]
    assert layout.numbers[11:13] == [9, 10]
    assert [layout.names_of(each)[0] for each in layout.queues] == ["a.0", "b.0", "c.0", "c.core.0"]
    assert layout.queue_of == [0] * 2 + [1] * 11 + [2] * 3 + [3]


def test_nothing_depends_on_the_order_in_which_they_come() -> None:
    shuffled = list(PARTITIONS)
    random.Random(7).shuffle(shuffled)
    first, second = layout_of(PARTITIONS), layout_of(shuffled)
    assert (first.names, first.numbers, first.queue_of) == (second.names, second.numbers, second.queue_of)


def test_they_are_objects_again_as_they_were() -> None:
    assert sorted(as_objects(layout_of(PARTITIONS)), key=lambda one: one.name) == sorted(
        PARTITIONS, key=lambda one: one.name
    )


def test_who_has_what_is_a_column_too() -> None:
    layout = layout_of(queue("q", 3))
    assert layout.holders({"q.2": "s1", "gone.0": "s2"}) == [None, None, "s1"]


def test_without_some_queues_and_with_others_it_is_as_if_made_of_these() -> None:
    more = [*queue("aa", 2), *queue("z", 1)]
    changed = layout_of(PARTITIONS).changed({1, 3}, more)
    made = layout_of([*(one for one in PARTITIONS if one.queue in ("a", "c")), *more])
    assert (changed.names, changed.numbers, changed.queue_of) == (made.names, made.numbers, made.queue_of)
    assert as_objects(changed) == as_objects(made)


def test_nothing_at_all() -> None:
    assert layout_of([]) == Layout()


@pytest.mark.parametrize("more", [queue("q", 1), [ClusterPartition("q.0", queue="other")]])
def test_a_name_is_there_once(more: list[ClusterPartition]) -> None:
    with pytest.raises(ConfigurationError, match=r"two partitions are called 'q\.0'"):
        layout_of([*queue("q", 2), *more])
    with pytest.raises(ConfigurationError, match=r"two partitions are called 'q\.0'"):
        layout_of(queue("q", 2)).changed((), more)
