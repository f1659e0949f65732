"""Current lag: what the newest sample says, and the rates up to it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from workers.spark.decoding import SAMPLE_SCHEMA
from workers.spark.transforms import KNOWN_SCHEMA, current_lag

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Sample = dict[str, Any]
Lag = Callable[..., dict[tuple[str, int], Sample]]


def sample(second: float, end: int, committed: int | None = None, **changes: Any) -> Sample:
    return {
        "at": START + timedelta(seconds=second),
        "service_id": "sampler",
        "queue_id": "main",
        "partition": 0,
        "topic": "tb_main.0",
        "group": "main-consumer-0",
        "beginning_offset": 0,
        "end_offset": end,
        "committed_offset": committed,
        **changes,
    }


def known(second: float, end: int, committed: int | None = None, **changes: Any) -> Sample:
    row = sample(second, end, committed, **changes)
    return {name: row[name] for name in KNOWN_SCHEMA.names}


@pytest.fixture
def lag(spark: SparkSession) -> Lag:
    """Summaries of the samples, by queue and partition."""

    def summarise(*samples: Sample, known: tuple[Sample, ...] = ()) -> dict[tuple[str, int], Sample]:
        columns = {name: [row[name] for row in samples] for name in SAMPLE_SCHEMA.names}
        batch = spark.createDataFrame(pa.table(columns), SAMPLE_SCHEMA)
        before = spark.createDataFrame(pa.Table.from_pylist(list(known), schema=KNOWN_SCHEMA))
        rows = current_lag(batch, before, rate_window_s=30).toArrow().to_pylist()
        found = {(row["queue_id"], row["partition"]): row for row in rows}
        assert len(found) == len(rows), "more than one row for a partition"
        return found

    return summarise


def test_one_sample_gives_the_lag_and_no_rates(lag: Lag) -> None:
    assert lag(sample(0, 100, 40)) == {
        ("main", 0): {
            "queue_id": "main",
            "partition": 0,
            "topic": "tb_main.0",
            "consumer_group": "main-consumer-0",
            "end_offset": 100,
            "committed_offset": 40,
            "lag_messages": 60,
            "produced_per_s": None,
            "consumed_per_s": None,
            "as_of": START,
            "samples": 1,
        }
    }


def test_rates_are_between_the_oldest_and_the_newest_sample(lag: Lag) -> None:
    row = lag(sample(0, 100, 40), sample(5, 130, 50), sample(10, 200, 80))["main", 0]
    assert (row["produced_per_s"], row["consumed_per_s"]) == (10.0, 4.0)
    assert (row["lag_messages"], row["samples"], row["as_of"]) == (120, 3, START + timedelta(seconds=10))


def test_a_single_sample_has_rates_against_what_is_known(lag: Lag) -> None:
    row = lag(sample(10, 200, 80), known=(known(0, 100, 40),))["main", 0]
    assert (row["produced_per_s"], row["consumed_per_s"], row["samples"]) == (10.0, 4.0, 1)


def test_what_is_long_past_does_not_count_in_a_rate(lag: Lag) -> None:
    row = lag(sample(0, 0, 0), sample(100, 1000, 900), sample(110, 1100, 950), known=(known(-500, 0, 0),))["main", 0]
    assert (row["produced_per_s"], row["consumed_per_s"], row["samples"]) == (10.0, 5.0, 3)


def test_samples_may_come_twice_and_in_any_order(lag: Lag) -> None:
    first, second, third = sample(0, 100, 40), sample(5, 150, 60), sample(10, 200, 80)
    row = lag(third, first, second, third, first, known=(known(0, 100, 40),))["main", 0]
    assert (row["produced_per_s"], row["consumed_per_s"]) == (10.0, 4.0)
    assert (row["end_offset"], row["lag_messages"]) == (200, 120)


def test_two_samples_of_the_same_moment_have_no_rate(lag: Lag) -> None:
    row = lag(sample(0, 100, 40), sample(0, 110, 40))["main", 0]
    assert (row["end_offset"], row["produced_per_s"], row["consumed_per_s"]) == (110, None, None)


@pytest.mark.parametrize("ends", [(500, 20), (100, 5, 200)])
def test_offsets_that_went_back_have_no_rate(lag: Lag, ends: tuple[int, ...]) -> None:
    row = lag(*(sample(5 * index, end, 0) for index, end in enumerate(ends)))["main", 0]
    assert (row["end_offset"], row["produced_per_s"], row["consumed_per_s"]) == (ends[-1], None, 0.0)


def test_a_group_that_was_reset_has_no_rate(lag: Lag) -> None:
    row = lag(sample(0, 100, 90), sample(5, 110, None), sample(10, 120, 95), sample(15, 130, 10))["main", 0]
    assert (row["produced_per_s"], row["consumed_per_s"], row["lag_messages"]) == (2.0, None, 120)


def test_without_a_commit_everything_stored_is_waiting(lag: Lag) -> None:
    row = lag(sample(0, 100, beginning_offset=30), sample(10, 200, beginning_offset=30))["main", 0]
    assert (row["lag_messages"], row["committed_offset"]) == (170, None)
    assert (row["produced_per_s"], row["consumed_per_s"]) == (10.0, None)


def test_the_first_commit_gives_no_rate_yet(lag: Lag) -> None:
    row = lag(sample(0, 100), sample(10, 200, 50))["main", 0]
    assert (row["consumed_per_s"], row["lag_messages"]) == (None, 150)


def test_a_commit_beyond_the_end_is_no_lag(lag: Lag) -> None:
    assert lag(sample(0, 100, 140))["main", 0]["lag_messages"] == 0


def test_partitions_are_apart(lag: Lag) -> None:
    rows = lag(
        sample(0, 10, 0), sample(10, 20, 0), sample(0, 100, 0, partition=1), sample(10, 300, 0, partition=1),
        sample(0, 7, 7, queue_id="other"),
    )  # fmt: skip
    rates = {key: row["produced_per_s"] for key, row in rows.items()}
    assert rates == {("main", 0): 1.0, ("main", 1): 20.0, ("other", 0): None}


def test_a_partition_without_new_samples_has_no_row(lag: Lag) -> None:
    assert set(lag(sample(0, 10, 0), known=(known(0, 10, 0, partition=7),))) == {("main", 0)}


def test_a_sample_older_than_what_is_known_changes_nothing(lag: Lag) -> None:
    row = lag(sample(0, 10, 0), known=(known(10, 20, 5),))["main", 0]
    assert (row["as_of"], row["end_offset"], row["samples"]) == (START + timedelta(seconds=10), 20, 1)
