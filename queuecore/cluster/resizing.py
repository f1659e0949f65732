"""A cluster as if queues had other numbers of partitions. Queues are named by what their partitions share in names."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from queuecore.cluster.layout import Layout
from queuecore.cluster.services import ClusterPartition
from queuecore.cluster.view import Spread
from queuecore.errors import ConfigurationError, UnknownQueue

MAX_PARTITIONS: Final = 1000


def queue_key(partition: ClusterPartition) -> str:
    """The queue of a partition, by the name that its partitions share."""
    return _key(partition.name, partition.number)


def resized(spread: Spread, counts: Mapping[str, int]) -> Spread:
    """With as many partitions for these queues, once a resize is over: other ones than before, with the numbers that
    come next, and nobody's yet. UnknownQueue, and ConfigurationError for a number that cannot be."""
    if not counts:
        return spread
    layout = spread.layout
    for key, count in counts.items():
        layout = _resized(layout, key, count)
    holders = dict(zip(spread.layout.names, spread.holders, strict=True))
    return replace(spread, layout=layout, holders=list(map(holders.get, layout.names)))


def partitions_called(layout: Layout, key: str) -> int:
    """How many partitions the queue has that is named so."""
    return len(_places(layout, key))


def _resized(layout: Layout, key: str, count: int) -> Layout:
    places = _places(layout, key)
    if not places:
        raise UnknownQueue(f"no queue of the cluster has partitions called {key!r}; look up what they are called")
    if not 1 <= count <= MAX_PARTITIONS:
        raise ConfigurationError(f"{key} cannot have {count} partitions; use 1 to {MAX_PARTITIONS}")
    if count == len(places):
        return layout
    touched = {layout.queue_of[place] for place in places}
    found = [one for index in sorted(touched) for one in layout.partitions(layout.queues[index])]
    mine = sorted((one for one in found if queue_key(one) == key), key=lambda one: one.number)
    kept = [one for one in found if queue_key(one) != key]
    like, first = mine[0], mine[-1].number + 1
    new = [
        replace(like, name=f"{key}{_suffix(like.name, number)}", number=number)
        for number in range(first, first + count)
    ]
    return layout.changed(touched, [*kept, *new])


def _places(layout: Layout, key: str) -> list[int]:
    """Of the queue's partitions. Many names begin alike: a closer look is for few of them."""
    numbers = layout.numbers
    return [
        place for place, name in enumerate(layout.names) if name.startswith(key) and _key(name, numbers[place]) == key
    ]


def _key(name: str, number: int) -> str:
    return name.removesuffix(_suffix(name, number))


def _suffix(name: str, number: int) -> str:
    """Partitions are topics of their own, or are inside of one."""
    return f"[{number}]" if name.endswith("]") else f".{number}"
