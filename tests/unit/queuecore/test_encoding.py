"""Payloads and headers on the wire."""

import threading
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.encoding import (
    MAX_STACK_CHARACTERS,
    ErrorReply,
    RequestHeaders,
    decode,
    encode,
    origin_headers,
    read_request_id,
)
from queuecore.errors import InvalidMessage
from queuecore.messages import Headers, QueueMessage, Record
from queuecore.proto.events_pb2 import Event, OffsetSample

KEY = UUID("784f394c-42b6-435a-983c-b7beff2784f9")
REQUEST = RequestHeaders(KEY, "js_eval.responses.core-1", 1_700_000_000_000)


def stored(message: QueueMessage) -> Record:
    return Record("tb_core.3", 0, 42, 1_700_000_000_000, message.key, message.headers, message.data)


@given(st.builds(OffsetSample, queue_id=st.text(), partition=st.integers(0, 2**31 - 1), topic=st.text()))
def test_a_message_survives_the_wire(sample: OffsetSample) -> None:
    message = encode(sample, KEY, {"a": b"1"})
    assert (message.key, message.headers) == (KEY, {"a": b"1"})
    assert decode(stored(message), OffsetSample) == sample


@pytest.mark.parametrize("data", [b"\xff\xff", b"{}json", b"\x0a\x05ab"])
def test_what_cannot_be_decoded_is_named_with_its_place(data: bytes) -> None:
    with pytest.raises(InvalidMessage, match=r"^tb_core\.3\[0\]@42 is not a switchyard\.events\.Event, in") as caught:
        decode(stored(QueueMessage(KEY, data)), Event)
    assert caught.value.fields == {
        "topic": "tb_core.3",
        "partition": 0,
        "offset": 42,
        "type": "switchyard.events.Event",
    }


def test_a_tombstone_is_no_empty_message() -> None:
    assert decode(stored(encode(Event(), KEY)), Event) == Event()
    with pytest.raises(InvalidMessage, match=r"is a tombstone, not a switchyard\.events\.Event"):
        decode(stored(QueueMessage.tombstone(KEY)), Event)


def test_where_a_message_comes_from() -> None:
    assert origin_headers("core-1", 1_700_000_000_000) == {
        "producerId": b"core-1",
        "ts": bytes.fromhex("0000018bcfe56800"),
    }


def test_where_in_its_producer_a_message_comes_from() -> None:
    found: dict[str, bytes] = {}

    def send_deep_down() -> None:
        found.update(origin_headers("core-1", 0, debug=True))

    thread = threading.Thread(target=send_deep_down, name="sender-7")
    thread.start()
    thread.join()

    assert found["threadName"] == b"sender-7"
    assert b"send_deep_down" in found["stackTrace"].splitlines()[-2]


def test_a_stack_trace_is_bounded_and_keeps_its_innermost_lines() -> None:
    # Two that call each other: repeated lines of one would be summed up.
    def even(levels: int) -> dict[str, bytes]:
        return odd(levels - 1) if levels else origin_headers("core-1", 0, debug=True)

    def odd(levels: int) -> dict[str, bytes]:
        return even(levels - 1)

    stack = even(300)["stackTrace"]

    assert len(stack) == MAX_STACK_CHARACTERS
    assert stack.endswith(b'origin_headers("core-1", 0, debug=True)\n')


def test_a_requests_headers_are_those_of_thingsboard() -> None:
    assert REQUEST.headers() == {
        "requestId": bytes.fromhex("784f394c42b6435a983cb7beff2784f9"),
        "responseTopic": b"js_eval.responses.core-1",
        "expireTs": bytes.fromhex("0000018bcfe56800"),
    }
    assert RequestHeaders.read(REQUEST.headers()) == REQUEST
    assert read_request_id(REQUEST.headers()) == KEY


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"requestId": b"short"}, "the header requestId must have 16 bytes; it has 5"),
        ({"requestId": None}, "the header requestId must have 16 bytes; there is none"),
        ({"expireTs": b"1700000000000"}, "the header expireTs must have 8 bytes; it has 13"),
        ({"expireTs": None}, "the header expireTs must have 8 bytes; there is none"),
        ({"responseTopic": None}, "a request needs the header responseTopic"),
        ({"responseTopic": b""}, "a request needs the header responseTopic"),
    ],
)
def test_a_request_that_cannot_be_answered_says_why(change: dict[str, bytes | None], reason: str) -> None:
    headers: Headers = {name: value for name, value in {**REQUEST.headers(), **change}.items() if value is not None}
    with pytest.raises(InvalidMessage, match=reason):
        RequestHeaders.read(headers)


def test_an_error_reply_survives_the_wire() -> None:
    error = ErrorReply("script_failed", "größer als 5 \udcff")
    assert ErrorReply.read(error.headers()) == ErrorReply("script_failed", "größer als 5 \\udcff")
    assert ErrorReply.read({"errorCode": b"timeout"}) == ErrorReply("timeout", "")
    assert ErrorReply.read(REQUEST.headers()) is None
