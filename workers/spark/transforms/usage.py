"""What each tenant used, day by day."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial, reduce
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from workers.spark.schemas import CONSUMED_SAMPLES, SENT_SAMPLES
from workers.spark.transforms.arrow import map_parts
from workers.spark.transforms.samples import DAY_US, SampleFiles, exploded, grouped, read_once, since, summed

_UUID: Final = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
# What is told of a tenant's share of messages, under the names that it has in a day's row.
_SENT: Final = {"messages": "sent", "bytes": "sent_bytes"}
_HANDLED: Final = {
    "messages": "handled",
    "bytes": "handled_bytes",
    "errors": "errors",
    "dead_letters": "dead_letters",
}
_FIGURES: Final = (*_SENT.values(), *_HANDLED.values())
_USED: Final = pa.schema([("tenant_id", pa.string()), ("day", pa.date32()), *((name, pa.int64()) for name in _FIGURES)])


def tenant_usage(
    parts: DataFrame, consumed: SampleFiles, sent: SampleFiles, letter_topics: Collection[str] = ()
) -> DataFrame:
    """What the samples tell of each tenant's days, by UTC: to be added to the rows of `TenantUsageDay`.

    `letter_topics` are those that hold dead letters, or their payloads, without being called so.
    Messages that name no tenant, or something that is none, are nobody's to pay; nor are those beyond the number of
    tenants that a sample tells apart.
    """
    counted = map_parts(parts, partial(_count, consumed, sent, sorted(letter_topics)), _USED)
    return (
        counted.where(f.col("tenant_id").rlike(_UUID))
        .groupBy(f.lower("tenant_id").alias("tenant_id"), "day")
        .agg(*(f.sum(name).alias(name) for name in _FIGURES))
    )


def _count(
    consumed: SampleFiles, sent: SampleFiles, letter_topics: list[str], parts: set[int]
) -> Iterator[pa.RecordBatch]:
    handled = read_once(consumed, CONSUMED_SAMPLES, _members(_HANDLED), parts)
    stored = read_once(sent, SENT_SAMPLES, _members(_SENT), parts)
    shares = chain(
        (_shares(rows, _HANDLED) for rows in handled),
        (_shares(_without_letters(rows, letter_topics), _SENT) for rows in stored),
    )
    return summed(shares, _USED, ("tenant_id", "day"), **dict.fromkeys(_FIGURES, "sum"))


def _members(figures: Iterable[str]) -> list[str]:
    return [f"tenants.{name}" for name in ("tenant_id", *figures)]


def _without_letters(rows: pa.Table, letter_topics: list[str]) -> pa.Table:
    return rows.filter(pc.invert(_is_of_letters(rows["topic"].combine_chunks(), letter_topics)))


def _is_of_letters(topics: pa.DictionaryArray, named: list[str]) -> pa.BooleanArray:
    """Whoever's message was given up did not send another."""
    names = topics.dictionary
    by_name = (pc.ends_with(names, suffix) for suffix in (".dlq", ".dlq.payloads"))
    return reduce(pc.or_, by_name, pc.is_in(names, value_set=pa.array(named, pa.string()))).take(topics.indices)


def _shares(rows: pa.Table, figures: dict[str, str]) -> pa.Table:
    """What each tenant has of the samples of each day, under these names; of other figures nothing."""
    daily = rows.append_column("day", since(rows, DAY_US).cast(pa.date32()))
    used = grouped(exploded(daily, "tenants", "day"), ("tenant_id", "day"), **dict.fromkeys(figures, "sum"))
    nothing = pa.repeat(pa.scalar(0, pa.int64()), used.num_rows)
    named = dict.fromkeys(_FIGURES, nothing) | {name: used[member] for member, name in figures.items()}
    return pa.table({"tenant_id": used["tenant_id"], "day": used["day"], **named})
