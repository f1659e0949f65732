"""What the summaries are, as functions from frames to frames: no clock, no database, no state."""

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.window import WindowSpec

# What is already known of a partition: its newest sample in an earlier batch.
KNOWN_SCHEMA = pa.schema(
    [
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("queue_id", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("end_offset", pa.int64(), nullable=False),
        pa.field("committed_offset", pa.int64()),
    ]
)

_KEY = ("queue_id", "partition")
_ORDER = ("at", "end_offset", "committed_offset")  # null, which sorts first: not committed yet


def current_lag(samples: DataFrame, known: DataFrame, rate_window_s: int) -> DataFrame:
    """Each sampled partition's standing at its newest sample: lag in messages, and rates up to then.

    A rate is taken between the oldest and the newest sample of the last `rate_window_s` seconds; `known` counts
    as samples there, so that a batch with a single sample has rates too. A rate is null where there is only one
    sample, where offsets went backwards (the topic was made anew, or the group was reset), and, for
    `consumed_per_s`, where the group had not committed. `samples` says how many were new.

    Where `known` is newer than every sample, the row is `known` again, without its topic, group and lag.
    """
    recent = _recent(_together(samples, known), rate_window_s)
    in_order = Window.partitionBy(*_KEY).orderBy(*_ORDER)
    return (
        recent.withColumn("end_went_back", _went_back("end_offset", in_order))
        .withColumn("committed_went_back", _went_back("committed_offset", in_order))
        .groupBy(*_KEY)
        .agg(
            f.min(f.struct(*_ORDER)).alias("oldest"),
            f.max(f.struct(*_ORDER, "beginning_offset", "topic", "group")).alias("newest"),
            f.max("end_went_back").alias("end_went_back"),
            f.max("committed_went_back").alias("committed_went_back"),
            f.max("samples").alias("samples"),
        )
        .select(
            *_KEY,
            f.col("newest.topic").alias("topic"),
            f.col("newest.group").alias("consumer_group"),
            f.col("newest.end_offset").alias("end_offset"),
            f.col("newest.committed_offset").alias("committed_offset"),
            _lag_messages().alias("lag_messages"),
            _rate("end_offset", "end_went_back").alias("produced_per_s"),
            _rate("committed_offset", "committed_went_back").alias("consumed_per_s"),
            f.col("newest.at").alias("as_of"),
            "samples",
        )
    )


def _together(samples: DataFrame, known: DataFrame) -> DataFrame:
    """One frame of samples, each with its partition's newest time and count of new ones."""
    every = samples.withColumn("new", f.lit(1)).unionByName(known.withColumn("new", f.lit(0)), allowMissingColumns=True)
    partition = Window.partitionBy(*_KEY)
    return every.select(
        "*", f.max("at").over(partition).alias("newest_at"), f.sum("new").over(partition).alias("samples")
    ).where("samples > 0")


def _recent(samples: DataFrame, window_s: int) -> DataFrame:
    return samples.where(_seconds("newest_at") - _seconds("at") <= window_s)


def _went_back(offset: str, in_order: WindowSpec) -> Column:
    """Whether the offset is below one that an earlier sample had."""
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    return f.max(offset).over(earlier) > f.col(offset)


def _lag_messages() -> Column:
    """A group that never committed has everything before it that is stored."""
    position = f.coalesce("newest.committed_offset", "newest.beginning_offset")
    return f.greatest(f.lit(0), f.when(position.isNotNull(), f.col("newest.end_offset") - position))


def _rate(offset: str, went_back: str) -> Column:
    seconds = _seconds("newest.at") - _seconds("oldest.at")
    usable = (seconds > 0) & ~f.coalesce(f.col(went_back), f.lit(False))
    return f.when(usable, (f.col(f"newest.{offset}") - f.col(f"oldest.{offset}")) / seconds)


def _seconds(time: str) -> Column:
    return f.col(time).cast("double")
