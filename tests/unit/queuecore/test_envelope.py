"""The dead letter and its story."""

from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecore.deadletter.envelope import (
    MAX_MESSAGE_CHARACTERS,
    MAX_STACK_CHARACTERS,
    PREFIX,
    FailureStory,
    describe_exception,
    fingerprint,
    original_headers,
    read_story,
    to_letter,
)
from queuecore.messages import Record

STORY = FailureStory(
    topic="tb_rule_engine.3",
    partition=0,
    offset=42,
    timestamp_ms=1_700_000_000_000,
    queue_id="7",
    group="tb_rule_engine_main-consumer-3",
    handler="billing",
    reason="retries_exhausted",
    exception_class="ValueError",
    exception_message="größer",
    stack_trace="Traceback …",
    attempts=4,
    first_failed_at_ms=1_700_000_000_001,
    failed_at_ms=1_700_000_000_002,
    fingerprint="0123456789abcdef",
)


def record(headers: dict[str, bytes]) -> Record:
    return Record("tb_rule_engine.3", 0, 42, 1_700_000_000_000, uuid4(), headers, b"\x00payload")


def test_a_letter_is_the_message_untouched_plus_its_story() -> None:
    original = record({"tenantId": b"t", "ts": b"\x00\x01"})
    letter = to_letter(original, STORY)
    assert (letter.key, letter.data) == (original.key, original.data)
    assert original_headers(letter.headers) == original.headers
    assert read_story(letter.headers) == STORY


def test_a_letter_that_fails_again_tells_only_its_last_story() -> None:
    before = to_letter(record({"tenantId": b"t"}), STORY)
    again = to_letter(record(dict(before.headers)), STORY)
    assert again.headers == before.headers


text = st.text(max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=25)
@given(
    st.builds(
        FailureStory,
        **{name: numbers if kind is int else text for name, kind in FailureStory.__annotations__.items()},
    )
)
def test_any_story_survives_the_headers(story: FailureStory) -> None:
    assert read_story(story.headers()) == story


@given(st.dictionaries(st.sampled_from(list(STORY.headers())), st.binary()))
def test_a_foreign_letter_can_always_be_shown(headers: dict[str, bytes]) -> None:
    story = read_story(headers)
    assert isinstance(story.offset, int)
    assert isinstance(story.handler, str)


def test_a_missing_story_reads_as_empty() -> None:
    story = read_story({PREFIX + "offset": b"not a number", PREFIX + "attempts": "²".encode()})
    assert (story.topic, story.offset, story.attempts) == ("", 0, 0)


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_an_exception_is_described_within_bounds() -> None:
    told = describe_exception(raised(ValueError("x" * 100_000)))
    assert told["exception_class"] == "ValueError"
    assert len(told["exception_message"]) == MAX_MESSAGE_CHARACTERS
    assert len(told["stack_trace"]) == MAX_STACK_CHARACTERS


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this works")


@pytest.mark.parametrize("error", [ValueError("\udc80 from a file name"), Unprintable()], ids=["surrogate", "no str"])
def test_an_exception_that_resists_still_makes_a_letter(error: Exception) -> None:
    told = describe_exception(raised(error))
    letter = to_letter(record({}), FailureStory(**{**{n: getattr(STORY, n) for n in STORY.__slots__}, **told}))
    assert read_story(letter.headers).fingerprint == told["fingerprint"]


def test_a_fingerprint_ignores_numbers_and_ids() -> None:
    def of(message: str) -> str:
        return fingerprint("ValueError", message)

    assert of("device 17 of 784f394c-42b6-435a-983c-b7beff2784f9") == of(f"device 4 of {uuid4()}")
    assert of("at 0x7f00aa") == of("at 0xBEEF")
    assert of("device 17 is gone") != of("device 17 is late")
    assert fingerprint("KeyError", "x") != fingerprint("ValueError", "x")
    assert len(of("")) == 16
