"""Letters made of messages that are given up, and read again; and what is sent to replay them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from queuecore.deadletter.envelope import Stage, original_headers, read_story
from queuecore.deadletter.foreign import Origin
from queuecore.deadletter.policy import DeadLetterPolicy
from queuecore.deadletter.reading import DeadLetter, open_letter, read_letters
from queuecore.deadletter.replay import MAX_REPLAYS, REPLAY_GROUP, is_for_another, to_replay
from queuecore.deadletter.writing import LetterWriter, letter_target
from queuecore.errors import InvalidMessage, PayloadMissing
from queuecore.messages import REPLAY_COUNT, REPLAY_ID, REPLAY_LETTER, TENANT_ID, QueueMessage, Record
from queuecore.providers.base import Provider, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryProvider
from queuecore.sending import Addressed, send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import ProviderPartition, TopicPartitionInfo

TENANT = UUID("784f394c-42b6-435a-983c-b7beff2784f9")
INFO = TopicPartitionInfo("orders", 3)
KEY = uuid4()


@pytest.fixture(params=["in-memory", "log"])
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Provider]:
    with closing(MemoryProvider() if request.param == "in-memory" else LogProvider(tmp_path / "log")) as provider:
        provider.admin().create_topics([TopicSpec("orders.dlq", 4), TopicSpec("orders.3")])
        yield provider


def writer(**options: Any) -> LetterWriter:
    return LetterWriter("orders", "billing", "charge", "service-1", clock=ManualClock(now_ms=2_000), **options)


def record(headers: dict[str, bytes] | None = None) -> Record:
    return Record("orders.3", 0, 42, 1_000, KEY, headers or {}, b"data")


def written(one: Record, info: TopicPartitionInfo = INFO, **options: Any) -> Addressed:
    arguments = {"reason": "retries_exhausted", "attempts": 4, **options}
    return writer().write(info, one, ValueError("no device 17"), **arguments)


def test_a_letter_tells_the_whole_story() -> None:
    original = record({"ts": b"\x00\x01", TENANT_ID: str(TENANT).encode()})
    target, letter = written(original, stage=Stage.SEND, first_failed_at_ms=1_500)
    assert target.place == ProviderPartition("orders.dlq", 3)
    assert (letter.key, letter.data) == (KEY, b"data")
    assert original_headers(letter.headers) == original.headers
    story = read_story(letter.headers)
    assert (story.topic, story.partition, story.offset, story.timestamp_ms) == ("orders.3", 0, 42, 1_000)
    assert (story.queue_id, story.group, story.handler, story.service_id) == (
        "orders",
        "billing",
        "charge",
        "service-1",
    )
    assert (story.reason, story.stage, story.attempts) == ("retries_exhausted", "send", 4)
    assert (story.exception_class, story.exception_message) == ("ValueError", "no device 17")
    assert "ValueError: no device 17" in story.stack_trace
    assert (story.first_failed_at_ms, story.failed_at_ms) == (1_500, 2_000)
    assert (story.tenant_id, story.replay_count, story.origin) == (str(TENANT), 0, Origin.SWITCHYARD)


def test_without_an_earlier_failure_this_is_the_first() -> None:
    assert read_story(written(record()).message.headers).first_failed_at_ms == 2_000


@pytest.mark.parametrize(
    ("header", "info", "tenant"),
    [
        (None, INFO, ""),
        (None, TopicPartitionInfo("orders", 3, TENANT), str(TENANT)),
        (b"other", TopicPartitionInfo("orders", 3, TENANT), "other"),
        (b"\xff" * 1_000_000, INFO, "\N{REPLACEMENT CHARACTER}" * 100),
    ],
    ids=["nobody", "an isolated partition", "the message", "hostile"],
)
def test_a_letter_says_whose_it_is(header: bytes | None, info: TopicPartitionInfo, tenant: str) -> None:
    headers = {} if header is None else {TENANT_ID: header}
    assert read_story(written(record(headers), info).message.headers).tenant_id == tenant


def test_letters_may_have_a_topic_of_their_own_with_the_same_partitions() -> None:
    policy = DeadLetterPolicy(topic="all-letters")
    letter = writer(policy=policy).write(INFO, record(), ValueError("no"), reason="failed", attempts=1)
    assert letter.info.place == letter_target(INFO, policy).place == ProviderPartition("all-letters", 3)
    isolated = letter_target(TopicPartitionInfo("orders", 0, TENANT))
    assert isolated.place == ProviderPartition(f"orders.isolated.{TENANT}.dlq", 0)


def stored(provider: Provider, one: Record) -> DeadLetter:
    """The letter of a message, as the next reader finds it."""
    send_and_wait(provider.producer(), *written(one), DEADLINE_S)
    [*_, letter] = read_letters(provider, [letter_target(INFO)])
    return letter


def replayed(provider: Provider, letter: DeadLetter) -> Record:
    """The message of a letter, sent again and read."""
    send_and_wait(provider.producer(), INFO, to_replay(letter), DEADLINE_S)
    with closing(provider.reader()) as reader:
        return reader.read(INFO.place, 0, 1_000)[-1]


def test_a_letter_is_read_as_it_was_written(provider: Provider) -> None:
    letter = stored(provider, record({"ts": b"\x00\x01"}))
    assert letter.message == QueueMessage(KEY, b"data", {"ts": b"\x00\x01"})
    assert letter.is_complete
    assert letter.story.offset == 42


def test_a_replay_is_the_message_with_marks_for_the_group_that_gave_it_up(provider: Provider) -> None:
    again = replayed(provider, stored(provider, record({"ts": b"\x00\x01"})))
    assert (again.key, again.data, again.headers["ts"]) == (KEY, b"data", b"\x00\x01")
    assert UUID(again.headers[REPLAY_ID].decode())
    assert again.headers[REPLAY_LETTER] == b"orders.dlq[3]@0"
    assert again.headers[REPLAY_GROUP] == b"billing"
    assert not is_for_another(again.headers, "billing")
    assert is_for_another(again.headers, "shipping")
    assert not is_for_another({}, "shipping")


def test_replays_and_letters_have_ids_where_somebody_keeps_a_list(provider: Provider) -> None:
    message = to_replay(stored(provider, record()), replay_id="r-1", letter_id="l-1")
    assert (message.headers[REPLAY_ID], message.headers[REPLAY_LETTER]) == (b"r-1", b"l-1")


def test_a_message_counts_its_replays_and_is_replayed_only_so_often(provider: Provider) -> None:
    message = record()
    for count in range(MAX_REPLAYS):
        letter = stored(provider, message)
        assert letter.story.replay_count == count
        message = replayed(provider, letter)
        assert message.headers[REPLAY_COUNT] == b"%d" % (count + 1)
    letter = stored(provider, message)
    # The letter keeps what its message was replayed by.
    assert letter.message.headers == message.headers
    with pytest.raises(
        InvalidMessage, match=r"replayed 5 times and failed each time; .* raise max_replays, which is 5"
    ):
        to_replay(letter)
    assert to_replay(letter, max_replays=6).headers[REPLAY_COUNT] == b"6"


def test_a_letter_of_others_is_replayed_for_every_group(provider: Provider) -> None:
    theirs = Record(
        *("orders.dlq", 3, 7, 1_000, b"key"),
        {"kafka_dlt-original-topic": b"orders", "kafka_dlt-original-consumer-group": b"theirs", "own": b"1"},
        b"data",
    )
    with closing(provider.reader()) as reader:
        message = to_replay(open_letter(reader, theirs))
    assert message.headers.keys() == {"own", REPLAY_ID, REPLAY_LETTER, REPLAY_COUNT}


def test_a_letter_that_is_not_complete_is_not_replayed(provider: Provider) -> None:
    letter = stored(provider, record())
    incomplete = DeadLetter(letter.record, letter.story, letter.message, is_complete=False)
    with pytest.raises(PayloadMissing, match=r"read it at orders\.3\[0\]@42, if it is still there"):
        to_replay(incomplete)
