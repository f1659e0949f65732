"""Replays: in order, at their pace, with care, and each letter once."""

import errno
import os
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Self
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.dead_letters import discard_letters
from queueapi.actions.letter_index import index_letters
from queueapi.actions.letter_recount import recount_letters
from queueapi.actions.outcomes import mark_dropped, mark_failed_again, mark_outcomes
from queueapi.actions.queues import create_queue
from queueapi.actions.replay_collecting import LetterCollector
from queueapi.actions.replays import (
    REPLAY,
    cancel_replay,
    pause_replay,
    replay_letters,
    resume_replay,
    start_replay,
)
from queueapi.choices import LetterState, OperationState
from queueapi.errors import NotReplayable
from queueapi.models import DeadLetter, DeadLetterEdit, LedgerEntry, Operation, Queue, Replay, ReplayChunk
from queueapi.replaying import ReplaySettings
from queueapi.selectors.ledger import ledger_of
from queueapi.selectors.letter_filter import LetterFilter
from queueapi.selectors.replay_plans import plan_replay
from queuecore.consuming.work import Outcome, Work
from queuecore.errors import PayloadTooLarge, ProviderUnavailable, QueueError, UnknownTopic
from queuecore.hashing import partition_of
from queuecore.messages import REPLAY_COUNT, REPLAY_LETTER, QueueMessage, Record
from queuecore.providers.base import Transaction, TransactionalProducer
from queuecore.providers.log import LogProvider
from queuecore.sending import Addressed
from queuecore.testing.clock import ManualClock
from tests.integration.replay_kit import (
    FAILED_AT_MS,
    finished,
    item_states,
    letters_in,
    make_letters,
    ran,
    sent_letters,
    sent_records,
    states,
)
from workers.observing import HostObserver
from workers.operations import replay as kind
from workers.operations import runner
from workers.operations.replay import ReplayKind

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class Faults:
    """What a transaction meets that has one of these letters: the error is seen beforehand, it shows when nothing could
    be stored, or it hides that all was."""

    def __init__(self) -> None:
        self.seen: dict[UUID, QueueError] = {}
        self.broken: dict[UUID, QueueError] = {}
        self.unsaid: dict[UUID, QueueError] = {}


class FaultyProducer:
    """The real one, with faults."""

    def __init__(self, producer: TransactionalProducer, faults: Faults) -> None:
        self._producer = producer
        self._faults = faults

    def begin(self) -> "FaultyTransaction":
        return FaultyTransaction(self._producer.begin(), self._faults)

    def check(self, info, message) -> None:
        if error := self._faults.seen.get(letter_of(message)):
            raise error
        self._producer.check(info, message)

    def stop(self) -> None:
        self._producer.stop()


class FaultyTransaction:
    def __init__(self, transaction: Transaction, faults: Faults) -> None:
        self._transaction = transaction
        self._faults = faults
        self._letters: list[UUID] = []

    def send(self, info, message) -> None:
        self._letters.append(letter_of(message))
        self._transaction.send(info, message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind, error, trace) -> None:
        self._raise({**self._faults.seen, **self._faults.broken}, self._transaction.abort)
        self._raise(self._faults.unsaid, self._transaction.commit)
        self._transaction.__exit__(kind, error, trace)

    def _raise(self, errors: dict[UUID, QueueError], end: Callable[[], None]) -> None:
        for letter in self._letters:
            if letter in errors:
                end()
                raise errors[letter]


def letter_of(message: QueueMessage) -> UUID:
    return UUID(message.headers[REPLAY_LETTER].decode())


@pytest.fixture
def faults(installation, monkeypatch) -> Faults:
    faults, opened = Faults(), LogProvider.transactional_producer
    monkeypatch.setattr(
        LogProvider, "transactional_producer", lambda provider, name: FaultyProducer(opened(provider, name), faults)
    )
    return faults


@pytest.fixture
def clock(monkeypatch) -> ManualClock:
    clock = ManualClock()
    monkeypatch.setitem(runner.KINDS, "replay_letters", ReplayKind(clock))
    return clock


@pytest.fixture
def small_chunks(monkeypatch) -> None:
    monkeypatch.setattr(kind, "CHUNK", 4)


@pytest.fixture
def queue(installation) -> Queue:
    return installation.queue


@pytest.fixture
def letters(queue) -> list[UUID]:
    """Six of one entity, in the order in which they failed."""
    return make_letters(queue, 6)


def collect_few(monkeypatch) -> None:
    """At the start, in each batch, and in each partition's turn."""
    monkeypatch.setattr("queueapi.actions.replays.MAX_NAMED", 4)
    monkeypatch.setattr(LetterCollector.collect, "__defaults__", (5,))
    monkeypatch.setattr("queueapi.actions.replay_collecting._TURN", 2)


def abandoned(replay: Replay) -> None:
    """Its runner is dead, and the lease is over."""
    Operation.objects.filter(id=replay.operation_id).update(lease_expires_at=LONG_AGO)


def taken_up(replay: Replay) -> Replay:
    """The replay after another run, though it may not be due."""
    Operation.objects.update(due_at=None)
    return ran(replay)


def ran_and_cleaned(faults: Faults, queue: Queue, letters: list[UUID], up_to: int) -> Replay:
    """The replay after two runs. The first did not hear that its letters were stored, and those below this offset are
    removed before the second."""
    faults.unsaid[letters[1]] = ProviderUnavailable("no answer in time")
    replay = ran(start_replay(SYSTEM, letters))
    runtime.provider().admin().delete_records({queue.partition_info(0).place: up_to})
    faults.unsaid.clear()
    replay = taken_up(replay)
    assert replay.operation.state_choice is OperationState.SUCCEEDED
    return replay


def kill(*_: object) -> None:
    """As if the process ended here: not even `except Exception` runs."""
    raise KeyboardInterrupt


def test_letters_are_sent_as_they_failed_however_they_were_chosen(queue, letters) -> None:
    operation = finished(replay_letters(SYSTEM, reversed(letters)))
    assert sent_letters(queue) == letters
    assert (operation.state_choice, operation.done) == (OperationState.SUCCEEDED, 6)
    assert states(letters) == "rrrrrr"
    assert [entry.text for entry in operation.log.all()] == ["sent 6 of 6 letters"]


def test_a_message_is_what_it_was_and_says_which_replay_it_is_of(queue, letters) -> None:
    replay = ran(start_replay(SYSTEM, letters[:1]))
    [record] = sent_records(queue)
    assert (record.key, record.data) == (b"sensor", b"data 0")
    assert record.headers == {
        "ts": b"12345678",
        "__queue.replay.id": str(replay.id).encode(),
        "__queue.replay.letter": str(letters[0]).encode(),
        "__queue.replay.count": b"1",
    }


def test_the_replay_count_rises(queue) -> None:
    [letter] = make_letters(queue, 1, replay_count=3)
    ran(start_replay(SYSTEM, [letter]))
    assert sent_records(queue)[0].headers["__queue.replay.count"] == b"4"


def test_what_was_edited_is_sent_instead(queue, letters) -> None:
    key = uuid4()
    told = {"key": key, "headers": {"kind": "bmV3"}, "payload": b"mended", "edited_by": "root"}
    DeadLetterEdit.objects.create(letter_id=letters[1], **told)
    DeadLetter.objects.filter(id=letters[1]).update(is_edited=True)
    ran(start_replay(SYSTEM, letters[:2]))
    by_letter = dict(zip(sent_letters(queue), sent_records(queue), strict=True))
    assert by_letter[letters[0]].data == b"data 0"
    mended = by_letter[letters[1]]
    assert (mended.key, mended.data, mended.headers["kind"]) == (key, b"mended", b"new")
    assert mended.topic == queue.partition_info(partition_of(key, queue.partitions)).full_topic_name


def test_letters_stay_in_their_partitions(queue) -> None:
    letters = make_letters(queue, 9, partitions=3)
    ran(start_replay(SYSTEM, LetterFilter(queue=queue.id)))
    assert [record.topic[-1] for record in sent_records(queue)] == list("000111222")
    assert sent_letters(queue) == [*letters[::3], *letters[1::3], *letters[2::3]]


def test_letters_go_to_another_queue_by_its_partitions(installation, queue) -> None:
    other = create_queue(SYSTEM, queue.tenant, name="Other", topic="other", handler="log", partitions=7)
    keys = [uuid4() for _ in range(20)]
    letters = [make_letters(queue, 1, key=key, first=number)[0] for number, key in enumerate(keys)]
    ran(start_replay(SYSTEM, letters, target=other))
    assert sent_records(queue) == []
    for record in sent_records(other):
        assert record.topic == f"other.{partition_of(record.key, 7)}"
    assert sorted(sent_letters(other)) == sorted(letters)


@pytest.mark.parametrize("moment", ["seen", "broken"])
def test_a_letter_that_cannot_be_sent_is_open_again_with_the_reason_and_the_others_go(
    faults, queue, letters, moment
) -> None:
    """Whether that is seen beforehand, or the provider refuses a chunk and does not say whose fault it is."""
    getattr(faults, moment)[letters[2]] = PayloadTooLarge("it has 2 MiB; 1 MiB is the most")
    replay = ran(start_replay(SYSTEM, letters))
    assert sent_letters(queue) == [*letters[:2], *letters[3:]]
    assert states(letters) == "rrorrr"
    assert replay.items.get(letter=letters[2]).reason == "it has 2 MiB; 1 MiB is the most"
    assert (replay.sent, replay.skipped, replay.operation.done) == (5, 1, 6)
    assert replay.operation.state_choice is OperationState.SUCCEEDED


def test_where_no_letter_can_be_stored_the_replay_fails_and_gives_all_back(faults, queue, letters) -> None:
    faults.broken[letters[0]] = UnknownTopic("there is no topic telemetry.0")
    replay = ran(start_replay(SYSTEM, letters))
    assert replay.operation.state_choice is OperationState.FAILED
    assert replay.operation.error == "there is no topic telemetry.0"
    assert states(letters) == "oooooo"
    assert sent_letters(queue) == []


def test_nothing_overtakes_a_letter_that_the_provider_cannot_store(queue, monkeypatch) -> None:
    """A full disk refuses a large letter, and would still take the small ones behind it."""
    letters = [*make_letters(queue, 1, payload=b"0".ljust(1_040_000)), *make_letters(queue, 5, first=1)]
    replay = start_replay(SYSTEM, letters)
    write = os.writev

    def write_if_small(descriptor, parts):
        if sum(map(len, parts)) > 900_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, parts)

    with monkeypatch.context() as full:
        full.setattr(os, "writev", write_if_small)
        assert ran(replay).operation.state_choice is OperationState.RUNNING
    assert sent_letters(queue) == []
    assert taken_up(replay).operation.state_choice is OperationState.SUCCEEDED
    assert sent_letters(queue) == letters


def test_a_provider_that_is_away_is_waited_for(faults, queue, letters, small_chunks) -> None:
    faults.broken[letters[5]] = ProviderUnavailable("the disk is full")
    replay = ran(start_replay(SYSTEM, letters))
    assert replay.operation.state_choice is OperationState.RUNNING
    assert replay.operation.due_at is not None
    assert replay.operation.lease_owner == ""
    assert replay.operation.log.get().text == "waits and will try again: the disk is full"
    assert ran(replay).sent == 4, "it is not yet due"


@pytest.mark.parametrize("outcome", [None, mark_outcomes, mark_failed_again])
def test_an_answer_that_got_lost_is_looked_for_at_the_target(faults, queue, letters, outcome) -> None:
    faults.unsaid[letters[1]] = ProviderUnavailable("no answer in time")
    replay = ran(start_replay(SYSTEM, letters))
    if outcome is not None:
        outcome([letters[1]])
    faults.unsaid.clear()
    replay = taken_up(replay)
    assert replay.operation.state_choice is OperationState.SUCCEEDED
    assert sent_letters(queue) == letters
    assert (replay.sent, replay.succeeded + replay.failed) == (6, 0 if outcome is None else 1)


def test_what_is_hidden_behind_an_open_transaction_is_waited_for_and_not_sent_twice(
    clock, queue, letters, monkeypatch
) -> None:
    others = runtime.provider().transactional_producer("somebody-else").begin()
    begin = kind.ChunkSender._begin

    def begin_and_let_others_write(sender, *args):
        chunk = begin(sender, *args)
        for _ in range(4):
            others.send(queue.partition_info(0), QueueMessage(b"key", bytes(500_000)))
        return chunk

    replay = start_replay(SYSTEM, letters)
    with monkeypatch.context() as dying:
        dying.setattr(kind.ChunkSender, "_begin", begin_and_let_others_write)
        dying.setattr("workers.operations.chunks.finish_chunk", kill)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(replay.operation_id)
    abandoned(replay)
    replay = ran(replay)
    assert replay.operation.state_choice is OperationState.RUNNING
    assert "has a transaction that is neither committed nor aborted" in replay.operation.log.last().text
    others.abort()
    assert taken_up(replay).operation.state_choice is OperationState.SUCCEEDED
    assert sent_letters(queue) == letters


def test_a_runner_that_died_before_it_noted_what_was_sent_sends_nothing_twice(queue, letters, monkeypatch) -> None:
    replay = start_replay(SYSTEM, letters)
    with monkeypatch.context() as dying:
        dying.setattr("workers.operations.chunks.finish_chunk", kill)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(replay.operation_id)
    abandoned(replay)
    replay = ran(replay)
    assert sent_letters(queue) == letters
    assert item_states(replay) == ["arrived"] * 6
    assert (replay.sent, replay.operation.done, replay.operation.state) == (6, 6, "succeeded")


def test_a_runner_that_died_before_it_sent_anything_leaves_all_to_be_sent(queue, letters, monkeypatch) -> None:
    replay = start_replay(SYSTEM, letters)
    with monkeypatch.context() as dying:
        dying.setattr("workers.operations.chunks.ChunkSender._commit", kill)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(replay.operation_id)
    abandoned(replay)
    replay = ran(replay)
    assert sent_letters(queue) == letters
    assert item_states(replay) == ["sent"] * 6


def test_one_that_is_to_be_cancelled_is_settled_first(queue, letters, monkeypatch) -> None:
    replay = start_replay(SYSTEM, letters)
    with monkeypatch.context() as dying:
        dying.setattr("workers.operations.chunks.finish_chunk", kill)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(replay.operation_id)
    abandoned(replay)
    cancel_replay(SYSTEM, replay)
    assert ran(replay).operation.state_choice is OperationState.CANCELLED
    assert states(letters) == "rrrrrr", "what arrived is not given back"


def test_what_is_left_of_a_chunk_after_retention_tells_of_all_of_it(faults, queue, letters, small_chunks) -> None:
    replay = ran_and_cleaned(faults, queue, letters, up_to=3)
    assert states(letters) == "rrrrrr"
    assert item_states(replay) == ["arrived", "arrived", "arrived", "arrived", "sent", "sent"]


def test_what_retention_has_removed_before_anybody_looked_is_reported_and_not_sent(
    faults, queue, letters, small_chunks
) -> None:
    replay = ran_and_cleaned(faults, queue, letters, up_to=4)
    assert states(letters) == "oooorr"
    assert item_states(replay) == ["skipped", "skipped", "skipped", "skipped", "sent", "sent"]
    assert "telemetry.0[0] was cleaned up before it could be looked for" in replay.items.first().reason
    assert letters_in(runtime.provider().reader().read(queue.partition_info(0).place, 4, 10)) == letters[4:]


def test_somebody_else_who_has_taken_over_is_not_disturbed(queue, letters, monkeypatch) -> None:
    replay = start_replay(SYSTEM, letters)
    begin = kind.ChunkSender._begin

    def lose_lease(sender, *args):
        Operation.objects.update(lease_owner="somebody else")
        return begin(sender, *args)

    monkeypatch.setattr(kind.ChunkSender, "_begin", lose_lease)
    assert ran(replay).operation.lease_owner == "somebody else"
    assert sent_records(queue) == []


def test_one_that_was_suspended_and_then_fails_does_not_judge_what_its_successor_sends(
    queue, letters, small_chunks, monkeypatch
) -> None:
    replay = start_replay(SYSTEM, letters)
    send_all = ReplayKind._send_all

    def wake_up_late(*_: object) -> None:
        """The successor has sent a chunk, and not noted it yet."""
        abandoned(replay)
        with monkeypatch.context() as later:
            later.setattr(ReplayKind, "_send_all", send_all)
            later.setattr("workers.operations.chunks.finish_chunk", kill)
            with pytest.raises(KeyboardInterrupt):
                runner.run_operation(replay.operation_id)
        raise RuntimeError("it fails for a reason of its own")

    with monkeypatch.context() as suspended:
        suspended.setattr(ReplayKind, "_send_all", wake_up_late)
        assert ran(replay).operation.state_choice is OperationState.RUNNING
    assert ReplayChunk.objects.exists()
    assert states(letters) == "rrrrrr"
    abandoned(replay)
    assert ran(replay).sent == 6
    assert sent_letters(queue) == letters


def test_pausing_keeps_what_is_left_and_resuming_sends_it(queue, letters, small_chunks, monkeypatch) -> None:
    replay = start_replay(SYSTEM, letters)
    send = kind.ChunkSender.send

    def pause_then_send(sender, most):
        pause_replay(SYSTEM, replay)
        return send(sender, most)

    with monkeypatch.context() as pausing:
        pausing.setattr(kind.ChunkSender, "send", pause_then_send)
        operation = ran(replay).operation
    assert (operation.state, operation.is_paused, operation.done) == ("running", True, 4)
    assert ran(replay).sent == 4, "nobody may take it up"
    resume_replay(SYSTEM, replay)
    assert ran(replay).operation.state_choice is OperationState.SUCCEEDED
    assert sent_letters(queue) == letters


def test_cancelling_gives_back_what_was_not_sent(queue, letters, small_chunks, monkeypatch) -> None:
    replay = start_replay(SYSTEM, letters)
    send = kind.ChunkSender.send

    def cancel_then_send(sender, most):
        cancel_replay(SYSTEM, replay)
        return send(sender, most)

    monkeypatch.setattr(kind.ChunkSender, "send", cancel_then_send)
    replay = ran(replay)
    assert replay.operation.state_choice is OperationState.CANCELLED
    assert states(letters) == "rrrroo"
    assert item_states(replay)[4:] == ["skipped", "skipped"]


class TestRamp:
    def test_it_waits_for_the_outcome_of_each_step(self, clock, queue, letters) -> None:
        replay = start_replay(SYSTEM, letters, settings=ReplaySettings(ramp=(1, 3)))
        for sent in (1, 3):
            assert taken_up(replay).sent == sent
            assert replay.operation.log.last().text.startswith("waits for the outcome of")
            mark_outcomes(letters[:sent])
        replay = taken_up(replay)
        assert (replay.sent, replay.succeeded, replay.operation.state) == (6, 3, "succeeded")
        assert sent_letters(queue) == letters

    def test_one_failure_at_the_first_step_ends_it(self, clock, queue, letters) -> None:
        replay = start_replay(SYSTEM, letters, settings=ReplaySettings(ramp=(1,)))
        taken_up(replay)
        mark_failed_again(letters[:1])
        replay = taken_up(replay)
        assert replay.operation.state_choice is OperationState.FAILED
        assert replay.operation.error.startswith("1 of 1 letters failed again, more than 50%")
        assert states(letters) == "fooooo"

    def test_a_letter_that_could_not_be_sent_is_not_waited_for(self, faults, clock, queue, letters) -> None:
        faults.broken[letters[0]] = PayloadTooLarge("it is too large")
        replay = taken_up(start_replay(SYSTEM, letters, settings=ReplaySettings(ramp=(1,))))
        assert (replay.sent, replay.operation.state) == (5, "succeeded")


def test_too_many_failures_end_it_and_give_back_the_rest(queue, letters, small_chunks, monkeypatch) -> None:
    send = kind.ChunkSender.send

    def fail_then_send(sender, most):
        sent = send(sender, most)
        mark_failed_again(letters[:3])
        mark_outcomes(letters[3:4])
        return sent

    monkeypatch.setattr(kind.ChunkSender, "send", fail_then_send)
    replay = ran(start_replay(SYSTEM, letters, settings=ReplaySettings(abort_min=3)))
    assert replay.operation.error.startswith("3 of 4 letters failed again, more than 50%")
    assert states(letters) == "fffEoo"


def test_a_rate_is_kept_to(clock, queue) -> None:
    letters = make_letters(queue, 100)
    replay = ran(start_replay(SYSTEM, letters, settings=ReplaySettings(rate_per_s=20)))
    assert replay.operation.state_choice is OperationState.SUCCEEDED
    # The last portion begins a portion before the end.
    assert clock.monotonic() == pytest.approx(100 / 20 - 0.2)


def test_a_filters_letters_are_collected_bit_by_bit(queue, monkeypatch) -> None:
    collect_few(monkeypatch)
    letters = make_letters(queue, 25, partitions=3)
    replay = start_replay(SYSTEM, LetterFilter(queue=queue.id))
    assert replay.operation.total == 4
    late = make_letters(queue, 1, first=1_000)
    replay = ran(replay)
    assert (replay.operation.total, replay.sent, replay.is_collected) == (25, 25, True)
    assert sent_letters(queue) == [*letters[::3], *letters[1::3], *letters[2::3]]
    assert states(late) == "o", "what came later was not meant"


def test_a_runner_that_died_while_it_collected_goes_on(queue, monkeypatch) -> None:
    collect_few(monkeypatch)
    letters = make_letters(queue, 10)
    replay = start_replay(SYSTEM, LetterFilter(queue=queue.id))
    with monkeypatch.context() as dying:
        dying.setattr("workers.operations.replay.note_collected", kill)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(replay.operation_id)
    abandoned(replay)
    assert ran(replay).sent == 10
    assert sent_letters(queue) == letters


def test_large_letters_are_not_all_in_memory_at_once(queue, letters, monkeypatch) -> None:
    monkeypatch.setattr("queueapi.selectors.replay_rows._MAX_BYTES", 13)
    sizes = []
    send = kind.ChunkSender.send
    monkeypatch.setattr(kind.ChunkSender, "send", lambda sender, most: sizes.append(send(sender, most)) or sizes[-1])
    ran(start_replay(SYSTEM, letters))
    assert sizes == [2, 2, 2]


def test_named_letters_are_taken_all_or_none(queue, letters) -> None:
    DeadLetter.objects.filter(id=letters[0]).update(state=LetterState.DISCARDED)
    with pytest.raises(NotReplayable, match="1 of the letters were discarded; restore them first"):
        start_replay(SYSTEM, letters)
    with pytest.raises(NotReplayable, match="1 of the letters do not exist"):
        start_replay(SYSTEM, [uuid4()])
    with pytest.raises(NotReplayable, match="choose between 1 and 10,000"):
        start_replay(SYSTEM, [])
    assert not Operation.objects.filter(kind=REPLAY).exists()
    assert states(letters) == "dooooo"


def test_of_two_who_replay_the_same_letters_one_hears_why_not(queue, letters) -> None:
    start_replay(SYSTEM, letters[:2])
    with pytest.raises(NotReplayable, match="2 of the letters are being replayed already"):
        start_replay(SYSTEM, letters)
    with pytest.raises(NotReplayable, match="no letter of this choice can be replayed"):
        start_replay(SYSTEM, LetterFilter(queue=queue.id, until=datetime(2020, 1, 1, tzinfo=UTC)))


def test_it_is_in_the_ledger(queue, letters) -> None:
    replay = start_replay(SYSTEM, letters, reason="the sensor's firmware was mended")
    entry = LedgerEntry.objects.get(replay=replay)
    assert (entry.action, entry.count, entry.reason) == ("replay", 6, "the sensor's firmware was mended")


def test_each_letter_shows_the_replays_that_it_was_in(queue, letters) -> None:
    alone = start_replay(SYSTEM, letters[:1])
    cancel_replay(SYSTEM, alone)
    ran(alone)
    together = start_replay(SYSTEM, letters)
    first, last = (DeadLetter.objects.select_related("decision").get(id=letter) for letter in (letters[0], letters[-1]))
    assert [entry.replay_id for entry in ledger_of(first)] == [together.id, alone.id]
    assert [entry.replay_id for entry in ledger_of(last)] == [together.id]
    assert LedgerEntry.objects.get(replay=alone).letter_id == letters[0]


class TestLettersOfOthers:
    """They are where whoever wrote them put them, which says nothing about the queue's partitions."""

    @pytest.fixture
    def key(self, queue) -> bytes:
        """Its partition is not the first."""
        return next(key for number in range(100) if partition_of(key := b"key %d" % number, queue.partitions))

    def test_they_go_where_their_keys_belong(self, queue, key) -> None:
        self.enter(queue, key, "somewhere")
        replay = start_replay(SYSTEM, LetterFilter(queue=queue.id))
        ran(replay)
        [record] = sent_records(queue)
        assert record.topic == queue.partition_info(partition_of(key, queue.partitions)).full_topic_name

    def test_they_go_to_the_partition_that_they_name(self, queue) -> None:
        """As a queue's partition may be a topic of its own."""
        named = queue.partition_info(2).full_topic_name
        self.enter(queue, None, named)
        plan = plan_replay(LetterFilter(queue=queue.id), None, ReplaySettings())
        ran(start_replay(SYSTEM, LetterFilter(queue=queue.id)))
        assert [record.topic for record in sent_records(queue)] == [named]
        assert [count.partition for count in plan.targets] == [2]

    def enter(self, queue: Queue, key: bytes | None, topic: str) -> None:
        headers = {"__connect.errors.topic": topic.encode(), "__connect.errors.exception.class.name": b"ValueError"}
        with closing(runtime.provider().reader()) as reader:
            record = Record(queue.letter_topic, 0, 0, FAILED_AT_MS, key, headers, b"data")
            assert index_letters([record], reader) == 1


class TestOutcomes:
    def test_they_are_told_once_however_often_they_come(self, queue, letters) -> None:
        replay = ran(start_replay(SYSTEM, letters))
        assert mark_outcomes(letters[:2]) == 2
        assert mark_outcomes(letters[:3]) == 1
        assert mark_failed_again(letters[2:4]) == 1
        replay.refresh_from_db()
        assert (replay.succeeded, replay.failed) == (3, 1)
        assert states(letters) == "EEEfrr"

    def test_one_that_was_given_up_without_a_letter_is_open_again(self, queue, letters) -> None:
        replay = ran(start_replay(SYSTEM, letters))
        assert mark_dropped(letters[:2]) == 2
        replay.refresh_from_db()
        assert replay.failed == 2
        assert states(letters) == "oorrrr"
        assert ran(start_replay(SYSTEM, letters[:2])).sent == 2, "the letters are all there is of their messages"
        assert [record.headers[REPLAY_COUNT] for record in sent_records(queue)] == [b"1"] * 6 + [b"2"] * 2

    def test_one_that_is_dropped_each_time_is_not_replayed_for_ever(self, queue, letters) -> None:
        for _ in range(2):
            ran(start_replay(SYSTEM, letters[:1], settings=ReplaySettings(max_replays=2)))
            mark_dropped(letters[:1])
        with pytest.raises(NotReplayable, match="were replayed 2 times or more"):
            start_replay(SYSTEM, letters[:1], settings=ReplaySettings(max_replays=2))

    def test_what_was_dropped_and_is_delivered_once_more_has_its_outcome_all_the_same(self, queue, letters) -> None:
        replay = ran(start_replay(SYSTEM, letters[:3]))
        mark_dropped(letters[:3])
        discard_letters(SYSTEM, letters[2:3], "known")
        assert mark_outcomes([letters[0], letters[2]]) == 1
        assert mark_failed_again(letters[1:2]) == 1
        replay.refresh_from_db()
        assert (replay.sent, replay.succeeded, replay.failed) == (3, 1, 2)
        assert states(letters) == "Efdooo"
        assert recount_letters() == []

    def test_one_that_was_sent_on_to_be_tried_again_has_its_outcome_there(self, queue, letters) -> None:
        replay = ran(start_replay(SYSTEM, letters[:1]))
        [record] = sent_records(queue)
        work = Work(record, None)
        work.outcome = Outcome.SUCCEEDED
        work.outgoing = (Addressed(queue.partition_info(1), QueueMessage(record.key, record.data, record.headers)),)
        HostObserver().settling([work])
        assert states(letters) == "rooooo"
        work.outgoing = (Addressed(queue.partition_info(1), QueueMessage(None, b"what its handler sent")),)
        HostObserver().settling([work])
        replay.refresh_from_db()
        assert (states(letters), replay.succeeded) == ("Eooooo", 1)

    def test_one_that_comes_before_the_letter_was_sent_does_not_keep_the_replay_going(self, queue, letters) -> None:
        replay = start_replay(SYSTEM, letters)
        mark_outcomes(letters[:1])
        replay = ran(replay)
        assert (replay.sent, replay.operation.state) == (5, "succeeded")

    def test_what_nobody_replays_has_none(self, queue, letters) -> None:
        assert mark_outcomes([*letters, uuid4()]) == 0
        assert mark_outcomes([]) == 0

    def test_a_pack_of_them_takes_the_same_queries_as_one(self, queue) -> None:
        letters = make_letters(queue, 101)
        ran(start_replay(SYSTEM, letters))
        numbers = []
        for chosen in (letters[:1], letters[1:]):
            with CaptureQueriesContext(connection) as queries:
                mark_outcomes(chosen)
            numbers.append(len(queries))
        assert numbers[0] == numbers[1]

    def test_the_last_replay_of_a_letter_hears_it(self, faults, queue, letters) -> None:
        faults.broken[letters[0]] = PayloadTooLarge("it is too large")
        first = ran(start_replay(SYSTEM, letters[:1]))
        faults.broken.clear()
        second = ran(start_replay(SYSTEM, letters[:1]))
        mark_outcomes(letters[:1])
        first.refresh_from_db()
        second.refresh_from_db()
        assert (first.succeeded, second.succeeded) == (0, 1)
        assert item_states(first) == ["skipped"]
