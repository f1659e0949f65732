"""Which failures count as the same."""

import subprocess
import sys
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.deadletter.envelope import describe_exception
from queuecore.deadletter.fingerprint import MAX_SHAPED_CHARACTERS, fingerprint, shape_of

hexadecimal = st.text("0123456789abcdef", min_size=8, max_size=64)
quoted = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUES = {
    "a number": st.integers().map(str),
    "a fraction": st.floats(allow_nan=False, allow_infinity=False).map(str),
    "an id": st.uuids().map(str),
    "an id without dashes": st.uuids().map(lambda value: value.hex),
    "a hash": hexadecimal,
    "an address in memory": st.integers(0, 2**64).map(hex),
    "a moment": st.datetimes().map(lambda moment: moment.isoformat()),
    "a moment in words": st.datetimes(timezones=st.timezones()).map(str),
    "an e-mail address": st.emails(domains=st.sampled_from(["example.org", "mail.example.co.uk", "localhost"])).filter(
        lambda address: address.replace("@", "").replace(".", "").replace("-", "").isalnum()
    ),
    "an IPv4 address": st.ip_addresses(v=4).map(str),
    "an IPv6 address": st.ip_addresses(v=6).map(str),
    "a text": quoted.map(repr),
    "bytes": st.binary(max_size=30).map(repr),
    "a list": st.lists(st.integers(), min_size=1).map(str),
    "a mapping": st.dictionaries(quoted, st.integers(), min_size=1).map(str),
}
words = st.lists(st.text("ghijklmnopqrstuvwxyz", min_size=1, max_size=8), min_size=1, max_size=6).map(" ".join)


@pytest.mark.parametrize("kind", VALUES)
@given(st.data())
def test_it_does_not_depend_on_values(kind: str, data: st.DataObject) -> None:
    one, other = data.draw(VALUES[kind]), data.draw(VALUES[kind])
    assert shape_of(f"device {one} is gone") == shape_of(f"device {other} is gone")


@given(words, words)
def test_it_depends_on_words(one: str, other: str) -> None:
    assert (fingerprint("ValueError", one) == fingerprint("ValueError", other)) == (one == other)


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_message_has_one(kind: str, message: str) -> None:
    digits = fingerprint(kind, message)
    assert len(digits) == 16
    assert int(digits, 16) >= 0


@pytest.mark.parametrize(
    ("message", "shape"),
    [
        ("device 17 of 784f394c-42b6-435a-983c-b7beff2784f9", "device # of #"),
        ("can't reach 10.0.0.1:8080, won't try", "can't reach #, won't try"),
        ("no 'temperature' in {'a': 1, 'b': 2}", "no # in {#}"),
        ("took -1.5 s,  after\n2 tries", "took # s, after # tries"),
        ("<Session at 0x7f00aa>", "<Session at #>"),
        ("GET http://example.org/devices/17/telemetry", "GET http://example.org/devices/#/telemetry"),
        ("std::bad_alloc: out of memory", "std::bad_alloc: out of memory"),
        ("", ""),
    ],
)
def test_the_shape_can_be_read(message: str, shape: str) -> None:
    assert shape_of(message) == shape


def test_of_a_long_message_the_beginning_counts() -> None:
    beginning = "word " * (MAX_SHAPED_CHARACTERS // 5)
    assert shape_of(beginning + "one") == shape_of(beginning + "other")


def first() -> None:
    raise ValueError("no")


def second() -> None:
    raise ValueError("no")


def parse(text: str) -> UUID:
    return UUID(text)


def caused_by(cause: Exception | None) -> None:
    raise RuntimeError("the handler failed") from cause


def print_of(function: object, *arguments: object) -> str:
    with pytest.raises((ValueError, RuntimeError)) as caught:
        function(*arguments)  # type: ignore[operator]
    return describe_exception(caught.value)["fingerprint"]


def test_it_depends_on_the_class_and_on_the_function_that_raised() -> None:
    assert fingerprint("KeyError", "x") != fingerprint("ValueError", "x")
    assert print_of(first) == print_of(first)
    assert print_of(first) != print_of(second)


def test_what_python_raises_is_of_the_function_that_called_it() -> None:
    assert print_of(parse, "one") == print_of(parse, "other")
    assert print_of(parse, "one") != print_of(lambda: UUID("one"))


def test_it_depends_on_what_the_failure_was_raised_from() -> None:
    assert print_of(caused_by, OSError("a")) == print_of(caused_by, OSError("b"))
    assert print_of(caused_by, OSError("a")) != print_of(caused_by, KeyError("a"))
    assert print_of(caused_by, OSError("a")) != print_of(caused_by, None)


def test_a_cause_that_is_its_own_cause_ends() -> None:
    error = ValueError("round")
    error.__cause__ = error
    assert describe_exception(error)["fingerprint"]


def test_another_process_has_the_same() -> None:
    program = "from tests.unit.queuecore.test_fingerprint import first, print_of; print(print_of(first))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == print_of(first)
