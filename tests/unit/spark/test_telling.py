"""A history by columns is what it is sample by sample."""

from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.frames import QUEUE
from workers.spark.schemas import TEXT
from workers.spark.transforms.options import Extent, LagOptions
from workers.spark.transforms.series import Works, all_series
from workers.spark.transforms.singly import sampled_singly
from workers.spark.transforms.telling import all_sampled
from workers.spark.transforms.track import in_order, strange

START_US = 1_790_000_000_000_000
SECOND_US = 1_000_000
SAMPLES = pa.schema(
    [
        ("queue_id", TEXT),
        ("partition", pa.int32()),
        ("at_us", pa.int64()),
        ("service_id", TEXT),
        ("topic", TEXT),
        ("group", TEXT),
        ("beginning_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("committed_offset", pa.int64()),
        ("is_new", pa.bool_()),
    ]
)
WORK = pa.schema([*list(SAMPLES)[:3], *((name, pa.int64()) for name in ("commits", "attempts", "failures"))])

Row = dict[str, Any]


def sample(second: float, end: int, committed: int | None, **changes: Any) -> Row:
    fields = {
        "queue_id": QUEUE,
        "partition": 0,
        "at_us": START_US + int(second * SECOND_US),
        "service_id": "sampler",
        "topic": "t",
        "group": "g",
        "beginning_offset": 0,
        "end_offset": end,
        "committed_offset": committed,
        "is_new": True,
    }
    return fields | changes


@st.composite
def stories(draw: st.DrawFn, partition: int) -> list[Row]:
    """What happens to a partition, mostly in order: it goes on, or stands still; at times everything else."""
    second, end, committed = draw(st.floats(0, 100)), draw(st.integers(0, 100)), 0
    rows = []
    is_odd = draw(st.booleans())
    for _ in range(draw(st.integers(1, 40))):
        second += draw(st.sampled_from([0.000001, 4.9, 5.0, 5.000003, 20.0, 61.0, 300.0]))
        end += draw(st.sampled_from([0, 1, 7, 100]))
        committed = min(end + 3, committed + draw(st.sampled_from([0, 0, 5, 60, 200])))
        changes: Row = {"partition": partition, "is_new": draw(st.booleans())}
        told: int | None = committed
        match draw(st.sampled_from(["on"] * 6 + ["none", "back"] + ["anew", "other", "again", "named"] * is_odd)):
            case "none":
                told = None
            case "back":
                told = committed = committed // 2
            case "anew":
                end = committed = 0
            case "other":
                changes |= {"service_id": "other", "beginning_offset": min(3, end)}
            case "again":
                rows.append(sample(second, max(0, end - 1), told, **changes))
            case "named":
                changes["topic"] = "t2"
        rows.append(sample(second, end, told, **changes))
    return rows


work = st.lists(
    st.builds(
        lambda partition, second, commits, attempts: {
            "queue_id": QUEUE,
            "partition": partition,
            "at_us": START_US + second * SECOND_US,
            "commits": commits,
            "attempts": attempts,
            "failures": attempts // 2,
        },
        st.integers(0, 2),
        st.integers(0, 1_000),
        st.integers(0, 1),
        st.integers(0, 3),
    ),
    max_size=10,
)


@given(
    st.tuples(stories(0), stories(1), stories(2)).flatmap(lambda all_of_it: st.permutations([*chain(*all_of_it)])),
    work,
    st.sampled_from([0, START_US, START_US + 240 * SECOND_US]),
    st.sampled_from([LagOptions(), LagOptions(window_s=30.0, allowed_lag=5, stop_after_s=10.0)]),
)
def test_by_columns_as_one_by_one(samples: list[Row], said: list[Row], since_us: int, options: LagOptions) -> None:
    track = in_order(pa.Table.from_pylist(samples, SAMPLES))
    works = Works(lambda: pa.Table.from_pylist(said, WORK))
    found = all_sampled(options, Extent(since_us), track, works)
    expected = [row for series in all_series(track.rows, works) for row in sampled_singly(options, since_us, series)]
    assert sorted(map(repr, (tuple(row.values()) for row in found.to_pylist()))) == sorted(map(repr, expected))


def test_numbers_too_large_for_columns_are_looked_at_one_by_one() -> None:
    """An end beyond reason is refused nowhere, and must not hold up the batch."""
    rows = [
        sample(second, end, 0, partition=partition)
        for partition in range(10)
        for second, end in ((0, 1), (5, 1 << 60), (10, (1 << 60) + 10))
    ]
    track = in_order(pa.Table.from_pylist(rows, SAMPLES))
    found = all_sampled(LagOptions(), Extent(), track, Works(lambda: pa.Table.from_pylist([], WORK)))
    assert found.num_rows == len(rows)
    assert found["lag_messages"].to_pylist()[:3] == [1, 1 << 60, (1 << 60) + 10]


@pytest.mark.parametrize(
    ("changes", "is_strange"),
    [
        ({}, False),
        ({"end_offset": 5}, True),
        ({"topic": "t2"}, True),
        ({"group": "g2"}, True),
        ({"service_id": "other"}, False),
        ({"committed_offset": 1}, False),
        ({"committed_offset": None}, False),
        ({"service_id": "other", "committed_offset": 1}, True),
        ({"service_id": "other", "committed_offset": None}, True),
        ({"partition": 1, "end_offset": 5, "topic": "t2", "service_id": "other"}, False),
    ],
)
def test_strange_is_who_may_have_another_life(changes: Row, is_strange: bool) -> None:
    rows = [sample(0, 10, 5), sample(5, 12, 6) | changes]
    assert bool(strange(in_order(pa.Table.from_pylist(rows, SAMPLES)))) == is_strange
