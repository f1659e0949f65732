"""Events become tables; whatever else arrives does no harm."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from queuecore.metrics import EVENT_VERSION
from queuecore.proto.events_pb2 import (
    ConsumedSample,
    EntityShare,
    Event,
    LetterShare,
    OffsetSample,
    RequestSample,
    SentSample,
    TenantShare,
)
from queuecore.topics import MAX_PARTITIONS
from workers.spark import decoding
from workers.spark.checks import LARGEST_COUNT, LARGEST_OFFSET
from workers.spark.decoding import Decoded, Period
from workers.spark.decoding import decode as decode_column
from workers.spark.heads import Heads
from workers.spark.ids import NOBODY, spelt_id
from workers.spark.schemas import KINDS
from workers.spark.wire import LONGEST_LIST, Irregular

QUEUE = "784f394c-42b6-435a-983c-b7beff2784f9"
TENANT = "0e4b9a58-4a2c-4f59-9a7c-0a9a3c1f6a11"
AT_MS = 1_700_000_000_123
AT = datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)
ALWAYS = Period(1, AT_MS + 1_000)


def decode(data: Sequence[bytes], period: Period) -> Decoded:
    return decode_column(pa.array(data, pa.binary()), period)


def event(at_ms: int = AT_MS, version: int = 1, service_id: str = "s", **changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "queue_id": QUEUE,
        "partition": 2,
        "topic": "t.2",
        "group": "g",
        "beginning_offset": 1,
        "end_offset": 9,
    }
    return wrapped(at_ms, version, service_id, offset_sample=OffsetSample(**(fields | changes)))


def request_event(**changes: Any) -> bytes:
    return wrapped(request_sample=RequestSample(request_topic="t.requests", interval_ms=10_000, sent=3, **changes))


def consumed_event(at_ms: int = AT_MS, **changes: Any) -> bytes:
    fields: dict[str, Any] = {"queue_id": QUEUE, "topic": "t.0", "group": "g", "polled": 7}
    return wrapped(at_ms, consumed_sample=ConsumedSample(**(fields | changes)))


def wrapped(at_ms: int = AT_MS, version: int = 1, service_id: str = "s", **body: Any) -> bytes:
    return Event(version=version, at_ms=at_ms, service_id=service_id, **body).SerializeToString()


def rows(kind: str, *data: bytes) -> list[dict[str, Any]]:
    decoded = decode(data, ALWAYS)
    assert decoded.unusable == {}
    found: list[dict[str, Any]] = decoded.tables[kind].to_pylist()
    return found


def test_a_sample_of_offsets_becomes_a_row() -> None:
    assert rows("offset_samples", event(committed_offset=0)) == [
        {
            "at": AT,
            "service_id": "s",
            "queue_id": QUEUE,
            "partition": 2,
            "topic": "t.2",
            "group": "g",
            "beginning_offset": 1,
            "end_offset": 9,
            "committed_offset": 0,
        }
    ]


def test_without_a_commit_the_offset_is_absent() -> None:
    found = rows("offset_samples", event(), event(committed_offset=3), event())
    assert [row["committed_offset"] for row in found] == [None, 3, None]


def test_histograms_become_lists() -> None:
    told = {"lag_bounds_ms": [1, 2], "lag_buckets": [4, 0, 1], "lag_total_ms": 4.5}
    row, older = rows("request_samples", request_event(**told, age_buckets=[0, 0, 7]), request_event(**told))
    assert (row["lag_bounds_ms"], row["lag_buckets"], row["lag_total_ms"]) == ([1, 2], [4, 0, 1], 4.5)
    assert (row["request_topic"], row["sent"], row["refused"]) == ("t.requests", 3, 0)
    assert (row["age_buckets"], older["age_buckets"]) == ([0, 0, 7], [])


def test_shares_become_lists_of_their_own_fields() -> None:
    shares = {
        "tenants": [TenantShare(tenant_id=TENANT, messages=5, bytes=50), TenantShare(tenant_id="other", messages=2)],
        "entities": [EntityShare(key=UUID(TENANT).bytes, is_uuid=True, tenant_id=TENANT, messages=5)],
        "letters": [LetterShare(fingerprint="0123456789abcdef", tenant_id="", letters=1)],
    }
    first, second = rows("consumed_samples", consumed_event(**shares), consumed_event())
    assert first["tenants"] == [
        {"tenant_id": TENANT, "messages": 5, "bytes": 50, "errors": 0, "dead_letters": 0},
        {"tenant_id": "other", "messages": 2, "bytes": 0, "errors": 0, "dead_letters": 0},
    ]
    assert first["entities"] == [
        {"key": UUID(TENANT).bytes, "is_uuid": True, "tenant_id": TENANT, "messages": 5},
    ]
    assert first["letters"] == [{"fingerprint": "0123456789abcdef", "tenant_id": "", "letters": 1}]
    assert (second["tenants"], second["entities"], second["letters"]) == ([], [], [])


def test_kinds_are_told_apart_and_keep_their_order() -> None:
    sent = wrapped(sent_sample=SentSample(topic="t.1", partition=1, sent=4))
    decoded = decode([event(end_offset=1), request_event(), event(end_offset=2), sent, consumed_event()], ALWAYS)
    assert {kind: table.num_rows for kind, table in decoded.tables.items()} == {
        "offset_samples": 2,
        "request_samples": 1,
        "consumed_samples": 1,
        "sent_samples": 1,
    }
    assert decoded.tables["offset_samples"]["end_offset"].to_pylist() == [1, 2]


def test_an_event_of_a_kind_to_come_is_left_to_others() -> None:
    decoded = decode([Event(version=1, at_ms=1, service_id="s").SerializeToString()], ALWAYS)
    assert (decoded.tables, decoded.unusable) == ({}, {})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff not protobuf", "not a protobuf event"),
        (event(version=2), "its version is newer than 1; update the Spark worker"),
        (event(queue_id="main"), "queue_id is not an id"),
        (event(partition=-1), "partition is negative"),
        (event(partition=(1 << 31) - 1), f"partition is above {MAX_PARTITIONS - 1}"),
        (event(end_offset=-1), "end_offset is negative"),
        (event(committed_offset=-1), "committed_offset is negative"),
        (event(end_offset=LARGEST_OFFSET), None),
        (event(end_offset=LARGEST_OFFSET + 1), f"end_offset is above {LARGEST_OFFSET}"),
        (consumed_event(polled=LARGEST_COUNT + 1), f"polled is above {LARGEST_COUNT}"),
        (consumed_event(letters=[LetterShare(letters=1)] * LONGEST_LIST), None),
        (
            consumed_event(letters=[LetterShare()] * (LONGEST_LIST + 1)),
            f"letters has more than {LONGEST_LIST} elements",
        ),
        (
            request_event(lag_bounds_ms=range(LONGEST_LIST + 1), lag_buckets=[1] * (LONGEST_LIST + 2)),
            f"lag_bounds_ms has more than {LONGEST_LIST} elements",
        ),
        (event(topic="t" * 250), "topic has more than 249 characters, or a zero among them"),
        (event(group="g\0"), "group has more than 249 characters, or a zero among them"),
        (event(service_id="s" * 101), "service_id has more than 100 characters, or a zero among them"),
        (event(-5, (1 << 32) - 1, "x" * 20_000), "its version is newer than 1; update the Spark worker"),
        (event(-5, 1, "x" * 20_000), "its time is unset, or further back than events are kept"),
        (event(at_ms=0), "its time is unset, or further back than events are kept"),
        (event(at_ms=-(1 << 62)), "its time is unset, or further back than events are kept"),
        (event(at_ms=1 << 62), "its time is in the future"),
        (event(at_ms=AT_MS + 1_001), "its time is in the future"),
        (request_event(pending=-1), "pending is negative"),
        (request_event(lag_total_ms=float("nan")), "lag_total_ms is no number"),
        (request_event(lag_buckets=[1]), None),
        (request_event(lag_buckets=[1, 2]), "lag_buckets has not one count more than there are bounds"),
        (request_event(lag_bounds_ms=[1], lag_buckets=[1, -2]), "lag_buckets is negative"),
        (request_event(lag_bounds_ms=[1], age_buckets=[1]), "age_buckets has not one count more than there are bounds"),
        (consumed_event(tenants=[TenantShare(tenant_id="acme")]), None),
        (consumed_event(tenants=[TenantShare(messages=-1)]), "messages is negative"),
        (consumed_event(letters=[LetterShare(fingerprint="f" * 17)]), "fingerprint has more than 16 characters"),
    ],
)
def test_what_no_table_could_hold_is_unusable_and_alone_in_that(data: bytes, reason: str | None) -> None:
    good = [event(), request_event(), consumed_event(tenants=[TenantShare(tenant_id=TENANT)])]
    decoded = decode([good[0], data, *good], ALWAYS)
    assert sum(table.num_rows for table in decoded.tables.values()) == (4 if reason else 5)
    if reason:
        [(told, count)] = decoded.unusable.items()
        assert (told.startswith(reason), count, decoded.examples[told]) == (True, 1, 1)


@pytest.mark.parametrize("text", [TENANT.upper(), TENANT.replace("-", ""), f"{{{TENANT}}}", f"urn:uuid:{TENANT}"])
def test_ids_have_one_spelling(text: str) -> None:
    """Else one tenant would have two rows of one key, which PostgreSQL refuses at every run."""
    [row] = rows("consumed_samples", consumed_event(queue_id=text, tenants=[TenantShare(tenant_id=text)]))
    assert (row["queue_id"], row["tenants"][0]["tenant_id"]) == (TENANT, TENANT)


@pytest.mark.parametrize("header", ["acme", "\0", "\ufffd", "t" * 100])
def test_what_is_no_tenant_s_id_is_nobody_s(header: str) -> None:
    """Whoever publishes may write what they like into that header; the others' figures are none the worse."""
    shares = {
        "tenants": [TenantShare(tenant_id=header, messages=1), TenantShare(tenant_id=TENANT, messages=5)],
        "entities": [EntityShare(key=b"k", tenant_id=header, messages=1)],
        "letters": [LetterShare(fingerprint="f", tenant_id=header, letters=1)],
    }
    [row] = rows("consumed_samples", consumed_event(**shares))
    assert [share["tenant_id"] for share in row["tenants"]] == ["", TENANT]
    assert [share["tenant_id"] for name in ("entities", "letters") for share in row[name]] == ["", ""]


def test_each_unusable_event_is_counted_once() -> None:
    both = event(queue_id="main", end_offset=-1)
    decoded = decode([both, event(queue_id="main"), event(end_offset=-5), event()], ALWAYS)
    assert decoded.unusable == {"queue_id is not an id": 2, "end_offset is negative": 1}
    assert decoded.examples == {"queue_id is not an id": 0, "end_offset is negative": 2}
    assert decoded.tables["offset_samples"].num_rows == 1


@given(st.lists(st.binary() | st.just(event()) | st.just(consumed_event())))
def test_any_bytes_are_rows_or_unusable(data: list[bytes]) -> None:
    decoded = decode(data, Period(1, time.time_ns() // 1_000_000))
    rows = sum(table.num_rows for table in decoded.tables.values())
    assert rows + sum(decoded.unusable.values()) <= len(data)


_numbers = st.integers(0, LARGEST_COUNT)
_texts = st.sampled_from(["", "t.0", "\N{GREEK SMALL LETTER LAMDA}", "t" * 200])
_shares = st.builds(TenantShare, tenant_id=st.sampled_from([TENANT, TENANT.upper(), "", "acme"]), messages=_numbers)
_entities = st.builds(EntityShare, key=st.binary(max_size=3), is_uuid=st.booleans(), messages=_numbers)
_events = st.one_of(
    st.builds(event, partition=st.integers(0, 3), beginning_offset=_numbers, end_offset=_numbers, topic=_texts),
    st.builds(event, committed_offset=_numbers, service_id=_texts.filter(lambda text: len(text) < 100)),
    st.builds(
        consumed_event,
        polled=_numbers,
        processing_bounds_ms=st.just([1.0, 2.5]),
        processing_buckets=st.lists(_numbers, min_size=3, max_size=3),
        processing_total_ms=st.floats(0, 1e9),
        tenants=st.lists(_shares, max_size=3),
        entities=st.lists(_entities, max_size=3),
    ),
    st.builds(
        request_event,
        lag_buckets=st.lists(_numbers, max_size=1),
        age_buckets=st.lists(_numbers, max_size=1),
        pending=_numbers,
    ),
)
# Valid, and never written: a field twice, of which the last holds; two bodies; a field of a later version.
_irregular = st.one_of(
    st.builds(lambda one, other: one + other, _events, _events),
    st.builds(lambda one: one + b"\xa2\x06\x01x", _events),
    st.just(event(partition=1) + wrapped(offset_sample=OffsetSample(queue_id=QUEUE, end_offset=7))),
)


@given(st.lists(_events | _irregular | st.just(b"\x0a\x20cut short") | st.just(event()[:-1])))
def test_many_events_are_decoded_as_each_of_them_alone(data: list[bytes]) -> None:
    """All at once they are parsed by columns, which must not lose track of whose value is whose."""
    together = decode(data, ALWAYS)
    alone = [decode([one], ALWAYS) for one in data]
    for kind in {kind for one in alone for kind in one.tables} | together.tables.keys():
        rows = [row for one in alone if kind in one.tables for row in one.tables[kind].to_pylist()]
        assert together.tables[kind].to_pylist() == rows
    assert sum(together.unusable.values()) == sum(sum(one.unusable.values()) for one in alone)


_any_number = st.sampled_from(
    [0, 1, -1, LARGEST_COUNT, LARGEST_COUNT + 1, LARGEST_OFFSET, LARGEST_OFFSET + 1]
) | st.integers(-(1 << 63), (1 << 63) - 1)
_any_text = st.sampled_from(["", "t.0", "\0", QUEUE, TENANT.upper()]) | st.text(max_size=300)
_any_share = st.builds(TenantShare, tenant_id=_any_text, messages=_any_number, bytes=_any_number)
_any_entity = st.builds(EntityShare, key=st.binary(max_size=20), is_uuid=st.booleans(), messages=_any_number)
_any_letter = st.builds(LetterShare, fingerprint=_any_text, tenant_id=_any_text, letters=_any_number)
_any_names = {
    "queue_id": st.just(QUEUE) | _any_text,
    "partition": st.integers(0, 3) | st.integers(-(1 << 31), (1 << 31) - 1),
    "topic": _any_text,
    "group": _any_text,
}
_any_body = st.one_of(
    st.builds(
        OffsetSample, **_any_names, end_offset=_any_number, committed_offset=st.none() | _any_number
    ).map(lambda body: {"offset_sample": body}),
    st.builds(
        ConsumedSample,
        **_any_names,
        polled=_any_number,
        processing_bounds_ms=st.lists(st.floats(), max_size=2),
        processing_buckets=st.lists(_any_number, max_size=3),
        processing_total_ms=st.floats(),
        tenants=st.lists(_any_share, max_size=3),
        entities=st.lists(_any_entity, max_size=3),
        letters=st.lists(_any_letter, max_size=3),
    ).map(lambda body: {"consumed_sample": body}),
    st.builds(
        RequestSample,
        request_topic=_any_text,
        pending=_any_number,
        lag_bounds_ms=st.lists(_any_number, max_size=2),
        lag_buckets=st.lists(_any_number, max_size=3),
        lag_total_ms=st.floats(),
    ).map(lambda body: {"request_sample": body}),
    st.builds(SentSample, topic=_any_text, tenants=st.lists(_any_share, max_size=3)).map(
        lambda body: {"sent_sample": body}
    ),
    st.just({}),
)  # fmt: skip
_any_event = st.builds(
    lambda version, at_ms, service_id, body: wrapped(at_ms, version, service_id, **body),
    st.sampled_from([0, 1, 1, 1, 2, (1 << 32) - 1]),
    st.just(AT_MS) | _any_number,
    st.sampled_from(["", "s", "x" * 20_000]) | _any_text,
    _any_body,
)


@given(st.lists(_any_event | st.binary(max_size=40), max_size=6))
def test_whatever_comes_is_a_row_with_what_protobuf_reads_or_unusable(data: list[bytes]) -> None:
    together = decode(data, ALWAYS)
    rows, unusable = [], 0
    for one in data:
        alone = decode([one], ALWAYS)
        found = [(kind, row) for kind, table in alone.tables.items() for row in table.to_pylist()]
        unusable += (refused := sum(alone.unusable.values()))
        assert len(found) + refused == _wanted_of(one)
        for _, row in found:
            check_row(row, Event.FromString(one))
        rows += found
    assert sum(together.unusable.values()) == unusable
    for kind, table in together.tables.items():
        assert table.to_pylist() == [row for of_kind, row in rows if of_kind == kind]


def _wanted_of(data: bytes) -> int:
    """Whether it is to be in a table, or to be counted as unusable."""
    try:
        event = Event.FromString(data)
    except DecodeError:
        return 1
    return int(event.version > EVENT_VERSION or event.WhichOneof("body") is not None)


@given(st.lists(_events, max_size=5))
def test_rows_have_what_protobuf_reads(data: list[bytes]) -> None:
    found = [row for table in decode(data, ALWAYS).tables.values() for row in table.to_pylist()]
    parsed = [Event.FromString(one) for one in data]
    bodies = [event for kind in KINDS for event in parsed if event.HasField(kind.body)]
    for row, one in zip(found, bodies, strict=True):
        check_row(row, one)


def check_row(row: dict[str, Any], event: Event) -> None:
    body = getattr(event, event.WhichOneof("body"))
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=event.at_ms)
    fields = {name: _as_stored(body, name) for name in row if name not in ("at", "service_id")}
    assert row == {"at": at, "service_id": event.service_id, **fields}


def _as_stored(message: Any, name: str) -> Any:
    field = message.DESCRIPTOR.fields_by_name[name]
    value = getattr(message, name)
    if field.message_type is not None:
        return [{part.name: _as_stored(one, part.name) for part in one.DESCRIPTOR.fields} for one in value]
    if name == "tenant_id":
        return value if value in NOBODY else spelt_id(value) or ""
    if name == "queue_id":
        return spelt_id(value)
    if field.is_repeated:
        return list(value)
    return None if field.has_presence and not message.HasField(name) else value


def test_what_is_irregular_though_protobuf_wrote_it_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no such event that we know of: it would fail its task, in every run."""

    class Strict(Heads):
        def __init__(self, events: pa.BinaryArray) -> None:
            if pc.any(pc.match_substring(events, b"odd")).as_py():
                raise Irregular("odd")
            super().__init__(events)

    monkeypatch.setattr(decoding, "Heads", Strict)
    good = [event(end_offset=number) for number in range(1, 6)]
    decoded = decode([*good[:3], event(topic="odd"), good[3], event(group="odd"), b"\xff", good[4]], ALWAYS)
    assert decoded.tables["offset_samples"]["end_offset"].to_pylist() == [1, 2, 3, 4, 5]
    assert decoded.unusable == {"not a protobuf event": 1, "it cannot be read: odd": 2}
    assert decoded.examples == {"not a protobuf event": 6, "it cannot be read: odd": 3}


def test_an_event_alone_is_what_protobuf_says() -> None:
    twice = event(partition=1, end_offset=5) + wrapped(offset_sample=OffsetSample(end_offset=7))
    [row] = rows("offset_samples", twice)
    assert (row["partition"], row["end_offset"], row["topic"]) == (1, 7, "t.2")
