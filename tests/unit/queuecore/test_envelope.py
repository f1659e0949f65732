"""The dead letter and its story."""

from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecore.deadletter.attempts import MOST_ATTEMPTS, FailedAttempt, note_attempt, read_attempts
from queuecore.deadletter.envelope import (
    MAX_MESSAGE_CHARACTERS,
    MAX_STACK_CHARACTERS,
    PREFIX,
    FailureStory,
    Stage,
    describe_exception,
    original_headers,
    read_story,
    replay_count_of,
    to_letter,
)
from queuecore.deadletter.foreign import Origin
from queuecore.messages import REPLAY_COUNT, REPLAY_ID, Record

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
    tenant_id="784f394c-42b6-435a-983c-b7beff2784f9",
    service_id="rule-engine-1",
    stage=Stage.SEND,
    replay_count=2,
)

# They are read by others too: a name is never changed.
NAMES = {
    *("topic", "partition", "offset", "timestamp.ms", "queue.id", "group", "handler", "reason"),
    *("exception.class", "exception.message", "stack.trace", "attempts", "first.failed.at.ms", "failed.at.ms"),
    *("fingerprint", "tenant.id", "service.id", "stage", "replay.count"),
}


def record(headers: dict[str, bytes]) -> Record:
    return Record("tb_rule_engine.3", 0, 42, 1_700_000_000_000, uuid4(), headers, b"\x00payload")


def test_a_letter_is_the_message_untouched_plus_its_story() -> None:
    original = record({"tenantId": b"t", "ts": b"\x00\x01"})
    letter = to_letter(original, STORY)
    assert (letter.key, letter.data) == (original.key, original.data)
    assert original_headers(letter.headers) == original.headers
    assert read_story(letter.headers) == STORY


def test_the_story_is_told_in_string_headers() -> None:
    headers = STORY.headers()
    assert set(headers) == {f"__queue.errors.{name}" for name in NAMES}
    assert headers["__queue.errors.offset"] == b"42"
    assert headers["__queue.errors.stage"] == b"send"
    assert headers["__queue.errors.exception.message"] == "größer".encode()


def test_a_letter_of_a_replay_keeps_what_it_was_replayed_by() -> None:
    replayed = {REPLAY_ID: b"r", REPLAY_COUNT: b"2"}
    letter = to_letter(record(replayed), STORY)
    assert original_headers(letter.headers) == replayed


@pytest.mark.parametrize(("raw", "count"), [(b"3", 3), (b"", 0), (b"-1", 0), (b"\xff", 0), (b"9" * 5_000, 0)])
def test_a_message_says_how_often_it_was_replayed(raw: bytes, count: int) -> None:
    assert replay_count_of({REPLAY_COUNT: raw}) == count
    assert replay_count_of({}) == 0


def test_a_letter_that_fails_again_tells_only_its_last_story() -> None:
    before = to_letter(record({"tenantId": b"t"}), STORY)
    again = to_letter(record(dict(before.headers)), STORY)
    assert again.headers == before.headers


text = st.text(max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1)
attempts = st.builds(FailedAttempt, numbers, numbers, text, text, text)


@settings(max_examples=25)
@given(
    st.builds(
        FailureStory,
        **{name: numbers if kind is int else text for name, kind in FailureStory.__annotations__.items()}
        | {
            "origin": st.just(Origin.SWITCHYARD),
            "epoch": st.none() | st.integers(0, 2**63 - 1),
            "failures": st.lists(attempts, max_size=MOST_ATTEMPTS).map(tuple),
        },
    )
)
def test_any_story_survives_the_headers(story: FailureStory) -> None:
    assert read_story(story.headers()) == story


def attempt(number: int) -> FailedAttempt:
    return FailedAttempt(number, 1_700_000_000_000 + number, "failed", "ValueError", f"for the {number}th time")


def test_attempts_are_told_in_a_header_of_their_own_where_there_are_any() -> None:
    story = replace(STORY, failures=(attempt(1), attempt(2)))
    assert story.headers().keys() - STORY.headers().keys() == {"__queue.errors.failures"}
    assert read_story(story.headers()) == story


def test_of_very_many_attempts_the_first_and_the_last_are_told() -> None:
    told: list[FailedAttempt] = []
    for number in range(1, 101):
        note_attempt(told, attempt(number))
    assert [one.number for one in told] == [1, 2, 3, *range(94, 101)]


@pytest.mark.parametrize("text", ["", "{", "7", '{"a": 1}', '[["1", 2, "failed", "E", "m"], [1], 5]', "[" * 100_000])
def test_attempts_that_make_no_sense_are_left_out(text: str) -> None:
    assert read_attempts(text) == ()


@given(st.dictionaries(st.sampled_from(list(STORY.headers())), st.binary()))
def test_a_broken_letter_can_always_be_shown(headers: dict[str, bytes]) -> None:
    story = read_story(headers)
    assert isinstance(story.offset, int)
    assert isinstance(story.handler, str)


def test_a_missing_story_reads_as_empty() -> None:
    story = read_story({PREFIX + "offset": b"not a number", PREFIX + "attempts": "²".encode()})
    assert (story.topic, story.offset, story.attempts, story.stage) == ("", 0, 0, "")
    assert story.origin == Origin.SWITCHYARD
    assert read_story({"any": b"header"}).origin == Origin.UNKNOWN


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


class Nested(Exception):
    """An exception of a module."""


def test_an_exception_is_described_within_bounds() -> None:
    told = describe_exception(raised(ValueError("x" * 100_000)))
    assert told["exception_class"] == "ValueError"
    assert len(told["exception_message"]) == MAX_MESSAGE_CHARACTERS
    assert len(told["stack_trace"]) <= MAX_STACK_CHARACTERS
    assert describe_exception(Nested())["exception_class"] == f"{__name__}.Nested"


def deep(depth: int) -> None:
    if depth:
        shallow(depth - 1)
    raise ValueError("x" * 100_000)


def shallow(depth: int) -> None:
    deep(depth)


def test_a_stack_trace_keeps_its_end_whatever_is_long() -> None:
    with pytest.raises(ValueError, match="x") as caught:
        deep(100)
    trace = describe_exception(caught.value)["stack_trace"]
    assert len(trace) == MAX_STACK_CHARACTERS
    assert "in deep" in trace
    assert "ValueError: xxx" in trace


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this works")


@pytest.mark.parametrize("error", [ValueError("\udc80 from a file name"), Unprintable()], ids=["surrogate", "no str"])
def test_an_exception_that_resists_still_makes_a_letter(error: Exception) -> None:
    told = describe_exception(raised(error))
    letter = to_letter(record({}), FailureStory(**{**{n: getattr(STORY, n) for n in STORY.__slots__}, **told}))
    assert read_story(letter.headers).fingerprint == told["fingerprint"]
