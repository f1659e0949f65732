"""Partitions as columns, in an order of their own: where there are very many, an object for each takes longer than the
plan that is made for them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from queuecore.cluster.services import ClusterPartition
from queuecore.errors import ConfigurationError

# What all partitions of a queue have in common.
Kind = TypeVar("Kind", bound=Hashable)


class QueuePlaces(NamedTuple):
    """Where the partitions of a queue are, which may all go to the same services. `like` is one of them."""

    like: ClusterPartition
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin


@dataclass(slots=True)
class Layout:
    """Nothing depends on the order in which partitions were given: queues are in that of the names of their first
    partitions, and those of a queue by number. A place is an index of `names` and `numbers`. Nobody changes it once
    it is made.

    queue_of  for each place, the index of its queue
    """

    names: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    queues: list[QueuePlaces] = field(default_factory=list)
    queue_of: list[int] = field(default_factory=list)

    def names_of(self, queue: QueuePlaces) -> list[str]:
        return self.names[queue.begin : queue.end]

    def numbers_of(self, queue: QueuePlaces) -> list[int]:
        return self.numbers[queue.begin : queue.end]

    def partitions(self, queue: QueuePlaces) -> Iterator[ClusterPartition]:
        """Those of one queue, as objects."""
        for name, number in zip(self.names_of(queue), self.numbers_of(queue), strict=True):
            yield replace(queue.like, name=name, number=number)

    def holders(self, current: Mapping[str, str]) -> list[str | None]:
        """By place, who has each partition, given that by name."""
        return list(map(current.get, self.names))

    def changed(self, without: Collection[int], more: Iterable[ClusterPartition]) -> "Layout":
        """Without some queues, by their indexes, and with these partitions of others."""
        added = layout_of(more)
        parts = [(self, queue) for index, queue in enumerate(self.queues) if index not in without]
        parts += [(added, queue) for queue in added.queues]
        parts.sort(key=lambda part: part[0].names[part[1].begin])
        made = Layout()
        for layout, queue in parts:
            made.append(queue.like, layout.names_of(queue), layout.numbers_of(queue))
        _check_names(made.names)
        return made

    def append(self, like: ClusterPartition, names: Sequence[str], numbers: Sequence[int]) -> None:
        """A queue after all others. For who makes the layout."""
        begin = len(self.names)
        self.queue_of += [len(self.queues)] * len(names)
        self.names += names
        self.numbers += numbers
        self.queues.append(QueuePlaces(like, begin, len(self.names)))


def layout_of(partitions: Iterable[ClusterPartition]) -> Layout:
    """ConfigurationError where two have the same name."""
    found = list(partitions)
    # A UUID takes long to compare.
    kinds = [(one.queue, one.label, one.profile, one.tenant.int, one.service_type) for one in found]
    likes = dict(zip(kinds, found, strict=True))
    rows = ((kind, one.number, one.name) for kind, one in zip(kinds, found, strict=True))
    return lay_out(rows, likes.__getitem__)


def lay_out(rows: Iterable[tuple[Kind, int, str]], like: Callable[[Kind], ClusterPartition]) -> Layout:
    """Of partitions by what they have in common with others of their queue, number and name. ConfigurationError where
    two have the same name."""
    found: dict[Kind, list[tuple[int, str]]] = defaultdict(list)
    for kind, number, name in rows:
        found[kind].append((number, name))
    for places in found.values():
        places.sort()
    made = Layout()
    for kind, places in sorted(found.items(), key=lambda item: item[1][0][1]):
        made.append(like(kind), [name for _, name in places], [number for number, _ in places])
    _check_names(made.names)
    return made


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = min(name for name, count in Counter(names).items() if count > 1)
        raise ConfigurationError(f"two partitions are called {twice!r}; each needs a name of its own")
