"""What rows of shorter stretches make of a longer one: hours of their minutes, days of their hours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any, Final

from django.db.models import Case, IntegerField, Max, QuerySet, Sum, When

from queueapi.choices import LagStatus
from workers.spark.transforms.buckets import PERCENTILES, percentile_of

_BY_BADNESS: Final = {status.badness: status for status in LagStatus}


@dataclass(frozen=True, slots=True)
class Histogram:
    """`column` has counts by buckets with these bounds; `percentile` is how the columns of percentiles are called."""

    column: str
    bounds: Sequence[float]
    percentile: str

    def columns(self, rows: QuerySet[Any], key: tuple[str, ...]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
        """Of the rows of each key together. Percentiles cannot be added, and an average of them is none."""
        sums: dict[tuple[Any, ...], list[int]] = {}
        for *whose, buckets in rows.values_list(*key, self.column).iterator():
            # Those of another version may have other bounds, and cannot be added to the rest.
            if len(buckets) == len(self._nothing):
                sums[tuple(whose)] = list(map(add, sums.get(tuple(whose), self._nothing), buckets))
        return {whose: self._told(buckets) for whose, buckets in sums.items()}

    def of_nothing(self) -> Mapping[str, Any]:
        return self._told(self._nothing)

    def _told(self, buckets: list[int]) -> Mapping[str, Any]:
        percentiles = {self.percentile.format(one): percentile_of(buckets, self.bounds, one) for one in PERCENTILES}
        return {self.column: buckets, **percentiles}

    @property
    def _nothing(self) -> list[int]:
        return [0] * (len(self.bounds) + 1)


@dataclass(frozen=True, slots=True)
class Together:
    """
    key        whose a row is
    most       columns of which the longer stretch has the most there was
    counted    columns that are added up
    worst      a column of statuses, of which it has the worst
    histogram  counts from which its percentiles come
    """

    key: tuple[str, ...]
    most: tuple[str, ...]
    counted: tuple[str, ...]
    worst: str = ""
    histogram: Histogram | None = None

    def rows(self, shorter: QuerySet[Any]) -> Iterator[Mapping[str, Any]]:
        """Without the time at which the longer stretch begins."""
        shorter = shorter.order_by()
        times = self.histogram.columns(shorter, self.key) if self.histogram else {}
        nothing = self.histogram.of_nothing() if self.histogram else {}
        for row in shorter.values(*self.key).annotate(**self._figures()):
            whose = {name: row[name] for name in self.key}
            told = {name: row[f"all_{name}"] for name in (*self.most, *self.counted)}
            status = {self.worst: _BY_BADNESS[row["badness"]]} if self.worst else {}
            yield {**whose, **told, **status, **times.get(tuple(whose.values()), nothing)}

    def _figures(self) -> dict[str, Any]:
        badness = {"badness": Max(_badness(self.worst))} if self.worst else {}
        return {
            **{f"all_{name}": Max(name) for name in self.most},
            **{f"all_{name}": Sum(name) for name in self.counted},
            **badness,
        }


def _badness(column: str) -> Case:
    return Case(*(When(**{column: one}, then=one.badness) for one in LagStatus), output_field=IntegerField())
