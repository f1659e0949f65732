"""What each tenant used, day by day."""

from collections.abc import Collection
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from workers.spark.transforms.minutes import once

_UUID: Final = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def tenant_usage(
    consumed: DataFrame, sent: DataFrame, letter_topics: Collection[str] = (), *, is_once: bool = False
) -> DataFrame:
    """What the batch tells of each tenant's days, by UTC: to be added to the rows of `TenantUsageDay`.

    `letter_topics` are those that hold dead letters, or their payloads, without being called so.
    Messages that name no tenant, or something that is none, are nobody's to pay; nor are those beyond the number of
    tenants that a sample tells apart.
    """
    nothing = f.lit(0).cast("long")
    share = f.col("share")
    handled = _shares(consumed, is_once=is_once).select(
        "tenant_id",
        "day",
        nothing.alias("sent"),
        nothing.alias("sent_bytes"),
        share.messages.alias("handled"),
        share.bytes.alias("handled_bytes"),
        share.errors.alias("errors"),
        share.dead_letters.alias("dead_letters"),
    )
    stored = _shares(sent.where(~_is_of_letters(letter_topics)), is_once=is_once).select(
        "tenant_id", "day", share.messages.alias("sent"), share.bytes.alias("sent_bytes")
    )
    figures = [name for name in handled.columns if name not in ("tenant_id", "day")]
    return (
        handled.unionByName(stored, allowMissingColumns=True)
        .groupBy("tenant_id", "day")
        .agg(*(f.coalesce(f.sum(name), nothing).alias(name) for name in figures))
    )


def _is_of_letters(named: Collection[str]) -> Column:
    """Whoever's message was given up did not send another."""
    topic = f.col("topic")
    return topic.endswith(".dlq") | topic.endswith(".dlq.payloads") | topic.isin(list(named))


def _shares(samples: DataFrame, *, is_once: bool) -> DataFrame:
    """One row for each tenant in each sample."""
    shares = once(samples, is_once=is_once).select(f.to_date("at").alias("day"), f.explode("tenants").alias("share"))
    return shares.where(f.col("share.tenant_id").rlike(_UUID)).withColumn("tenant_id", f.lower("share.tenant_id"))
