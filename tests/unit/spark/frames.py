"""Small frames of samples, one row for each, with only what matters spelt out."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from queuecore.metrics import PROCESSING_BOUNDS_MS
from queuecore.requests import LAG_BOUNDS_MS
from workers.spark.part_files import EventFiles
from workers.spark.schemas import Kind

START = datetime(2026, 1, 2, 3, 4, 0, tzinfo=UTC)
QUEUE = "11111111-1111-1111-1111-111111111111"

Row = dict[str, Any]

_AT = [("at", pa.timestamp("us", tz="UTC")), ("service_id", pa.string())]
_REQUEST_COUNTS = (
    *("interval_ms", "pending", "pending_limit", "pending_memory_bytes", "oldest_pending_ms", "sent", "answered"),
    *("failed", "timed_out", "not_stored", "cancelled", "refused", "late", "orphans"),
)
_CONSUMED_COUNTS = (
    *("interval_ms", "polled", "polled_bytes", "packs", "commits", "succeeded", "failed", "timed_out", "retried"),
    *("handled", "dead_lettered", "dropped"),
)
OFFSETS = pa.schema(
    [
        *_AT,
        ("queue_id", pa.string()),
        ("partition", pa.int32()),
        ("topic", pa.string()),
        ("group", pa.string()),
        *((name, pa.int64()) for name in ("beginning_offset", "end_offset", "committed_offset")),
    ]
)
REQUESTS = pa.schema(
    [
        *_AT,
        ("request_topic", pa.string()),
        *((name, pa.int64()) for name in _REQUEST_COUNTS),
        ("lag_bounds_ms", pa.list_(pa.int64())),
        ("lag_buckets", pa.list_(pa.int64())),
        ("lag_total_ms", pa.float64()),
        ("age_buckets", pa.list_(pa.int64())),
    ]
)
Files = Callable[[Kind, Iterable[Row]], EventFiles]


def frame(spark: SparkSession, schema: pa.Schema, rows: Iterable[Row]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=schema))


def rows(found: DataFrame) -> list[Row]:
    return found.toArrow().to_pylist()


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def offsets(second: float, end: int, committed: int | None = None, **changes: Any) -> Row:
    return {
        "at": at(second),
        "service_id": "sampler",
        "queue_id": QUEUE,
        "partition": 0,
        "topic": "tb_main.0",
        "group": "main-consumer-0",
        "beginning_offset": 0,
        "end_offset": end,
        "committed_offset": committed,
        **changes,
    }


def requests(second: float, lags_ms: Iterable[int] = (), **changes: Any) -> Row:
    return {
        "at": at(second),
        "service_id": "web-1",
        "request_topic": "tb_transport.api.requests",
        **dict.fromkeys(_REQUEST_COUNTS, 0),
        "lag_bounds_ms": list(LAG_BOUNDS_MS),
        "lag_buckets": buckets(LAG_BOUNDS_MS, lags_ms),
        "lag_total_ms": 0.0,
        "age_buckets": [],
        **changes,
    }


def consumed(second: float, took_ms: Iterable[float] = (), **changes: Any) -> Row:
    return {
        "at": at(second),
        "service_id": "host-1",
        "queue_id": QUEUE,
        "partition": 0,
        "topic": "tb_main.0",
        "group": "main-consumer-0",
        **dict.fromkeys(_CONSUMED_COUNTS, 0),
        "processing_bounds_ms": list(PROCESSING_BOUNDS_MS),
        "processing_buckets": buckets(PROCESSING_BOUNDS_MS, took_ms),
        "processing_total_ms": 0.0,
        "tenants": [],
        "entities": [],
        "letters": [],
        **changes,
    }


def sent(second: float, **changes: Any) -> Row:
    return {
        "at": at(second),
        "service_id": "web-1",
        "topic": "tb_main.0",
        "partition": 0,
        **dict.fromkeys(("interval_ms", "sent", "sent_bytes", "failed"), 0),
        "tenants": [],
        **changes,
    }


def tenant(tenant_id: str, messages: int, size: int = 0, errors: int = 0, dead_letters: int = 0) -> Row:
    return {
        "tenant_id": tenant_id,
        "messages": messages,
        "bytes": size,
        "errors": errors,
        "dead_letters": dead_letters,
    }


def entity(key: UUID | bytes, messages: int, tenant_id: str = "") -> Row:
    raw = key.bytes if isinstance(key, UUID) else key
    return {"key": raw, "is_uuid": isinstance(key, UUID), "tenant_id": tenant_id, "messages": messages}


def buckets(bounds: Iterable[float], values: Iterable[float]) -> list[int]:
    bounds = list(bounds)
    counts = [0] * (len(bounds) + 1)
    for value in values:
        counts[sum(bound < value for bound in bounds)] += 1
    return counts
