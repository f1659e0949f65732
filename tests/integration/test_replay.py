"""Replays: in order, and nothing sent twice or given back that was acknowledged."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.dead_letters import mark_replayed, replay_letters
from queueapi.choices import LetterState, OperationState
from queueapi.models import DeadLetter, Operation
from queuecore.errors import ProviderUnavailable
from queuecore.messages import REPLAY_LETTER, RecordMetadata
from queuecore.testing.clock import ManualClock
from workers.operations import replay, runner
from workers.operations.replay import CHUNK_TIMEOUT_S, Replay

FAILED_AT = datetime(2026, 1, 1, tzinfo=UTC)


class Producer:
    """Stores nothing. Answers at once: with an error for those in `broken`, never for those in `silent`."""

    def __init__(self) -> None:
        self.sent: list[UUID] = []
        self.broken: set[UUID] = set()
        self.refused: set[UUID] = set()
        self.silent: set[UUID] = set()
        self.clock = ManualClock()

    def producer(self) -> "Producer":
        return self

    def close(self) -> None: ...

    def send(self, info, message, callback) -> None:
        letter = UUID(message.headers[REPLAY_LETTER].decode())
        if letter in self.refused:
            raise ProviderUnavailable("there is no room")
        self.sent.append(letter)
        if letter in self.broken:
            callback(None, ProviderUnavailable("the disk is full"))
        elif letter in self.silent:
            self.clock.advance(CHUNK_TIMEOUT_S)
        else:
            callback(RecordMetadata(info.full_topic_name, 0, len(self.sent), 0), None)


@pytest.fixture
def producer(installation, monkeypatch) -> Producer:
    producer = Producer()
    monkeypatch.setattr(runtime, "provider", lambda: producer)
    monkeypatch.setattr(replay, "CHUNK", 4)
    monkeypatch.setitem(runner.KINDS, "replay_letters", Replay(clock=producer.clock))
    return producer


@pytest.fixture
def letters(installation) -> list[UUID]:
    """Six of one entity, in the order in which they failed."""
    made = [
        DeadLetter(
            queue=installation.queue,
            letter_topic="telemetry.dlq",
            letter_partition=0,
            letter_offset=number,
            topic="telemetry.0",
            partition=0,
            offset=number,
            sent_at=FAILED_AT,
            payload=b"",
            attempts=1,
            first_failed_at=FAILED_AT,
            failed_at=FAILED_AT + timedelta(seconds=number),
        )
        for number in range(6)
    ]
    return [letter.id for letter in DeadLetter.objects.bulk_create(made)]


def states(letters: list[UUID]) -> str:
    """One character for each: (r)eplaying, r(E)played, (o)pen, (f)ailed again."""
    rows = DeadLetter.objects.in_bulk(letters)
    signs = {"replaying": "r", "replayed": "E", "open": "o", "failed_again": "f"}
    return "".join(signs[rows[letter].state] for letter in letters)


def finished(operation: Operation) -> Operation:
    runner.run_operation(operation.id)
    operation.refresh_from_db()
    return operation


def abandoned(operation: Operation) -> None:
    """Its runner is dead, and the lease is over."""
    Operation.objects.filter(id=operation.id).update(lease_expires_at=FAILED_AT)


def test_letters_are_sent_as_they_failed_however_they_were_chosen(producer, letters) -> None:
    operation = finished(replay_letters(SYSTEM, reversed(letters)))
    assert producer.sent == letters
    assert (operation.state_choice, operation.done) == (OperationState.SUCCEEDED, 6)


def test_a_failed_send_gives_back_that_letter_and_what_follows_its_chunk(producer, letters) -> None:
    producer.broken = {letters[1]}
    operation = finished(replay_letters(SYSTEM, letters))
    assert states(letters) == "rorroo"
    assert (operation.state_choice, operation.done) == (OperationState.FAILED, 3)
    assert operation.error == "the disk is full"


def test_nothing_overtakes_a_letter_that_the_producer_refuses(producer, letters) -> None:
    producer.refused = {letters[2]}
    operation = finished(replay_letters(SYSTEM, letters))
    assert producer.sent == letters[:2]
    assert states(letters) == "rroooo"
    assert operation.error == "there is no room"


def test_a_chunk_has_one_deadline(producer, letters) -> None:
    producer.silent = {letters[1]}
    operation = finished(replay_letters(SYSTEM, letters))
    assert producer.sent == letters[:2]
    assert states(letters) == "rooooo"
    assert "3 of 4 messages were not acknowledged within 15 s and may still be stored" in operation.error


def test_what_was_given_back_can_be_replayed_and_the_rest_cannot(producer, letters) -> None:
    producer.broken = {letters[1]}
    finished(replay_letters(SYSTEM, letters))
    producer.broken.clear()
    producer.sent.clear()
    assert finished(replay_letters(SYSTEM, [letters[1], *letters[4:]])).state_choice is OperationState.SUCCEEDED
    assert producer.sent == [letters[1], *letters[4:]]


def test_a_runner_that_died_before_its_step_has_noted_what_was_acknowledged(producer, letters, monkeypatch) -> None:
    operation = replay_letters(SYSTEM, letters)
    with monkeypatch.context() as dying:
        dying.setattr("workers.operations.run.extend_lease", kill)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(operation.id)
    abandoned(operation)
    assert finished(operation).done == 6
    assert producer.sent == letters


def test_a_runner_that_died_before_its_notes_sends_none_again_that_was_handled(producer, letters, monkeypatch) -> None:
    operation = replay_letters(SYSTEM, letters)
    with monkeypatch.context() as dying:
        dying.setattr(replay, "mark_sent", kill)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(operation.id)
    abandoned(operation)
    mark_replayed(letters[0])
    DeadLetter.objects.filter(id=letters[1]).update(state=LetterState.FAILED_AGAIN)
    producer.sent.clear()
    finished(operation)
    assert producer.sent == letters[2:]
    assert states(letters) == "Efrrrr"


def test_a_letter_handled_since_the_replay_looked_is_not_sent(producer, letters, monkeypatch) -> None:
    step = runner.OperationRun.step

    def handled_meanwhile(run, done):
        mark_replayed(letters[5])
        step(run, done)

    monkeypatch.setattr(runner.OperationRun, "step", handled_meanwhile)
    assert finished(replay_letters(SYSTEM, letters)).done == 6
    assert producer.sent == letters[:5]


def kill(*_: object) -> None:
    """As if the process ended here: not even `except Exception` runs."""
    raise KeyboardInterrupt
