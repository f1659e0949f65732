"""Replays whose runners die of kill -9 at the worst points: every letter arrives once, and in its order."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.replay_collecting import LetterCollector
from queueapi.actions.replays import cancel_replay, start_replay
from queueapi.choices import OperationState
from queueapi.models import Operation, Queue, Replay, ReplayChunk
from queueapi.selectors.letter_filter import LetterFilter
from queuecore.providers.log.writers import Writers
from tests.integration.conftest import installation  # noqa: F401 a fixture
from tests.integration.replay_kit import letters_in, make_letters, states
from tests.kill_points import PLACES, When, die_at
from tests.processes import Child
from workers.operations import chunks, replay, run, runner

SEED = os.environ.get("TEST_SEED", "7")
LETTERS = 600
CHUNK = 40
PARTITIONS = 3

# What is called, and within how many calls a runner dies of it.
POINTS: dict[str, tuple[Any, str, int]] = {
    "collect": (LetterCollector, "collect", 2),
    "note that all are collected": (replay, "note_collected", 1),
    "check the lease": (run, "record_progress", 8),
    "note a chunk": (chunks, "begin_chunk", 4),
    "send a chunk": (chunks.ChunkSender, "_commit", 4),
    "begin a transaction": (*PLACES["begin a transaction"], 4),
    "finish a transaction": (*PLACES["finish a transaction"], 4),
    "note what was sent": (chunks, "finish_chunk", 4),
    "note what has arrived": (chunks, "settle_chunk", 1),
    "give back": (replay, "give_back_letters", 1),
    "end": (runner, "finish_operation", 1),
    "write to the log": (*PLACES["write"], 6),
    "sync the log": (*PLACES["sync"], 6),
    "publish in the log": (*PLACES["publish"], 6),
}


def run_and_die(parent: Connection, operation_id: UUID, point: str, when: When, nth: int) -> None:
    """Run it, and die on the way. Who comes to the end instead says so."""
    owner, name, _ = POINTS[point]
    die_at(owner, name, when, nth)
    runner.run_operation(operation_id)
    runtime.close_provider()
    parent.send("over")


def run_and_stand_still(parent: Connection, operation_id: UUID) -> None:
    """Run it, and be suspended when the first letters are about to be written, as a paused machine is."""
    commit, append = chunks.ChunkSender._commit, Writers.append

    def suspend_then_append(*args: Any) -> int:
        Writers.append = append
        os.kill(os.getpid(), signal.SIGSTOP)
        return append(*args)

    def commit_suspended(*args: Any) -> None:
        Writers.append = suspend_then_append
        commit(*args)

    chunks.ChunkSender._commit = commit_suspended
    runner.run_operation(operation_id)
    runtime.close_provider()
    parent.send("over")


class Crashing:
    """A replay that is run again and again, by processes that die."""

    def __init__(self, queue: Queue, chance: random.Random) -> None:
        self.queue = queue
        self.chance = chance
        self.letters = make_letters(queue, LETTERS, partitions=PARTITIONS)
        self.replay = start_replay(SYSTEM, LetterFilter(queue=queue.id))
        self.kills = 0

    def run_until(self, kills: int) -> None:
        """Let so many die, unless it is over before."""
        while self.kills < kills and not self.operation().state_choice.is_final:
            self._run_once(*self._choose())

    def finish(self) -> Operation:
        self._take_lease()
        runner.run_operation(self.replay.operation_id)
        return self.operation()

    def operation(self) -> Operation:
        return Operation.objects.get(id=self.replay.operation_id)

    def sent(self) -> list[list[UUID]]:
        """The letters that each partition of the queue has, in order."""
        with closing(runtime.provider().reader()) as reader:
            places = [info.place for info in self.queue.partition_infos()]
            return [letters_in(reader.read(place, 0, 1_000_000)) for place in places]

    def overtake(self) -> Operation:
        """Another runner finishes it while one is suspended, which then wakes up."""
        runtime.close_provider()
        connections.close_all()
        with Child(run_and_stand_still, self.replay.operation_id) as child:
            os.waitpid(child.pid, os.WUNTRACED)
            finished = self.finish()
            os.kill(child.pid, signal.SIGCONT)
            assert child.hear_all() == ["over"]
        return finished

    def _choose(self) -> tuple[str, When, int]:
        """A point that the next runner comes to."""
        current = Replay.objects.select_related("operation").get(id=self.replay.id)
        passed = {
            "collect": current.is_collected,
            "note that all are collected": current.is_collected,
            "note what has arrived": not ReplayChunk.objects.exists(),
            "give back": current.operation.state != OperationState.CANCELLING,
        }
        point = self.chance.choice([name for name in POINTS if not passed.get(name)])
        whens: list[When] = ["before", "after"]
        if point == "write to the log":
            whens.append("half-way")
        return point, self.chance.choice(whens), self.chance.randint(1, POINTS[point][2])

    def _run_once(self, point: str, when: When, nth: int) -> None:
        self._take_lease()
        # Nothing may be open where a process is forked.
        runtime.close_provider()
        connections.close_all()
        with Child(run_and_die, self.replay.operation_id, point, when, nth) as child:
            if self.chance.random() < 0.2:
                child.process.join(self.chance.uniform(0, 0.3))
                child.kill()
            said = child.hear_all()
            child.join()
            if not said:
                assert child.process.exitcode == -signal.SIGKILL, f"it failed: {when} {point} {nth}"
                self.kills += 1

    def _take_lease(self) -> None:
        """Whoever had it is dead."""
        long_ago = datetime(2026, 1, 1, tzinfo=UTC)
        held = Operation.objects.filter(id=self.replay.operation_id, lease_expires_at__isnull=False)
        held.update(lease_expires_at=long_ago)


@pytest.fixture
def crashing(installation, monkeypatch, request) -> Iterator[Callable[[], Crashing]]:  # noqa: F811 the fixture
    monkeypatch.setattr(replay, "CHUNK", CHUNK)
    monkeypatch.setattr("queueapi.actions.replays.MAX_NAMED", 200)
    monkeypatch.setattr(LetterCollector.collect, "__defaults__", (150,))
    monkeypatch.setattr("queueapi.actions.replay_collecting._TURN", 30)
    chance = random.Random(f"{SEED} {request.node.name}")
    yield lambda: Crashing(installation.queue, chance)
    connections.close_all()


FEW = range(4)
MANY = [pytest.param(number, marks=pytest.mark.full) for number in range(4, 60)]


@pytest.mark.parametrize("number", [*FEW, *MANY])
def test_every_letter_arrives_once_and_in_order_whoever_dies(crashing, number: int) -> None:
    replayed = crashing()
    replayed.run_until(kills=12)
    assert replayed.finish().state_choice is OperationState.SUCCEEDED
    assert replayed.kills, "somebody should have died"
    assert replayed.sent() == [replayed.letters[partition::PARTITIONS] for partition in range(PARTITIONS)]
    assert Replay.objects.get(id=replayed.replay.id).sent == LETTERS


@pytest.mark.parametrize("number", [*FEW, *MANY])
def test_one_that_is_cancelled_meanwhile_gives_back_just_what_did_not_arrive(crashing, number: int) -> None:
    replayed = crashing()
    replayed.run_until(kills=4)
    if not replayed.operation().state_choice.is_final:
        cancel_replay(SYSTEM, replayed.replay)
    replayed.run_until(kills=8)
    replayed.finish()
    assert replayed.operation().state_choice.is_final
    sent = [letter for letters in replayed.sent() for letter in letters]
    assert len(sent) == len(set(sent))
    by_state = dict(zip(replayed.letters, states(replayed.letters), strict=True))
    assert {letter for letter, state in by_state.items() if state == "r"} == set(sent)
    assert set(by_state.values()) <= {"r", "o"}


def test_one_that_was_suspended_for_longer_than_its_lease_sends_nothing_more(crashing) -> None:
    replayed = crashing()
    assert replayed.overtake().state_choice is OperationState.SUCCEEDED
    assert replayed.sent() == [replayed.letters[partition::PARTITIONS] for partition in range(PARTITIONS)]
