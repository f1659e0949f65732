"""Small wire forms of headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.messages import decode_millis, encode_millis, text_header


@given(st.integers(-(2**63), 2**63 - 1))
def test_milliseconds_survive_the_wire(value: int) -> None:
    assert decode_millis(encode_millis(value)) == value


def test_milliseconds_are_big_endian() -> None:
    assert encode_millis(1_700_000_000_000) == bytes.fromhex("0000018bcfe56800")


@pytest.mark.parametrize(("raw", "text"), [(b"node-1", "node-1"), (b"", ""), (b"\xff", "\N{REPLACEMENT CHARACTER}")])
def test_a_text_header_is_always_readable(raw: bytes, text: str) -> None:
    assert text_header({"producerId": raw}, "producerId") == text
    assert text_header({}, "producerId") is None
