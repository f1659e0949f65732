"""Columns of a batch: which form a column takes, and that each form comes back as it went in."""

from collections.abc import Sequence
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.messages import PRODUCER_ID, TIMESTAMP, Headers, Key, encode_millis
from queuecore.providers.log.columns import (
    DataForm,
    HeaderForm,
    KeyForm,
    decode_data,
    decode_headers,
    decode_keys,
    encode_data,
    encode_headers,
    encode_keys,
)
from queuecore.providers.log.faults import _UNENCODABLE

BEFORE, BEHIND = b"before", b"behind"
A, B = UUID(int=1), UUID(int=2**128 - 1)

keys = st.none() | st.uuids() | st.binary(max_size=40)
# Names that the origin form knows are drawn as often as any other: what is nearly that form must not be taken for it.
names = st.sampled_from([PRODUCER_ID, TIMESTAMP]) | st.text(max_size=10)
header_values = st.binary(max_size=20) | st.integers(0, 2**62).map(encode_millis)
headers = st.dictionaries(names, header_values, max_size=3)
origins = st.builds(
    lambda producer_id, ts: {PRODUCER_ID: producer_id, TIMESTAMP: encode_millis(ts)},
    st.sampled_from([b"", b"node-1", "knödel".encode()]),
    st.integers(-(2**63), 2**63 - 1),
)


def many(one: st.SearchStrategy) -> st.SearchStrategy:
    """Few, which are cut one by one, and enough to be cut all at once."""
    return st.lists(one, min_size=1, max_size=20)


def back_keys(column: Sequence[Key]) -> list[Key]:
    form, raw = encode_keys(column)
    decoded, end = decode_keys(form, BEFORE + raw + BEHIND, len(BEFORE), len(column))
    assert end == len(BEFORE + raw)
    return [decoded.at(index) for index in range(len(column))]


def back_headers(column: Sequence[Headers]) -> list[Headers]:
    form, raw = encode_headers(column)
    decoded, end = decode_headers(form, BEFORE + raw + BEHIND, len(BEFORE), len(column))
    assert end == len(BEFORE + raw)
    return [decoded.at(index) for index in range(len(column))]


def back_data(column: Sequence[bytes]) -> Sequence[bytes]:
    form, lengths = encode_data(column)
    raw = b"".join([BEFORE, lengths, *column, BEHIND])
    return decode_data(form, raw, len(BEFORE), len(column))


@pytest.mark.parametrize(
    ("column", "form"),
    [
        ([None, None], KeyForm.NONE),
        ([A, B], KeyForm.UUID),
        ([b"a", b""], KeyForm.MIXED),
        ([A, None, b"a", b"\0" * 16], KeyForm.MIXED),
    ],
)
def test_a_key_column_has_a_form_for_what_is_in_it(column: list[Key], form: KeyForm) -> None:
    assert encode_keys(column)[0] is form
    assert back_keys(column) == column


@given(many(keys) | many(st.uuids()))
def test_keys_come_back_as_they_were(column: list[Key]) -> None:
    assert back_keys(column) == column


SHARED = {"a": b"1", "b": b""}


@pytest.mark.parametrize(
    ("column", "form"),
    [
        ([{}, MappingProxyType({})], HeaderForm.NONE),
        ([SHARED, SHARED], HeaderForm.SAME),
        ([SHARED, dict(SHARED)], HeaderForm.EACH),
        ([{}, SHARED], HeaderForm.EACH),
        ([{PRODUCER_ID: b"p", TIMESTAMP: encode_millis(ts)} for ts in (-1, 2**62)], HeaderForm.ORIGIN),
    ],
    ids=["none", "one object for all", "equal objects", "some", "producer and time"],
)
def test_a_header_column_has_a_form_for_what_is_in_it(column: list[Headers], form: HeaderForm) -> None:
    assert encode_headers(column)[0] is form
    assert back_headers(column) == column


@pytest.mark.parametrize(
    "second",
    [
        {PRODUCER_ID: b"other", TIMESTAMP: encode_millis(1)},
        {PRODUCER_ID: b"p", TIMESTAMP: b"short"},
        {PRODUCER_ID: b"p", TIMESTAMP: encode_millis(1), "more": b""},
        {PRODUCER_ID: b"p"},
        {},
        {"other": b"p", TIMESTAMP: encode_millis(1)},
    ],
)
def test_headers_that_are_nearly_a_producers_are_kept_as_they_are(second: Headers) -> None:
    first = {PRODUCER_ID: b"p", TIMESTAMP: encode_millis(1)}
    for column in ([first, second], [second, first], [second, dict(second)]):
        assert back_headers(column) == column


@given(many(headers) | many(origins) | many(headers | origins))
def test_headers_come_back_as_they_were(column: list[Headers]) -> None:
    assert back_headers(column) == column


@given(headers, st.integers(1, 20))
def test_headers_shared_by_all_come_back_for_each(shared: Headers, count: int) -> None:
    assert back_headers([shared] * count) == [shared] * count


def test_data_of_one_length_need_one_length() -> None:
    form, lengths = encode_data([b"abc"] * 1000)
    assert (form, len(lengths)) == (DataForm.ALIKE, 4)
    assert encode_data([b"abc", b""])[0] is DataForm.EACH


@given(many(st.binary(max_size=50)) | st.integers(0, 9).flatmap(lambda n: many(st.binary(min_size=n, max_size=n))))
def test_data_come_back_as_they_were(column: list[bytes]) -> None:
    assert list(back_data(column)) == column


@pytest.mark.parametrize("key", ["text", 5, 1.5])
def test_a_key_that_is_neither_uuid_nor_bytes_is_refused(key: object) -> None:
    with pytest.raises((TypeError, AttributeError)):
        encode_keys([b"fine", key])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "text"},
        {"name": 5},
        {5: b"value"},
        {"n" * 70_000: b""},
        {PRODUCER_ID: 5, TIMESTAMP: encode_millis(1)},
        {PRODUCER_ID: "text", TIMESTAMP: encode_millis(1)},
        {PRODUCER_ID: b"p", TIMESTAMP: "8 chars!"},
    ],
)
def test_headers_that_are_not_text_and_bytes_are_refused(bad: Headers) -> None:
    # What `faults` knows: anything else would be taken for an error of ours.
    with pytest.raises(_UNENCODABLE):
        encode_headers([bad])
