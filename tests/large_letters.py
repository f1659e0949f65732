"""What every provider does with letters that are too large for their topic."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from uuid import uuid4

import pytest

from queuecore.clock import SYSTEM_CLOCK
from queuecore.deadletter.envelope import original_headers, read_story
from queuecore.deadletter.fitting import fit_letter, send_letter
from queuecore.deadletter.payloads import CHUNK_COUNT, CHUNK_INDEX, PAYLOAD, Stored, is_whole, load_body, reference_of
from queuecore.deadletter.reading import load_message, load_payload, read_letters
from queuecore.deadletter.writing import LetterWriter, letter_target
from queuecore.errors import PayloadMissing, PayloadTooLarge
from queuecore.messages import REPLAY_ID, TENANT_ID, Key, QueueMessage, Record
from queuecore.providers.base import DAY_MS, Provider, TopicSpec
from queuecore.providers.options import ProducerOptions
from queuecore.sending import Addressed, send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.contract import OpenProvider
from queuecore.testing.contract.kit import new_name
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo, payload_partition

LIMIT_BYTES = 20_000
KEY = uuid4()


def given_up(info: TopicPartitionInfo, message: QueueMessage) -> Addressed:
    """The letter of a message."""
    record = Record(info.full_topic_name, 0, 42, 0, message.key, message.headers, message.data)
    try:
        raise ValueError("no room for it " * 100)
    except ValueError as error:
        return LetterWriter("orders", "g", "h").write(info, record, error, reason="failed", attempts=1)


class ActingClock(ManualClock):
    """Does the next of these things whenever somebody sleeps."""

    def __init__(self, actions: list[Callable[[], object]]) -> None:
        super().__init__(SYSTEM_CLOCK.now_ms())
        self.actions = actions

    def sleep(self, seconds: float) -> None:
        if self.actions:
            self.actions.pop(0)()
        super().sleep(seconds)


class LargeLetters:
    @pytest.fixture
    def provider(self, open_provider: OpenProvider) -> Provider:
        return open_provider(producing=ProducerOptions(max_request_size=LIMIT_BYTES))

    @pytest.fixture
    def info(self, provider: Provider) -> TopicPartitionInfo:
        """A partition of a queue whose letters have a topic already."""
        info = TopicPartitionInfo(new_name(), 1)
        provider.admin().create_topics([TopicSpec(letter_target(info).full_topic_name, 2, 3 * DAY_MS)])
        return info

    @pytest.fixture
    def store(self, info: TopicPartitionInfo) -> TopicPartitionInfo:
        return payload_partition(letter_target(info).place)

    def stored(self, provider: Provider, info: TopicPartitionInfo, message: QueueMessage) -> Record:
        """The letter of a message, as the next reader finds it."""
        target, letter = given_up(info, message)
        offset = send_letter(provider.producer(), provider.admin(), target, letter, DEADLINE_S).offset
        with closing(provider.reader()) as reader:
            [found] = reader.read(target.place, offset, 1)
        return found

    def loaded(self, provider: Provider, letter: Record) -> QueueMessage:
        with closing(provider.reader()) as reader:
            return load_message(reader, letter)

    def chunks(self, provider: Provider, store: TopicPartitionInfo) -> list[Record]:
        [beginning] = provider.admin().beginning_offsets([store.place]).values()
        with closing(provider.reader()) as reader:
            return reader.read(store.place, beginning, 1_000)

    def test_without_most_of_its_text_it_may_fit(self, provider: Provider, info: TopicPartitionInfo) -> None:
        message = QueueMessage(KEY, bytes(LIMIT_BYTES - 1_500), {"ts": b"1"})
        letter = self.stored(provider, info, message)
        story = read_story(letter.headers)
        assert (story.stack_trace, story.exception_message) == ("", ("no room for it " * 100)[:200])
        assert is_whole(letter.headers)
        assert self.loaded(provider, letter) == message

    @pytest.mark.parametrize("size", [LIMIT_BYTES - 100, LIMIT_BYTES, 10 * LIMIT_BYTES + 1])
    def test_else_its_payload_is_stored_apart(self, provider: Provider, info: TopicPartitionInfo, size: int) -> None:
        message = QueueMessage(KEY, bytes(range(256)) * (size // 256), {"ts": b"1", TENANT_ID: b"t"})
        letter = self.stored(provider, info, message)
        assert (letter.key, letter.data, original_headers(letter.headers)) == (KEY, b"", message.headers)
        assert self.loaded(provider, letter) == message
        with closing(provider.reader()) as reader:
            assert load_payload(reader, letter) == message.data

    @pytest.mark.parametrize("key", [KEY, b"key", bytes(LIMIT_BYTES), None], ids=["UUID", "bytes", "large", "none"])
    def test_and_so_are_its_key_and_headers(self, provider: Provider, info: TopicPartitionInfo, key: Key) -> None:
        headers = {"large": b"y" * LIMIT_BYTES, "größer": b"\xff\x00", TENANT_ID: b"t", REPLAY_ID: b"r"}
        message = QueueMessage(key, b"data", headers)
        letter = self.stored(provider, info, message)
        # What it is found by stays in it.
        assert original_headers(letter.headers) == {TENANT_ID: b"t", REPLAY_ID: b"r"}
        assert letter.key == (None if key == bytes(LIMIT_BYTES) else key)
        assert self.loaded(provider, letter) == message

    def test_a_message_without_data_may_be_too_large_as_well(
        self, provider: Provider, info: TopicPartitionInfo
    ) -> None:
        message = QueueMessage.tombstone(KEY)._replace(headers={"__queue.tombstone": b"", "large": bytes(LIMIT_BYTES)})
        assert self.loaded(provider, self.stored(provider, info, message)) == message

    def test_the_letter_says_what_is_where(
        self, provider: Provider, info: TopicPartitionInfo, store: TopicPartitionInfo
    ) -> None:
        self.stored(provider, info, QueueMessage(KEY, b"x" * LIMIT_BYTES))
        letter = self.stored(provider, info, QueueMessage(KEY, b"x" * 50_000))
        reference = reference_of(letter.headers)
        assert reference is not None
        assert reference.place == store.place
        assert (reference.chunks, reference.size, reference.stored) == (3, 50_000, Stored.DATA)
        first, *_ = own = self.chunks(provider, store)[-3:]
        assert reference.from_offset <= first.offset
        assert [(one.headers[CHUNK_INDEX], one.headers[CHUNK_COUNT]) for one in own] == [
            (b"0", b"3"),
            (b"1", b"3"),
            (b"2", b"3"),
        ]

    def test_the_store_is_as_the_letters_topic_is(
        self, provider: Provider, info: TopicPartitionInfo, store: TopicPartitionInfo
    ) -> None:
        letters = letter_target(info).full_topic_name
        assert store.full_topic_name not in provider.admin().topics()
        self.stored(provider, info, QueueMessage(KEY, bytes(LIMIT_BYTES)))
        topics = provider.admin().topics()
        assert topics[store.full_topic_name] == replace(topics[letters], name=store.full_topic_name)

    def test_it_grows_with_the_letters_topic(
        self, provider: Provider, info: TopicPartitionInfo, store: TopicPartitionInfo
    ) -> None:
        provider.admin().create_topics([TopicSpec(store.full_topic_name, 1)])
        message = QueueMessage(KEY, bytes(LIMIT_BYTES))
        assert self.loaded(provider, self.stored(provider, info, message)) == message

    def test_what_is_between_its_chunks_does_no_harm(
        self, provider: Provider, info: TopicPartitionInfo, store: TopicPartitionInfo
    ) -> None:
        one, other = (QueueMessage(KEY, bytes([value]) * 50_000) for value in b"ab")
        mine, theirs = self.fitted(provider, info, one), self.fitted(provider, info, other)
        producer = provider.producer()
        stray = Addressed(store, QueueMessage(None, b"by somebody else"))
        # A send that was not answered is repeated, and may have been stored.
        for addressed in (theirs[0], mine[1], mine[1], stray, theirs[1], mine[0], theirs[2], *mine[2:], *theirs[3:]):
            send_and_wait(producer, *addressed, DEADLINE_S)
        letters = [letter.record for letter in read_letters(provider, [letter_target(info)])]
        assert [self.loaded(provider, letter) for letter in letters] == [one, other]

    def fitted(self, provider: Provider, info: TopicPartitionInfo, message: QueueMessage) -> tuple[Addressed, ...]:
        """What is sent of a letter after all refusals."""
        outgoing: tuple[Addressed, ...] = (given_up(info, message),)
        producer = provider.transactional_producer(new_name())
        while True:
            try:
                for addressed in outgoing:
                    producer.check(*addressed)
            except PayloadTooLarge as refusal:
                outgoing = fit_letter(outgoing, refusal, provider.admin()) or ()
            else:
                producer.stop()
                return outgoing

    def test_a_transaction_takes_all_of_it(self, provider: Provider, info: TopicPartitionInfo) -> None:
        message = QueueMessage(KEY, bytes(5 * LIMIT_BYTES))
        outgoing = self.fitted(provider, info, message)
        producer = provider.transactional_producer(new_name())
        undone = producer.begin()
        for addressed in outgoing:
            undone.send(*addressed)
        undone.abort()
        with producer.begin() as transaction:
            for addressed in outgoing:
                transaction.send(*addressed)
        producer.stop()
        # Kafka shows it a moment later.
        [letter] = wait_until(lambda: list(read_letters(provider, [letter_target(info)])))
        assert (letter.message, letter.is_complete) == (message, True)

    @pytest.mark.parametrize("kept", [0, 1, 2])
    def test_what_retention_has_removed_is_missing(
        self, provider: Provider, info: TopicPartitionInfo, store: TopicPartitionInfo, kept: int
    ) -> None:
        letter = self.stored(provider, info, QueueMessage(KEY, bytes(50_000)))
        first = self.chunks(provider, store)[0].offset
        provider.admin().delete_records({store.place: first + 3 - kept})
        with pytest.raises(PayloadMissing, match=rf"only {kept} of its 3 chunks are in {store.place.topic}"):
            self.loaded(provider, letter)
        [opened] = read_letters(provider, [letter_target(info)])
        assert (opened.message.data, opened.is_complete) == (b"", False)

    def test_it_is_missing_too_where_the_store_is_gone(
        self, provider: Provider, info: TopicPartitionInfo, store: TopicPartitionInfo
    ) -> None:
        letter = self.stored(provider, info, QueueMessage(KEY, bytes(LIMIT_BYTES)))
        provider.admin().delete_topics([store.full_topic_name])
        with pytest.raises(PayloadMissing, match="only 0 of its 2 chunks"):
            self.loaded(provider, letter)
        # The next one makes a new store.
        message = QueueMessage(KEY, bytes(LIMIT_BYTES))
        assert self.loaded(provider, self.stored(provider, info, message)) == message

    def test_what_was_before_its_chunks_may_be_removed(
        self, provider: Provider, info: TopicPartitionInfo, store: TopicPartitionInfo
    ) -> None:
        message = QueueMessage(KEY, bytes(LIMIT_BYTES))
        outgoing = self.fitted(provider, info, message)
        self.stored(provider, info, QueueMessage(KEY, bytes(LIMIT_BYTES)))
        producer = provider.producer()
        first, *_ = [send_and_wait(producer, *addressed, DEADLINE_S) for addressed in outgoing]
        provider.admin().delete_records({store.place: first.offset})
        [_, letter] = read_letters(provider, [letter_target(info)])
        assert letter.message == message

    def test_chunks_that_were_changed_are_missing(
        self, provider: Provider, info: TopicPartitionInfo, store: TopicPartitionInfo
    ) -> None:
        *chunks, letter = self.fitted(provider, info, QueueMessage(KEY, bytes(LIMIT_BYTES)))
        producer = provider.producer()
        for _, chunk in chunks:
            send_and_wait(producer, store, chunk._replace(data=b"changed"), DEADLINE_S)
        send_and_wait(producer, *letter, DEADLINE_S)
        [found] = read_letters(provider, [letter_target(info)])
        with pytest.raises(PayloadMissing, match="are not what was stored"):
            self.loaded(provider, found.record)

    def test_a_letter_opens_no_other_topic(self, provider: Provider, info: TopicPartitionInfo) -> None:
        letter = self.stored(provider, info, QueueMessage(KEY, bytes(LIMIT_BYTES)))
        elsewhere = Record("other.dlq", 1, 0, letter.timestamp_ms, None, letter.headers, b"")
        with pytest.raises(PayloadMissing, match=r"does not name a payload in other\.dlq\.payloads\[1\]"):
            self.loaded(provider, elsewhere)
        broken = Record(letter.topic, letter.partition, 0, 0, None, {PAYLOAD: b"[" * 100_000}, b"")
        with pytest.raises(PayloadMissing, match="does not name a payload"):
            self.loaded(provider, broken)

    def test_nothing_is_looked_for_long_after_the_letter(
        self, provider: Provider, info: TopicPartitionInfo, store: TopicPartitionInfo
    ) -> None:
        *chunks, letter = self.fitted(provider, info, QueueMessage(KEY, bytes(LIMIT_BYTES)))
        producer = provider.producer()
        for addressed in [*chunks[:1], *[Addressed(store, QueueMessage(None, b"later"))] * 20, *chunks[1:]]:
            send_and_wait(producer, *addressed, DEADLINE_S)
        early = Record(*letter.info.place, 0, 1_000, None, letter.message.headers, b"")
        with pytest.raises(PayloadMissing, match="only 1 of its 2 chunks"):
            self.loaded(provider, early)

    def test_what_cannot_be_seen_yet_is_waited_for(self, provider: Provider, info: TopicPartitionInfo) -> None:
        message = QueueMessage(KEY, bytes(LIMIT_BYTES))
        *chunks, letter = self.fitted(provider, info, message)
        producer = provider.producer()
        clock = ActingClock([lambda chunk=chunk: send_and_wait(producer, *chunk, DEADLINE_S) for chunk in chunks])
        record = Record(*letter.info.place, 0, clock.now_ms(), KEY, letter.message.headers, b"")
        with closing(provider.reader()) as reader:
            assert load_body(reader, record, clock) == (message.data, Stored.DATA)
            assert clock.actions == []
            # Not for ever.
            headers = {PAYLOAD: letter.message.headers[PAYLOAD].replace(b'"payload": "', b'"payload": "not ')}
            unknown = Record(*letter.info.place, 0, clock.now_ms(), KEY, headers, b"")
            with pytest.raises(PayloadMissing, match="only 0 of its 2 chunks"):
                load_body(reader, unknown, clock)
