"""What some partitions' samples say: where each stands now, and what each queue's moments were like.

The present is made of rows, a few for each partition; the past of columns, all samples at once, but for partitions that
have more than one life.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from queueapi.choices import LagStatus
from workers.spark.schemas import TEXT
from workers.spark.transforms.figures import (
    consumed_per_s,
    drain_eta_s,
    lag_seconds,
    oldest_age_s,
    produced_per_s,
    recent,
    trend_per_s,
)
from workers.spark.transforms.moments import SECOND_US, once_a_moment, sampled
from workers.spark.transforms.options import Extent, LagOptions
from workers.spark.transforms.points import lives
from workers.spark.transforms.series import Series, Told, Works, all_series
from workers.spark.transforms.singly import micros, sampled_singly, status_then
from workers.spark.transforms.status import judge
from workers.spark.transforms.track import TooWide, Track, in_order, strange

_ROWS_PER_BATCH: Final = 20_000
# Trouble lasts, and is asked of minute by minute: so many times what one is judged by becomes points beforehand.
_AHEAD: Final = 3

_TIME: Final = pa.timestamp("us", tz="UTC")
CURRENT: Final = pa.schema(
    [
        ("queue_id", pa.string()),
        ("partition", pa.int32()),
        ("topic", pa.string()),
        ("consumer_group", pa.string()),
        ("end_offset", pa.int64()),
        ("committed_offset", pa.int64()),
        ("lag_messages", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("produced_per_s", pa.float64()),
        ("consumed_per_s", pa.float64()),
        ("trend_per_s", pa.float64()),
        ("drain_eta_s", pa.float64()),
        ("oldest_age_s", pa.float64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("as_of", _TIME),
    ]
)
# Rows of the present, and of what samples say of one queue and moment; these have no partition. The status is of a
# minute, and stands with its last sample.
LAG: Final = pa.schema(
    [
        *CURRENT,
        ("at", _TIME),
        ("is_new", pa.bool_()),
        ("produced", pa.int64()),
        ("consumed", pa.int64()),
        ("samples", pa.int64()),
    ]
)
# One sample of one partition.
SAMPLED: Final = pa.schema(
    [
        ("queue_id", TEXT),
        ("at", pa.int64()),
        ("is_new", pa.bool_()),
        ("lag_messages", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("produced", pa.int64()),
        ("consumed", pa.int64()),
        ("badness", pa.int64()),
    ]
)
_STATUSES: Final = pa.array([one.value for one in sorted(LagStatus, key=lambda one: one.badness)], pa.string())

Row = tuple[Any, ...]


def tell(options: LagOptions, extent: Extent, told: Told) -> Iterator[pa.RecordBatch]:
    """Rows of `LAG`."""
    track = in_order(told.samples)
    of_now = _table(_currents(options, extent, track, told.work), CURRENT)
    of_then = _moments(all_sampled(options, extent, track, told.work))
    for table in (of_now, of_then):
        columns = {name: table[name] if name in table.column_names else _nulls(name, table) for name in LAG.names}
        yield from pa.table(columns, schema=LAG).to_batches(_ROWS_PER_BATCH)


def _nulls(name: str, table: pa.Table) -> pa.Array:
    return pa.nulls(table.num_rows, LAG.field(name).type)


def _currents(options: LagOptions, extent: Extent, track: Track, works: Works) -> Iterator[Row]:
    late = track.rows
    if extent.is_long:
        # Clocks may differ: what ends a partition's life may be that much newer, and so may what is left out.
        seconds = options.window_s + 2 * options.clock_skew_s
        newest = track.at.take(pc.subtract(track.starts[1:], 1)).take(track.series)
        late = late.filter(pc.less_equal(pc.subtract(newest, track.at), int(seconds * SECOND_US)))
    for series in all_series(late, works):
        if series.new_at_s:
            yield _current(options, series)


def _current(options: LagOptions, series: Series) -> Row:
    points = recent(lives(series.points, options.clock_skew_s)[-1], options.window_s)
    newest, lately = points[-1], recent(points, options.rate_window_s)
    trend = trend_per_s(lately)
    verdict = judge(points, newest.at_s, options, series.work)
    return (
        series.queue_id,
        series.partition,
        newest.topic,
        newest.group,
        newest.end,
        newest.committed,
        newest.lag,
        lag_seconds(points),
        produced_per_s(lately),
        consumed_per_s(lately),
        trend,
        drain_eta_s(newest.lag, trend),
        oldest_age_s(points),
        verdict.status.value,
        verdict.reason,
        micros(newest.at_s),
    )


def _moments(samples: pa.Table) -> pa.Table:
    """All of one queue and moment together."""
    together = samples.group_by(["queue_id", "at"], use_threads=False).aggregate(
        [
            ("is_new", "any"),
            ("lag_messages", "sum"),
            ("lag_seconds", "max"),
            ("produced", "sum"),
            ("consumed", "sum"),
            ("badness", "max"),
            ("at", "count"),
        ]
    )
    return pa.table(
        {
            "queue_id": together["queue_id"].cast(pa.string()),
            "at": together["at"].cast(_TIME),
            "is_new": together["is_new_any"],
            "lag_messages": together["lag_messages_sum"],
            "lag_seconds": together["lag_seconds_max"],
            "produced": together["produced_sum"],
            "consumed": together["consumed_sum"],
            "status": _STATUSES.take(together["badness_max"].combine_chunks()),
            "samples": together["at_count"],
        }
    )


def all_sampled(options: LagOptions, extent: Extent, track: Track, works: Works) -> pa.Table:
    """What each sample says; those of a partition with several lives one by one."""
    odd = pa.array(strange(track), pa.int64())
    is_odd = pc.is_in(track.series, value_set=odd)
    singly = track.rows.filter(is_odd)
    tables = []
    try:
        plain = track if not len(odd) else in_order(track.rows.filter(pc.invert(is_odd)))
        if plain.rows.num_rows:
            once = once_a_moment(plain)
            tables.append(sampled(once, extent.since_us, options, _Judge(options, once, works)))
    except TooWide:
        singly = track.rows
    rows = (row for series in all_series(singly, works) for row in sampled_singly(options, extent.since_us, series))
    return pa.concat_tables([*tables, _table(rows, SAMPLED)]).combine_chunks()


class _Judge:
    """Of partitions whose samples are in columns: those that it is asked of become points."""

    def __init__(self, options: LagOptions, track: Track, works: Works) -> None:
        self._options, self._track, self._works = options, track, works
        # Some rows of one partition, and what they are as points.
        self._rows = range(0)
        self._series: Series | None = None

    def __call__(self, number: int, first: int, last: int) -> LagStatus:
        """Partitions are asked of one after the other, and of each from the past to the present."""
        if self._series is None or not (self._rows.start <= first and last < self._rows.stop):
            self._rows = range(
                first, min(last + 1 + _AHEAD * (last + 1 - first), self._track.starts[number + 1].as_py())
            )
            rows = self._track.rows.slice(self._rows.start, len(self._rows))
            self._series = next(all_series(rows, self._works))
        points = self._series.points[first - self._rows.start : last + 1 - self._rows.start]
        return status_then(self._options, points, self._series.work)


def _table(rows: Iterable[Row], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)], schema=schema)
