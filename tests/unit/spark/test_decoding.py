"""Events become rows; whatever else arrives does no harm."""

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.proto.events_pb2 import Event, OffsetSample, RequestSample
from workers.spark.decoding import Unusable, decode_sample

QUEUE = str(uuid4())


def event(at_ms: int = 1_700_000_000_123, version: int = 1, **changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "queue_id": QUEUE,
        "partition": 2,
        "topic": "t.2",
        "group": "g",
        "beginning_offset": 1,
        "end_offset": 9,
    }
    sample = OffsetSample(**(fields | changes))
    return Event(version=version, at_ms=at_ms, service_id="s", offset_sample=sample).SerializeToString()


def test_a_sample_becomes_a_row() -> None:
    at = datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)
    assert decode_sample(event(committed_offset=0)) == (at, "s", QUEUE, 2, "t.2", "g", 1, 9, 0)


def test_without_a_commit_the_offset_is_absent() -> None:
    row = decode_sample(event())
    assert row is not None
    assert row[-1] is None


def request_event(**changes: Any) -> bytes:
    sample = RequestSample(request_topic="t.requests", interval_ms=10_000, sent=3, answered=2, **changes)
    return Event(version=1, at_ms=1_700_000_000_123, service_id="s", request_sample=sample).SerializeToString()


@pytest.mark.parametrize(
    "data",
    [
        Event(version=1, at_ms=1, service_id="s").SerializeToString(),
        request_event(),
        request_event(lag_bounds_ms=[1, 2], lag_buckets=[0, 1, 1], lag_total_ms=4.5, pending=-1),
    ],
)
def test_an_event_of_another_kind_is_left_to_others(data: bytes) -> None:
    assert decode_sample(data) is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff not protobuf", "not a protobuf event"),
        (event(version=2), "update the Spark worker"),
        (event(queue_id="main"), "'main' is not a queue's id"),
        (event(end_offset=-1), "negative"),
        (event(committed_offset=-1), "negative"),
        (event(topic="t" * 250), "249"),
        (event(at_ms=0), "unset or in the future"),
    ],
)
def test_what_no_table_could_hold_is_unusable(data: bytes, reason: str) -> None:
    with pytest.raises(Unusable, match=reason):
        decode_sample(data)


def test_what_is_yet_to_happen_is_unusable() -> None:
    an_hour_on = int(time.time() * 1000) + 3_600_000
    with pytest.raises(Unusable, match="unset or in the future"):
        decode_sample(event(at_ms=an_hour_on))


@given(st.binary())
def test_any_bytes_are_a_row_or_none_or_unusable(data: bytes) -> None:
    with suppress(Unusable):
        decode_sample(data)
