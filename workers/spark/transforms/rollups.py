"""Rows of one queue and stretch of time, as one."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from queueapi.choices import LagStatus


def worst(status: str) -> Column:
    """The worst status of a group of rows; null where none has one."""
    by_badness = f.array(*(f.lit(one.value) for one in sorted(LagStatus, key=lambda one: one.badness)))
    return f.get(by_badness, (f.max(f.array_position(by_badness, f.col(status))) - 1).cast("int"))


def rolled_up(rows: DataFrame, unit: str, *more: Column) -> DataFrame:
    return rows.groupBy("queue_id", f.date_trunc(unit, "at").alias("at")).agg(
        f.max("lag_messages").alias("lag_messages"),
        f.max("lag_seconds").alias("lag_seconds"),
        f.sum("produced").alias("produced"),
        f.sum("consumed").alias("consumed"),
        worst("status").alias("status"),
        f.sum("samples").cast("int").alias("samples"),
        *more,
    )
