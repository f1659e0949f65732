"""What handlers remember, by itself: its rules, and how it is read anew."""

import threading
from collections import Counter
from itertools import takewhile
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecore import Queues, Record
from queuecore.consuming import restoring
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.consuming.restoring import END_KEY, Restoring
from queuecore.consuming.state import DeliveryState, PartitionState
from queuecore.delivery import Delivery
from queuecore.errors import ConfigurationError, InvalidMessage, QueueError, StateUndone
from queuecore.messages import QueueMessage
from queuecore.providers.memory import MemoryProvider
from queuecore.providers.options import ProducerOptions
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo, state_partition
from tests.unit.queuecore.conftest import OpenQueues

INFO = TopicPartitionInfo("states", 0)


def new_state(*records: Record) -> PartitionState:
    state = PartitionState(INFO, {})
    state.restore(records)
    return state


def stored(offset: int, message: QueueMessage) -> Record:
    return Record("states.0", 0, offset, 0, message.key, message.headers, message.data)


def do(state: PartitionState, offset: int, *keys: bytes) -> bool:
    """Count under these keys, as a handler would."""
    delivery = DeliveryState(state)
    for key in keys:
        delivery.put(key, b"%d" % (int(delivery.get(key) or 0) + 1))
    return delivery.apply(offset)


class TestOnePartition:
    def test_it_is_what_the_topic_says_last(self) -> None:
        number = UUID(int=7)
        state = new_state(
            stored(0, QueueMessage(b"a", b"1")),
            stored(1, QueueMessage(b"b", b"22")),
            stored(2, QueueMessage(b"a", b"3")),
            stored(3, QueueMessage(number, b"4")),
            stored(4, QueueMessage.tombstone(b"b")),
        )
        view = DeliveryState(state)
        assert (view.get(b"a"), view.get(b"b"), view.get(number)) == (b"3", None, b"4")
        assert view.get(str(number).encode()) == b"4", "as on Kafka, a UUID and its text are the same"
        assert (state.entries, state.size_bytes) == (2, 1 + 1 + 36 + 1)

    def test_a_delivery_sees_its_own_changes_and_others_do_not(self) -> None:
        state = new_state(stored(0, QueueMessage(b"a", b"1")))
        one, other = DeliveryState(state), DeliveryState(state)
        one.put(b"a", b"2")
        one.delete(b"b")
        assert (one.get(b"a"), one.get(b"b"), other.get(b"a")) == (b"2", None, b"1")
        one.forget()
        assert one.get(b"a") == b"1"

    def test_who_read_what_was_changed_since_has_no_effect(self) -> None:
        state = new_state()
        slow = DeliveryState(state)
        slow.put(b"a", (slow.get(b"a") or b"") + b"slow")
        assert do(state, 1, b"a")
        assert not slow.apply(0)
        assert state.value(b"a") == b"1"

    def test_what_was_read_stays_the_same_for_a_delivery(self) -> None:
        state = new_state()
        view = DeliveryState(state)
        before = view.get(b"a")
        do(state, 1, b"a")
        assert view.get(b"a") == before

    def test_nothing_is_remembered_after_the_handler_has_returned(self) -> None:
        view = DeliveryState(new_state())
        assert view.apply(0)
        with pytest.raises(QueueError, match="has returned"):
            view.put(b"a", b"too late")

    @pytest.mark.parametrize("key", [b"", "text", None, END_KEY])
    def test_keys_that_cannot_be_stored_are_refused(self, key: bytes) -> None:
        with pytest.raises(InvalidMessage, match="key"):
            DeliveryState(new_state()).put(key, b"1")

    def test_values_are_bytes(self) -> None:
        with pytest.raises(InvalidMessage, match="remember bytes"):
            DeliveryState(new_state()).put(b"a", 1)  # type: ignore[arg-type]

    def test_of_each_key_the_last_change_is_stored_in_the_order_of_the_changes(self) -> None:
        state = new_state()
        # Not in the order of the messages.
        for offset in (5, 3, 4):
            do(state, offset, b"a", b"%d" % offset)
        sent = state.messages([3, 4, 5])
        assert list(sent) == [5, 3, 4]
        assert {one.message.key: (offset, one.message.data) for offset, those in sent.items() for one in those} == {
            b"5": (5, b"1"),
            b"3": (3, b"1"),
            b"4": (4, b"1"),
            b"a": (4, b"3"),
        }
        assert {one.info for those in sent.values() for one in those} == {INFO}

    def test_what_was_built_on_is_stored_no_later(self) -> None:
        state = new_state()
        do(state, 5, b"a")
        do(state, 3, b"a")
        do(state, 2, b"b")
        assert state.closed([2, 3]) == [2], "3 has counted on from 5"
        assert state.groups([2, 3, 4, 5, 6]) == [[2], [3, 4, 5], [6]]
        state.stored([5])
        assert state.closed([2, 3]) == [2, 3]

    def test_one_key_of_several_that_was_built_on_is_enough(self) -> None:
        state = new_state()
        do(state, 5, b"a")
        do(state, 3, b"b", b"a")
        assert state.closed([3, 4]) == []

    def test_who_only_looked_is_stored_no_sooner_than_what_it_saw(self) -> None:
        state = new_state()
        do(state, 5, b"a")
        looking = DeliveryState(state)
        looking.get(b"a")
        assert looking.apply(3)
        assert state.closed([3, 4]) == []

    def test_messages_that_are_handled_again_leave_nothing(self) -> None:
        state = new_state(stored(0, QueueMessage(b"a", b"1")))
        do(state, 0, b"a")
        for offset in (1, 2):
            do(state, offset, b"a", b"b")
        state.undo([1, 2])
        assert (state.value(b"a"), state.value(b"b"), state.entries, state.size_bytes) == (b"2", None, 1, 2)
        assert list(state.messages([0, 1, 2])) == [0]

    def test_a_refusal_outlives_the_state(self) -> None:
        refusals: dict[int, QueueError] = {}
        with pytest.raises(StateUndone, match="too large"):
            PartitionState(INFO, refusals).refuse(7, QueueError("too large"))
        assert list(refusals) == [7]
        PartitionState(INFO, refusals).stored([7])
        assert refusals == {}


KEYS = st.lists(st.sampled_from([b"a", b"b"]), max_size=2, unique=True)
STEPS = st.tuples(st.sampled_from(["begin", "begin", "end", "end", "settle", "crash"]), st.integers(0, 4))


class Owners:
    """Of one partition, one after the other: who comes after a crash reads what is stored."""

    def __init__(self, keys_of: list[list[bytes]]) -> None:
        self.keys_of = keys_of
        self.topic: list[Record] = []
        self.committed = 0
        self.crash()

    def crash(self, _: int = 0) -> None:
        self.state = new_state(*self.topic)
        self.under_way: dict[int, DeliveryState] = {}
        self.done: set[int] = set()

    def begin(self, choice: int) -> None:
        """Any message that is open, with a handler beside those under way."""
        open_ones = set(range(self.committed, len(self.keys_of))) - self.done - self.under_way.keys()
        if open_ones:
            offset = sorted(open_ones)[choice % len(open_ones)]
            view = self.under_way[offset] = DeliveryState(self.state)
            for key in self.keys_of[offset]:
                view.put(key, b"%d" % (int(view.get(key) or 0) + 1))

    def end(self, choice: int) -> None:
        if self.under_way:
            offset = sorted(self.under_way)[choice % len(self.under_way)]
            if self.under_way.pop(offset).apply(offset):
                self.done.add(offset)

    def settle(self, _: int = 0) -> None:
        """As with `exactly_once`: from the first message on, all or nothing."""
        ready = list(takewhile(self.done.__contains__, range(self.committed, len(self.keys_of))))
        ready = self.state.closed(ready)
        sent = [one.message for those in self.state.messages(ready).values() for one in those]
        self.topic += [stored(len(self.topic) + number, message) for number, message in enumerate(sent)]
        self.state.stored(ready)
        self.committed += len(ready)


@settings(max_examples=200)
@given(st.lists(KEYS, min_size=3, max_size=6), st.lists(STEPS, min_size=10, max_size=40))
def test_every_message_counts_once_whatever_the_order_and_the_crashes(
    keys_of: list[list[bytes]], steps: list[tuple[str, int]]
) -> None:
    owners = Owners(keys_of)
    for step, choice in steps:
        getattr(owners, step)(choice)
    while owners.committed < len(keys_of):
        owners.begin(0)
        owners.end(0)
        owners.settle()
    expected = Counter(key for keys in keys_of for key in keys)
    final = new_state(*owners.topic)
    assert {key: int(final.value(key) or 0) for key in expected} == expected


class TestRestoring:
    """Against a real topic, in steps of ten."""

    @pytest.fixture
    def queues(self, open_embedded: OpenQueues, monkeypatch: pytest.MonkeyPatch) -> Queues:
        monkeypatch.setattr(restoring, "STEP", 10)
        queues = open_embedded()
        queues.create("states", cleanup="compact")
        return queues

    def steps(self, queues: Queues, state: PartitionState) -> int:
        changed = threading.Event()
        reading = Restoring(queues.provider, queues.provider.producer(), changed.set)
        steps = 0
        while not reading.step(state):
            assert changed.wait(DEADLINE_S)
            changed.clear()
            steps += 1
        reading.close()
        return steps

    def test_it_is_read_in_bounded_steps(self, queues: Queues) -> None:
        for number in range(95):
            queues.publish("states", b"%d" % number, b"x")
        assert queues.flush()
        state = new_state()
        assert self.steps(queues, state) >= 95 // 10
        assert (state.entries, state.is_restored) == (95, True)

    def test_an_empty_one_is_complete_at_once(self, queues: Queues) -> None:
        state = new_state()
        self.steps(queues, state)
        assert (state.entries, state.is_restored) == (0, True)

    def test_what_is_removed_while_it_is_read_is_begun_anew(self, queues: Queues) -> None:
        for number in range(30):
            queues.publish("states", b"%d" % number, b"x")
        assert queues.flush()
        changed = threading.Event()
        reading = Restoring(queues.provider, queues.provider.producer(), changed.set)
        state = new_state()
        while state.entries < 10:
            assert not reading.step(state)
            assert state.entries or changed.wait(DEADLINE_S)
        queues.provider.admin().delete_records({INFO.place: 25})
        wait_until(lambda: reading.step(state))
        reading.close()
        assert state.entries == 5

    def test_the_end_has_to_be_known(self) -> None:
        with Queues(MemoryProvider(producing=ProducerOptions(acks="0"))) as queues:
            queues.create("states", cleanup="compact")
            with pytest.raises(ConfigurationError, match="acks 1 or all"):
                self.steps(queues, new_state())


def test_where_the_state_is() -> None:
    tenant = UUID(int=1)
    info = TopicPartitionInfo("tb_cf_event", 3, tenant)
    assert str(state_partition(info, "tb_cf_state")) == f"tb_cf_state.isolated.{tenant}.3"
    inside = TopicPartitionInfo("tb_cf_event", 3, use_internal_partition=True)
    assert state_partition(inside, "tb_cf_state").place == ("tb_cf_state", 3)


def test_a_plan_without_at_most_once() -> None:
    with pytest.raises(ConfigurationError, match="at_least_once"):
        ConsumptionPlan("q", "g", (INFO,), "h", state_topic="s", delivery=Delivery.AT_MOST_ONCE)
