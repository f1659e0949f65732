"""An event of `queue.metrics` as a row. Whatever bytes arrive, they become a row, are another's, or are Unusable."""

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

from google.protobuf.message import DecodeError
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from queuecore.errors import QueueError
from queuecore.metrics import EVENT_VERSION
from queuecore.proto.events_pb2 import Event, OffsetSample
from queuecore.topics import MAX_TOPIC_LENGTH

# A sample from the future would be the newest until that day comes; clocks may differ by this much.
CLOCK_TOLERANCE = timedelta(minutes=5)

SAMPLE_SCHEMA = StructType(
    [
        StructField("at", TimestampType(), nullable=False),
        StructField("service_id", StringType(), nullable=False),
        StructField("queue_id", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("group", StringType(), nullable=False),
        StructField("beginning_offset", LongType(), nullable=False),
        StructField("end_offset", LongType(), nullable=False),
        StructField("committed_offset", LongType(), nullable=True),
    ]
)

SampleRow = tuple[datetime, str, str, int, str, str, int, int, int | None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Unusable(QueueError):
    """These bytes are no event this version can use; the message says why."""

    code = "unusable_event"


def decode_sample(data: bytes) -> SampleRow | None:
    """The row, None where the event is of another kind, Unusable where it cannot be summarised."""
    try:
        event = Event.FromString(data)
    except DecodeError as error:
        raise Unusable("not a protobuf event") from error
    if event.version > EVENT_VERSION:
        raise Unusable(f"event version {event.version} is newer than {EVENT_VERSION}; update the Spark worker")
    if event.WhichOneof("body") != "offset_sample":
        return None
    sample = event.offset_sample
    _check(sample)
    return (
        _time(event.at_ms),
        event.service_id,
        sample.queue_id,
        sample.partition,
        sample.topic,
        sample.group,
        sample.beginning_offset,
        sample.end_offset,
        sample.committed_offset if sample.HasField("committed_offset") else None,
    )


def _time(at_ms: int) -> datetime:
    limit_ms = time.time() * 1000 + CLOCK_TOLERANCE.total_seconds() * 1000
    if not 0 < at_ms <= limit_ms:
        raise Unusable(f"its time, {at_ms} ms, is unset or in the future")
    return _EPOCH + timedelta(milliseconds=at_ms)


def _check(sample: OffsetSample) -> None:
    """Refuse here what a summary table would refuse: there, one bad event would hold up the whole batch."""
    try:
        UUID(sample.queue_id)
    except ValueError as error:
        raise Unusable(f"{sample.queue_id!r} is not a queue's id") from error
    if min(sample.partition, sample.beginning_offset, sample.end_offset, sample.committed_offset) < 0:
        raise Unusable("a partition or offset is negative")
    if max(len(sample.topic), len(sample.group)) > MAX_TOPIC_LENGTH:
        raise Unusable(f"its topic or group has more than {MAX_TOPIC_LENGTH} characters")
