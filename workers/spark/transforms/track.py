"""The samples of many partitions as columns, each partition's behind each other and in order of time.

What a history wants of all samples is computed for all at once, by Arrow. That is right of partitions whose samples
tell one life by clocks that agree, as nearly all do; `strange` names the others, of which `points.lives` makes sense.
"""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from workers.spark.numbers import numbers

_LARGEST_KEY: Final = 1 << 62
_NONE: Final = -1


class TooWide(ValueError):
    """A partition's number and a time, or an offset, do not fit into one number: look at the rows one by one."""


@dataclass(frozen=True, slots=True)
class Track:
    """rows     the samples in order
    series   which partition each is of: 0, 1, ...
    starts   where in the rows each partition begins, and where the last ends
    at       when each was taken, in microseconds since 1970
    """

    rows: pa.Table
    series: pa.Array
    starts: pa.Array
    at: pa.Array


def in_order(samples: pa.Table) -> Track:
    """By partition, time and offsets."""
    number, at = _numbers(samples), samples["at_us"].combine_chunks()
    try:
        order = _in_short_order(_joined(number, pc.subtract(at, pc.min(at)), spare=0))
    except TooWide:
        order = None
    if order is None:
        order = _in_full_order(samples.append_column("number", number))
    series = number.take(order)
    return Track(samples.take(order), series, _starts(series), at.take(order))


def _numbers(samples: pa.Table) -> pa.Array:
    """Each partition by a number, without gaps."""
    queues = samples["queue_id"].combine_chunks().dictionary_encode().indices.cast(pa.int64())
    partitions = samples["partition"].combine_chunks().cast(pa.int64())
    return _joined(queues, partitions, spare=0).dictionary_encode().indices.cast(pa.int64())


def _in_short_order(keys: pa.Array) -> pa.Array | None:
    """By one number, which is several times faster; None where that does not tell two apart."""
    order = pc.sort_indices(keys)
    ordered = keys.take(order)
    return None if pc.any(pc.equal(ordered[1:], ordered[:-1])).as_py() else order


def _in_full_order(samples: pa.Table) -> pa.Array:
    """By all there is to sort by."""
    names = ("number", "at_us", "end_offset", "committed_offset")
    return pc.sort_indices(samples, sort_keys=[(name, "ascending", "at_start") for name in names])


def _starts(series: pa.Array) -> pa.Array:
    if not len(series):
        return pa.array([0], pa.int64())
    is_first = pa.concat_arrays([pa.array([True]), pc.not_equal(series[1:], series[:-1])])
    return pa.concat_arrays([pc.indices_nonzero(is_first).cast(pa.int64()), pa.array([len(series)], pa.int64())])


def _joined(series: pa.Array, values: pa.Array, spare: int) -> pa.Array:
    """Both in one number, which is in order where they are. Values are not negative; what is looked for may be, or be
    beyond the largest, by no more than is spare."""
    if not len(values):
        return values
    width = pc.max(values).as_py() + 2 * spare + 1
    if (pc.max(series).as_py() + 1) * width > _LARGEST_KEY:
        raise TooWide(f"{len(values)} samples span {width}")
    return pc.add(pc.multiply(series, width), pc.add(values, spare))


def first_within(track: Track, before_us: int) -> pa.Array:
    """Of each row the first of its partition's that is so much before it, or less."""
    since = pc.subtract(track.at, pc.min(track.at)) if len(track.at) else track.at
    keys = _joined(track.series, since, spare=before_us)
    return pc.search_sorted(keys, pc.subtract(keys, before_us), side="left").cast(pa.int64())


def first_beyond(track: Track, ends: pa.Array, positions: pa.Array) -> pa.Array:
    """Of each row the first of its partition's whose end is behind its position, which is before its own end. Ends only
    grow."""
    base = ends.take(track.starts[:-1]).take(track.series)
    grown = pc.subtract(ends, base)
    # How far a position is before all ends does not matter.
    wanted = pc.max_element_wise(pc.subtract(positions, base), _NONE)
    keys = _joined(track.series, grown, spare=1)
    return pc.search_sorted(keys, pc.add(pc.subtract(keys, grown), wanted), side="right").cast(pa.int64())


def strange(track: Track) -> list[int]:
    """The partitions of which not all samples tell of one life by clocks that agree."""
    if track.rows.num_rows < 2:
        return []
    before, after = track.rows.slice(0, track.rows.num_rows - 1), track.rows.slice(1)
    is_same = pc.equal(track.series[:-1], track.series[1:])
    is_odd = pc.less(_column(after, "end_offset"), _column(before, "end_offset"))
    for name in ("topic", "group"):
        is_odd = pc.or_(is_odd, pc.not_equal(_column(after, name), _column(before, name)))
    is_another = pc.not_equal(_column(after, "service_id"), _column(before, "service_id"))
    is_odd = pc.or_(is_odd, pc.and_(is_another, pc.not_equal(went_back(track), 0).slice(1)))
    found: list[int] = pc.unique(track.series[1:].filter(pc.and_(is_same, is_odd))).to_pylist()
    return found


def went_back(track: Track) -> pa.Array:
    """1 where the group is before where the sample in front of it had it, or has no offset any more; else 0."""
    committed = pc.fill_null(_column(track.rows, "committed_offset"), _NONE)
    is_back = pc.less(committed, before(committed))
    return pc.and_(is_back, is_of_same(track)).cast(pa.int64())


def before(values: pa.Array) -> pa.Array:
    """The value of the row in front of each; of the first its own."""
    return pa.concat_arrays([values[:1], values[:-1]])


def is_of_same(track: Track) -> pa.Array:
    """Whether the row in front of each is of the same partition."""
    return pc.and_(pc.equal(track.series, before(track.series)), pc.greater(numbers(len(track.series)), 0))


def _column(rows: pa.Table, name: str) -> pa.Array:
    return rows[name].combine_chunks()
