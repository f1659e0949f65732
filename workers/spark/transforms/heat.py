"""How evenly a queue's messages are spread over its partitions, whose they are, and what would change that."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from queuecore.hashing import DEFAULT_HASH, Entity
from workers.spark.schemas import CONSUMED_SAMPLES
from workers.spark.transforms.arrow import map_in_arrow, map_parts
from workers.spark.transforms.samples import AT, SampleFiles, exploded, grouped, read_once, summed
from workers.spark.transforms.what_if import skew, what_if

_PARTITION, _ENTITY, _TENANT = "partition", "entity", "tenant"
_COLUMNS: Final = ("polled", "entities", "tenants.tenant_id", "tenants.messages")

_COUNTS: Final = pa.schema(
    [
        ("queue_id", pa.string()),
        ("partition", pa.int32()),
        ("kind", pa.string()),
        ("key", pa.binary()),
        ("is_uuid", pa.bool_()),
        ("tenant_id", pa.string()),
        ("messages", pa.int64()),
        ("as_of", AT),
        ("is_new", pa.bool_()),
    ]
)
_SKEW: Final = pa.schema(
    [
        ("queue_id", pa.string()),
        ("skew", pa.float64()),
        ("entities_seen", pa.int32()),
        (
            "what_if",
            pa.list_(
                pa.struct(
                    [
                        ("partitions", pa.int32()),
                        ("hash_function", pa.string()),
                        ("skew", pa.float64()),
                        ("moved", pa.float64()),
                    ]
                )
            ),
        ),
        ("as_of", AT),
    ]
)


@dataclass(frozen=True, slots=True)
class HeatOptions:
    """What is hot, and what is told.

    hot_factor        a partition is hot that has so many times what each would have if all had the same
    hot_messages      and at least so many: among a few messages one partition always has the most
    named             how many entities and tenants of a partition are named
    entities          how many of a queue's entities are laid out anew, those with the most messages
    partitions        how many each queue has, by its id; for others, as many as were seen
    hash_function     by which entities are laid out now
    """

    hot_factor: float = 2.0
    hot_messages: int = 1_000
    named: int = 10
    entities: int = 1_000
    partitions: Mapping[str, int] = field(default_factory=dict)
    hash_function: str = DEFAULT_HASH


def partition_heat(counts: DataFrame, options: HeatOptions | None = None) -> DataFrame:
    """All partitions that consumers told of, in the batch or the window, of queues that the batch tells of: rows of
    `PartitionHeat`. The window says of how long that is. Shares are of one time for all: a row is as of its queue's
    newest sample, so that a partition that fell silent has less from one run to the next."""
    options = options or HeatOptions()
    of_queue = Window.partitionBy("queue_id")
    messages, total = f.col("messages"), f.sum("messages").over(of_queue)
    # Who has nothing to consume tells nothing: what was seen may be too few.
    partitions = f.coalesce("queue_partitions", f.max("partition").over(of_queue) + 1)
    return (
        counts.groupBy("queue_id", "partition")
        .agg(
            f.coalesce(f.sum(f.when(_is(_PARTITION), messages)), f.lit(0)).alias("messages"),
            _most(_ENTITY, options.named, key=_text(), is_uuid=f.col("is_uuid"), tenant_id=f.col("tenant_id")),
            _most(_TENANT, options.named, tenant_id=f.col("tenant_id")),
            f.max("as_of").alias("as_of"),
            f.max("is_new").alias("is_new"),
        )
        .join(f.broadcast(_partitions(counts.sparkSession, options)), "queue_id", "left")
        .withColumns(
            {
                "share": f.coalesce(messages / f.nullif(total, f.lit(0)), f.lit(0.0)),
                "is_hot": (messages * partitions > total * options.hot_factor) & (messages >= options.hot_messages),
                "as_of": f.max("as_of").over(of_queue),
                "is_new": f.max("is_new").over(of_queue),
            }
        )
        .where("is_new")
        .drop("is_new", "queue_partitions")
    )


def queue_skew(counts: DataFrame, options: HeatOptions | None = None) -> DataFrame:
    """Rows of `QueueSkew` for the queues that the batch tells of."""
    rows = counts.where(~_is(_TENANT)).select(
        "queue_id", "kind", "partition", "key", "is_uuid", "messages", f.unix_micros("as_of").alias("as_of"), "is_new"
    )
    ordered = rows.repartition("queue_id").sortWithinPartitions("queue_id")
    return map_in_arrow(ordered, partial(_skews, options or HeatOptions()), _SKEW)


def heat_counts(parts: DataFrame, consumed: SampleFiles) -> DataFrame:
    """What `partition_heat` and `queue_skew` are made of: messages of each partition, each entity in it, and each
    tenant in it, as rows of three kinds, from one look at the samples. All samples of a partition are of one part, so
    that nothing is left to be added up."""
    return map_parts(parts, partial(_count, consumed), _COUNTS)


def _count(files: SampleFiles, parts: set[int]) -> Iterator[pa.RecordBatch]:
    pieces = read_once(files, CONSUMED_SAMPLES, _COLUMNS, parts)
    counts = (table for rows in pieces for table in _counts(rows))
    keys = ("queue_id", "partition", "kind", "key", "is_uuid", "tenant_id")
    return summed(counts, _COUNTS, keys, messages="sum", as_of="max", is_new="max")


def _counts(rows: pa.Table) -> Iterator[pa.Table]:
    of_row = ("queue_id", "partition", "at", "is_new")
    yield _summed(_PARTITION, rows.select([*of_row, "polled"]).rename_columns([*of_row, "messages"]))
    yield _summed(_ENTITY, exploded(rows, "entities", *of_row), "key", "is_uuid", "tenant_id")
    yield _summed(_TENANT, exploded(rows, "tenants", *of_row), "tenant_id")


def _summed(kind: str, rows: pa.Table, *named: str) -> pa.Table:
    """A row for each that is named so in a partition."""
    found = grouped(rows, ("queue_id", "partition", *named), messages="sum", at="max", is_new="max")
    columns = {name: found[name] for name in found.column_names if name != "at"}
    missing = {
        field.name: pa.nulls(found.num_rows, field.type) for field in _COUNTS if field.name not in found.column_names
    }
    told = {"kind": pa.repeat(kind, found.num_rows), "as_of": found["at"]}
    return pa.table(missing | columns | told)


def _is(kind: str) -> Column:
    return f.col("kind") == kind


def _partitions(spark: SparkSession, options: HeatOptions) -> DataFrame:
    return spark.createDataFrame(
        pa.table(
            {
                "queue_id": pa.array(list(options.partitions), pa.string()),
                "queue_partitions": pa.array(list(options.partitions.values()), pa.int32()),
            }
        )
    )


def _most(kind: str, number: int, **named: Column) -> Column:
    """The shares of that kind with the most messages, most first, then by name."""
    shares = f.collect_list(
        f.when(
            _is(kind), f.struct((-f.col("messages")).alias("order"), *(one.alias(name) for name, one in named.items()))
        )
    )
    most = f.slice(f.sort_array(shares), 1, number)
    names = list(named)
    return f.transform(
        most, lambda one: f.struct(*(one[name].alias(name) for name in names), (-one["order"]).alias("messages"))
    ).alias({_ENTITY: "entities", _TENANT: "tenants"}[kind])


def _text() -> Column:
    """A key as people read it: an id, a text, or, where it is neither, its bytes in hexadecimal."""
    key, text = f.col("key"), f.col("key").cast("string")
    digits = f.lower(f.hex(key))
    as_id = f.regexp_replace(digits, "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")
    readable = f.is_valid_utf8(text) & ~text.rlike(r"\p{Cntrl}")
    return f.when(f.col("is_uuid"), as_id).when(readable, text).otherwise(f.concat(f.lit("0x"), digits))


def _skews(options: HeatOptions, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in batches for row in batch.to_pylist())
    found = [_skew(options, queue_id, list(group)) for queue_id, group in groupby(rows, key=itemgetter("queue_id"))]
    yield pa.RecordBatch.from_pylist([one for one in found if one], schema=_SKEW)


def _skew(options: HeatOptions, queue_id: str, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not any(row["is_new"] for row in rows):
        return None
    by_partition = {row["partition"]: row["messages"] for row in rows if row["kind"] == _PARTITION}
    partitions = options.partitions.get(queue_id) or max(row["partition"] for row in rows) + 1
    entities = _entities(rows)
    largest = dict(nlargest(options.entities, entities.items(), key=itemgetter(1)))
    return {
        "queue_id": queue_id,
        "skew": skew(by_partition.values(), partitions),
        "entities_seen": len(entities),
        "what_if": what_if(largest, partitions, options.hash_function),
        "as_of": max(row["as_of"] for row in rows),
    }


def _entities(rows: Iterable[dict[str, Any]]) -> dict[Entity, int]:
    messages: dict[Entity, int] = {}
    for row in rows:
        if row["kind"] == _ENTITY:
            entity: Entity = UUID(bytes=row["key"]) if row["is_uuid"] and len(row["key"]) == 16 else row["key"]
            messages[entity] = messages.get(entity, 0) + row["messages"]
    return messages
