"""The history of many partitions at once: what each sample says, and all of one queue and moment together."""

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from queueapi.choices import LagStatus
from workers.spark.numbers import numbers
from workers.spark.transforms.figures import LONGEST_LAG_S
from workers.spark.transforms.options import LagOptions
from workers.spark.transforms.track import (
    Track,
    before,
    first_beyond,
    first_within,
    is_of_same,
    went_back,
)

SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US

# The status of the partition of this number, from the first to the last of these rows.
Judge = Callable[[int, int, int], LagStatus]


def once_a_moment(track: Track) -> Track:
    """Of several samples of a partition and moment the last, which is new if one of them is."""
    if len(track.at) < 2:
        return track
    is_last = _is_last_of(track, track.at)
    if pc.all(is_last).as_py():
        return track
    number = pc.subtract(pc.cumulative_sum(is_last.cast(pa.int64())), is_last.cast(pa.int64()))
    moments = pa.table({"number": number, "is_new": track.rows["is_new"]})
    is_new = moments.group_by("number", use_threads=False).aggregate([("is_new", "any")]).sort_by("number")
    rows = track.rows.filter(is_last)
    rows = rows.set_column(rows.column_names.index("is_new"), "is_new", is_new["is_new_any"])
    kept = pc.cumulative_sum(is_last.cast(pa.int64()))
    starts = pa.concat_arrays([pa.array([0], pa.int64()), kept.take(pc.subtract(track.starts[1:], 1))])
    return Track(rows, track.series.filter(is_last), starts, track.at.filter(is_last))


def sampled(track: Track, since_us: int, options: LagOptions, judge: Judge) -> pa.Table:
    """What the samples say of each queue and moment since then. Of no partition that is `strange`."""
    lag, position = _lag(track)
    first = first_within(track, int(options.window_s * SECOND_US))
    behind_s = _lag_seconds(track, lag, position, first)
    produced, consumed = _flow(track)
    columns = {
        "queue_id": _column(track, "queue_id"),
        "at": track.at,
        "is_new": _column(track, "is_new"),
        "lag_messages": lag,
        "lag_seconds": behind_s,
        "produced": produced,
        "consumed": consumed,
        "badness": _badness(track, since_us, lag, first, behind_s, options, judge),
    }
    return pa.table(columns).filter(pc.greater_equal(track.at, since_us))


def _lag(track: Track) -> tuple[pa.Array, pa.Array]:
    """How much waits, and from where on."""
    position = pc.coalesce(_column(track, "committed_offset"), _column(track, "beginning_offset"))
    return pc.max_element_wise(pc.subtract(_column(track, "end_offset"), position), 0), position


def _lag_seconds(track: Track, lag: pa.Array, position: pa.Array, first: pa.Array) -> pa.Array:
    """As `figures.lag_seconds` has it."""
    ends, at_s = _column(track, "end_offset"), pc.divide(track.at.cast(pa.float64()), float(SECOND_US))
    last = numbers(len(track.at))
    index = pc.max_element_wise(pc.min_element_wise(first_beyond(track, ends, position), last), first)
    front = pc.max_element_wise(pc.subtract(index, 1), 0)
    end, end_before, end_first = ends.take(index), ends.take(front), ends.take(first)
    at, at_before, at_first = at_s.take(index), at_s.take(front), at_s.take(first)
    part = pc.divide(_float(pc.subtract(position, end_before)), _float(pc.subtract(end, end_before)))
    between = pc.add(at_before, pc.multiply(part, pc.subtract(at, at_before)))
    rate = pc.divide(_float(pc.subtract(ends, end_first)), pc.subtract(at_s, at_first))
    longer = pc.min_element_wise(pc.divide(_float(pc.subtract(end_first, position)), rate), LONGEST_LAG_S)
    beyond = pc.subtract(at_first, pc.if_else(pc.greater(rate, 0.0), longer, 0.0))
    when = pc.if_else(pc.greater(index, first), between, beyond)
    known = pc.if_else(pc.equal(first, last), pa.scalar(None, pa.float64()), pc.subtract(at_s, when))
    return pc.if_else(pc.equal(lag, 0), 0.0, pc.max_element_wise(known, 0.0, skip_nulls=False))


def _flow(track: Track) -> tuple[pa.Array, pa.Array]:
    """What came, and what went, since the sample before. Nothing where the group went back; where it committed for the
    first time nobody knows where it had begun."""
    is_same = is_of_same(track)
    ends, committed = _column(track, "end_offset"), _column(track, "committed_offset")
    went = pc.max_element_wise(pc.subtract(committed, before(committed)), 0, skip_nulls=False)
    return (
        pc.if_else(is_same, pc.subtract(ends, before(ends)), 0),
        pc.if_else(is_same, pc.fill_null(went, 0), 0),
    )


def _badness(
    track: Track,
    since_us: int,
    lag: pa.Array,
    first: pa.Array,
    behind_s: pa.Array,
    options: LagOptions,
    judge: Judge,
) -> pa.Array:
    """Of the status of each minute, with its last sample. Who gets on, did not go back and is hardly behind is OK: all
    others are judged one by one."""
    is_wanted = pc.and_(_is_last_of(track, pc.divide(track.at, MINUTE_US)), pc.greater_equal(track.at, since_us))
    is_ok = pc.or_(pc.less_equal(lag, options.allowed_lag), pc.equal(first, numbers(len(track.at))))
    steady = pc.and_(_has_got_on(track, lag, first, options), _has_not_gone_back(track, first))
    is_ok = pc.or_(is_ok, pc.and_(steady, pc.fill_null(pc.less(behind_s, options.warn_lag_s), False)))
    found = pc.if_else(is_wanted, pa.scalar(LagStatus.OK.badness, pa.int64()), pa.scalar(None, pa.int64()))
    unclear = pc.indices_nonzero(pc.and_not(is_wanted, is_ok)).cast(pa.int64())
    if not len(unclear):
        return found
    asked = zip(
        track.series.take(unclear).to_pylist(), first.take(unclear).to_pylist(), unclear.to_pylist(), strict=True
    )
    told = pa.array([judge(*one).badness for one in asked], pa.int64())
    is_unclear = pc.is_in(numbers(len(track.at)), value_set=unclear)
    return pc.replace_with_mask(found, is_unclear, told)


def _has_got_on(track: Track, lag: pa.Array, first: pa.Array, options: LagOptions) -> pa.Array:
    """As `status` asks it: within its patience the group did, or had nothing to do."""
    rows = numbers(len(track.at))
    since = pc.subtract(track.at, int(min(options.stop_after_s, options.stop_unknown_s) * SECOND_US))
    committed = pc.fill_null(_column(track, "committed_offset"), -1)
    got_on = pc.cumulative_max(pc.if_else(pc.not_equal(committed, before(committed)), rows, -1))
    did = pc.and_(pc.greater(got_on, first), _is_since(track, got_on, since))
    was_free = before(pc.cumulative_max(pc.if_else(pc.less_equal(lag, options.allowed_lag), rows, -1)))
    had_nothing = pc.and_(pc.greater_equal(was_free, first), _is_since(track, was_free, since))
    return pc.or_(did, pc.and_(had_nothing, pc.less(was_free, rows)))


def _is_since(track: Track, rows: pa.Array, since: pa.Array) -> pa.Array:
    return pc.greater_equal(track.at.take(pc.max_element_wise(rows, 0)), since)


def _has_not_gone_back(track: Track, first: pa.Array) -> pa.Array:
    """Since the first of its rows."""
    times = pc.cumulative_sum(went_back(track))
    return pc.equal(times, times.take(first))


def _is_last_of(track: Track, values: pa.Array) -> pa.Array:
    """Whether the row behind each is another partition's, or has another value."""
    if not len(values):
        return pa.array([], pa.bool_())
    differs = pc.or_(pc.not_equal(values[1:], values[:-1]), pc.not_equal(track.series[1:], track.series[:-1]))
    return pa.concat_arrays([differs, pa.array([True])])


def _float(values: pa.Array) -> pa.Array:
    return values.cast(pa.float64())


def _column(track: Track, name: str) -> pa.Array:
    return track.rows[name].combine_chunks()
