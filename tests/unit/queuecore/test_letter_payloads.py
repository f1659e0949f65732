"""Letters that are too large, on the embedded providers; and what fits, whatever the refusal says."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.deadletter.fitting import fit_letter, send_letter
from queuecore.deadletter.packing import pack_message, unpack_message
from queuecore.deadletter.payloads import PAYLOAD, PayloadReference, Stored, reference_of
from queuecore.deadletter.reading import load_message, read_letters
from queuecore.deadletter.writing import letter_target
from queuecore.errors import InvalidMessage, PayloadMissing, PayloadTooLarge
from queuecore.messages import NO_HEADERS, QueueMessage, Record
from queuecore.providers.base import Provider, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.sending import Addressed
from queuecore.testing.contract import OpenProvider, opened
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo
from tests.large_letters import KEY, LargeLetters, given_up

INFO = TopicPartitionInfo("orders", 0)
UNSAID = PayloadTooLarge("too large")
WHERE = PayloadReference("p", "orders.dlq.payloads", 0, 0, 1, 4, "d", Stored.DATA)

keys = st.one_of(st.none(), st.uuids(), st.binary(max_size=500))
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)
messages = st.builds(
    QueueMessage, keys, st.binary(max_size=3_000), st.dictionaries(names, st.binary(max_size=1_000), max_size=4)
)


class TestInMemory(LargeLetters):
    @pytest.fixture
    def open_provider(self) -> Iterator[OpenProvider]:
        storage = MemoryStorage()

        def open_memory(producing: ProducerOptions, consuming: ConsumerOptions) -> Provider:
            return MemoryProvider(storage, producing=producing, consuming=consuming)

        with opened(open_memory) as open_provider:
            yield open_provider


class TestLog(LargeLetters):
    @pytest.fixture
    def open_provider(self, tmp_path: Path) -> Iterator[OpenProvider]:
        def open_log(producing: ProducerOptions, consuming: ConsumerOptions) -> Provider:
            return LogProvider(tmp_path / "log", producing, consuming)

        with opened(open_log) as open_provider:
            yield open_provider


def memory(limit_bytes: int) -> Provider:
    provider = MemoryProvider(producing=ProducerOptions(max_request_size=limit_bytes))
    provider.admin().create_topics([TopicSpec(letter_target(INFO).full_topic_name)])
    return provider


@given(messages)
def test_any_message_comes_back_from_a_topic_that_takes_little(message: QueueMessage) -> None:
    with closing(memory(2_000)) as provider:
        send_letter(provider.producer(), provider.admin(), *given_up(INFO, message), DEADLINE_S)
        [letter] = read_letters(provider, [letter_target(INFO)])
    assert (letter.message, letter.is_complete) == (message, True)
    assert letter.story.offset == 42


def test_where_nothing_fits_the_refusal_is_raised() -> None:
    letter = given_up(INFO, QueueMessage(KEY, bytes(1_000)))
    with closing(memory(300)) as provider, pytest.raises(PayloadTooLarge):
        send_letter(provider.producer(), provider.admin(), *letter, DEADLINE_S)


def test_a_letter_whose_payload_is_stored_already_keeps_it() -> None:
    letter = given_up(INFO, QueueMessage(KEY, b"", NO_HEADERS))
    refers = letter.message._replace(headers={**letter.message.headers, PAYLOAD: WHERE.header()})
    with closing(memory(1_000)) as provider:
        assert fit_letter([Addressed(letter.info, refers)], UNSAID, provider.admin()) is None


def test_where_the_limit_is_not_said_it_is_found_by_halving() -> None:
    with closing(memory(1_000_000)) as provider:
        outgoing = fit_letter([given_up(INFO, QueueMessage(KEY, bytes(100_000)))], UNSAID, provider.admin())
        sizes = []
        while outgoing is not None:
            *chunks, _ = outgoing
            sizes.append([len(chunk.message.data) for chunk in chunks])
            outgoing = fit_letter(outgoing, UNSAID, provider.admin())
    # First without most of its text; then the data in ever smaller chunks; when those are smaller than the letter, it
    # must be the letter that is refused, and its key and headers go as well.
    assert [len(one) for one in sizes[:4]] == [0, 2, 4, 8]
    assert all(sum(one) >= 100_000 for one in sizes[1:])
    assert 256 <= max(sizes[-1]) < 2_000


@given(st.one_of(st.binary(), st.text().map(str.encode), st.just(b"{" * 100_000)))
def test_a_reference_that_cannot_be_read_is_none(raw: bytes) -> None:
    assert reference_of({PAYLOAD: raw}) is None
    assert reference_of({}) is None


json_values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2)
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(PayloadReference.__slots__, json_values)))
def test_a_reference_that_lies_finds_nothing(told: dict[str, object]) -> None:
    header = json.dumps({**json.loads(WHERE.header()), **told}).encode()
    with closing(memory(2_000)) as provider, closing(provider.reader()) as reader:
        letter = Record("orders.dlq", 0, 0, 0, None, {PAYLOAD: header}, b"")
        with pytest.raises(PayloadMissing):
            load_message(reader, letter)


def test_a_reference_survives_its_header() -> None:
    assert reference_of({PAYLOAD: WHERE.header()}) == WHERE


@given(messages)
def test_a_message_survives_packing(message: QueueMessage) -> None:
    assert unpack_message(pack_message(message)) == message


@given(st.binary())
def test_what_is_no_packed_message_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidMessage, match="no packed message"):
        unpack_message(body)


def test_a_cut_message_is_refused() -> None:
    packed = pack_message(QueueMessage(KEY, b"data", NO_HEADERS))
    with pytest.raises(InvalidMessage):
        unpack_message(packed[:10])
