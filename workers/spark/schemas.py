"""The frames of the pipeline: one for each kind of event.

Each kind has its fields under the names they have in `events.proto`. A kind is written down once, as an Arrow schema;
what Spark needs follows from it. Texts are the same in many events: each is there once, and events have its number.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

TEXT: Final = pa.dictionary(pa.int32(), pa.string())

_AT = (
    pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("service_id", TEXT, nullable=False),
)
_TENANTS = pa.list_(
    pa.struct(
        [
            ("tenant_id", pa.string()),
            ("messages", pa.int64()),
            ("bytes", pa.int64()),
            ("errors", pa.int64()),
            ("dead_letters", pa.int64()),
        ]
    )
)
_ENTITIES = pa.list_(
    pa.struct([("key", pa.binary()), ("is_uuid", pa.bool_()), ("tenant_id", pa.string()), ("messages", pa.int64())])
)
_LETTERS = pa.list_(pa.struct([("fingerprint", pa.string()), ("tenant_id", pa.string()), ("letters", pa.int64())]))


def _longs(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.int64(), nullable=False) for name in names]


def _texts(*names: str) -> list[pa.Field]:
    return [pa.field(name, TEXT, nullable=False) for name in names]


_PARTITION = pa.field("partition", pa.int32(), nullable=False)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of event: the field of `Event` that holds it, and the columns of its frame.

    identity  a few of them, by which most events are told apart
    place     two of them, a name and a partition's number, by which it is stored in parts; of few events none
    """

    name: str
    body: str
    arrow: pa.Schema
    identity: tuple[str, ...]
    place: tuple[str, ...] = ()

    @property
    def spark(self) -> StructType:
        schema: StructType = from_arrow_schema(pa.schema(map(as_text, self.arrow)))
        return schema

    def chosen(self, columns: Iterable[str]) -> pa.Schema:
        """Columns of these names. Of a list's structures all members, or those that are named: `tenants.messages`."""
        wanted: dict[str, list[str]] = {}
        for column in columns:
            name, _, member = column.partition(".")
            wanted.setdefault(name, []).extend([member] if member else [])
        return pa.schema([_with_members(self.arrow.field(name), members) for name, members in wanted.items()])

    @property
    def single(self) -> tuple[str, ...]:
        """Columns that are no lists."""
        return tuple(field.name for field in self.arrow if not pa.types.is_list(field.type))

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of the event's body, in the order of the columns."""
        return tuple(self.arrow.names[len(_AT) :])


def _with_members(field: pa.Field, members: Collection[str]) -> pa.Field:
    if not members:
        return field
    return field.with_type(pa.list_(pa.struct([one for one in field.type.value_type if one.name in members])))


def as_text(field: pa.Field) -> pa.Field:
    """The field with the text itself, where it has a number for it."""
    return field.with_type(pa.string()) if field.type == TEXT else field


OFFSET_SAMPLES: Final = Kind(
    "offset_samples",
    "offset_sample",
    pa.schema(
        [
            *_AT,
            *_texts("queue_id"),
            _PARTITION,
            *_texts("topic", "group"),
            *_longs("beginning_offset", "end_offset"),
            pa.field("committed_offset", pa.int64()),
        ]
    ),
    ("at", "service_id", "queue_id", "partition"),
    place=("queue_id", "partition"),
)

REQUEST_SAMPLES: Final = Kind(
    "request_samples",
    "request_sample",
    pa.schema(
        [
            *_AT,
            *_texts("request_topic"),
            *_longs("interval_ms", "pending", "pending_limit", "pending_memory_bytes", "oldest_pending_ms"),
            *_longs("sent", "answered", "failed", "timed_out", "not_stored", "cancelled", "refused", "late", "orphans"),
            pa.field("lag_bounds_ms", pa.list_(pa.int64())),
            pa.field("lag_buckets", pa.list_(pa.int64())),
            pa.field("lag_total_ms", pa.float64(), nullable=False),
            pa.field("age_buckets", pa.list_(pa.int64())),
        ]
    ),
    ("at", "service_id", "request_topic"),
)

CONSUMED_SAMPLES: Final = Kind(
    "consumed_samples",
    "consumed_sample",
    pa.schema(
        [
            *_AT,
            *_texts("queue_id"),
            _PARTITION,
            *_texts("topic", "group"),
            *_longs("interval_ms", "polled", "polled_bytes", "packs", "commits", "succeeded", "failed", "timed_out"),
            *_longs("retried", "handled", "dead_lettered", "dropped"),
            pa.field("processing_bounds_ms", pa.list_(pa.float64())),
            pa.field("processing_buckets", pa.list_(pa.int64())),
            pa.field("processing_total_ms", pa.float64(), nullable=False),
            pa.field("tenants", _TENANTS),
            pa.field("entities", _ENTITIES),
            pa.field("letters", _LETTERS),
        ]
    ),
    ("at", "service_id", "queue_id", "partition"),
    place=("queue_id", "partition"),
)

SENT_SAMPLES: Final = Kind(
    "sent_samples",
    "sent_sample",
    pa.schema(
        [
            *_AT,
            *_texts("topic"),
            _PARTITION,
            *_longs("interval_ms", "sent", "sent_bytes", "failed"),
            pa.field("tenants", _TENANTS),
        ]
    ),
    ("at", "service_id", "topic", "partition"),
    place=("topic", "partition"),
)

KINDS: Final = (OFFSET_SAMPLES, REQUEST_SAMPLES, CONSUMED_SAMPLES, SENT_SAMPLES)
KINDS_BY_NAME: Final = {kind.name: kind for kind in KINDS}

# One row for each task, see `reports.Report`.
REPORT_ARROW: Final = pa.schema([pa.field("report", pa.string(), nullable=False)])
REPORT_SCHEMA: Final[StructType] = from_arrow_schema(REPORT_ARROW)
