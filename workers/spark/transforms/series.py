"""Samples of some partitions, all of a partition's together, for a plain function: so what a partition's figures are is
written, and tested, without Spark."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, repeat
from operator import itemgetter
from typing import Final, NamedTuple, overload

import pyarrow as pa
import pyarrow.compute as pc

from workers.spark.schemas import OFFSET_SAMPLES
from workers.spark.transforms.points import Point, Work

POINT: Final = ("at_us", "service_id", "topic", "group", "beginning_offset", "end_offset", "committed_offset")
WORK: Final = ("at_us", *Work._fields[1:])
# Of samples and of what consumers said alike.
_PLACE: Final = OFFSET_SAMPLES.place
_SECOND_US: Final = 1_000_000

Name = tuple[str, int]
_name = itemgetter(0, 1)


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of some partitions, in any order: samples of their offsets, and what their consumers said."""

    samples: pa.Table
    work: "Works"


class Works:
    """What consumers said, which is read when it is first asked for: most get on, and nobody asks."""

    def __init__(self, read: Callable[[], pa.Table]) -> None:
        self._read = read

    @cached_property
    def _by_name(self) -> dict[Name, list[Work]]:
        read = self._read()
        # Numbers that stand for texts have no order.
        named = read.set_column(read.column_names.index(_PLACE[0]), _PLACE[0], read[_PLACE[0]].cast(pa.string()))
        rows = named.sort_by([(name, "ascending") for name in (*_PLACE, "at_us")])
        at_s = pc.divide(rows["at_us"].cast(pa.float64()), float(_SECOND_US)).to_pylist()
        fields = zip(*(rows[name].to_pylist() for name in (*_PLACE, *WORK[1:])), strict=True)
        all_of_it = ((row[:2], Work(at, *row[2:])) for at, row in zip(at_s, fields, strict=True))
        return {name: [one for _, one in group] for name, group in groupby(all_of_it, key=itemgetter(0))}

    def of(self, name: Name) -> list[Work]:
        """In order of time."""
        return self._by_name.get(name, [])


class WorkLater(Sequence[Work]):
    """What the consumer of one partition said before a time, for who may not look at it at all."""

    def __init__(self, works: Works, name: Name, before_s: float | None = None) -> None:
        self._works, self._name, self._before_s = works, name, before_s

    def before(self, before_s: float) -> "WorkLater":
        return WorkLater(self._works, self._name, before_s)

    @cached_property
    def _found(self) -> list[Work]:
        found = self._works.of(self._name)
        return found if self._before_s is None else [one for one in found if one.at_s < self._before_s]

    @overload
    def __getitem__(self, index: int) -> Work: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Work]: ...
    def __getitem__(self, index: int | slice) -> Work | Sequence[Work]:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)


class Series(NamedTuple):
    """What is known of one partition, oldest first. `new_at_s` has the times of what came with the batch."""

    queue_id: str
    partition: int
    points: list[Point]
    work: WorkLater
    new_at_s: frozenset[float]


def all_series(samples: pa.Table, works: Works) -> Iterator[Series]:
    """Samples that are in order, as rows."""
    at_s = pc.divide(samples["at_us"].cast(pa.float64()), float(_SECOND_US)).to_pylist()
    fields = (samples[name].to_pylist() for name in POINT[1:])
    points: Iterable[Point] = map(tuple.__new__, repeat(Point), zip(at_s, *fields, strict=True))
    names = (samples[name].to_pylist() for name in _PLACE)
    rows = zip(*names, points, samples["is_new"].to_pylist(), strict=True)
    for name, group in groupby(rows, key=_name):
        known = [row[2:] for row in group]
        new = frozenset(point.at_s for point, is_new in known if is_new)
        queue_id, partition = name
        yield Series(queue_id, partition, [point for point, _ in known], WorkLater(works, name), new)
