"""Replays on Kafka: what a runner left on its way is found there as well."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from queueapi import runtime, wakeups
from queueapi.actions.actor import SYSTEM
from queueapi.actions.queues import create_queue
from queueapi.actions.replays import start_replay
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.celery_config import celery_settings
from queueapi.choices import OperationState
from queueapi.models import Operation, Queue
from queueapi.selectors.letter_filter import LetterFilter
from queuecore.messages import QueueMessage
from queuecore.testing.clock import ManualClock
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import wait_until
from tests.integration.replay_kit import item_states, make_letters, ran, sent_letters
from workers.operations import runner
from workers.operations.chunks import ChunkSender
from workers.operations.replay import ReplayKind


@pytest.fixture
def queue(tmp_path: Path, settings, transactional_db, kafka_service: KafkaService) -> Iterator[Queue]:
    tree = settings.SWITCHYARD.queue
    on_kafka = replace(tree, type="kafka", kafka=replace(tree.kafka, bootstrap_servers=kafka_service.bootstrap_servers))
    settings.SWITCHYARD = replace(settings.SWITCHYARD, data_dir=tmp_path, queue=on_kafka)
    settings.CELERY = celery_settings(settings.SWITCHYARD)
    wakeups._sender.cache_clear()
    runtime.close_provider()
    # The broker outlives the test: each has topics of its own.
    topic = f"replayed-{uuid4().hex}"
    yield create_queue(SYSTEM, ensure_system_tenant(), name="Replayed", topic=topic, handler="log")
    runtime.close_provider()
    wakeups._sender.cache_clear()


@pytest.mark.parametrize("moment", ["begin_chunk", "ChunkSender._commit", "finish_chunk"])
def test_nothing_is_lost_or_doubled_when_the_runner_dies(queue, monkeypatch, moment) -> None:
    letters = make_letters(queue, 90, partitions=3)
    replay = start_replay(SYSTEM, LetterFilter(queue=queue.id))
    with monkeypatch.context() as dying:
        dying.setattr(f"workers.operations.chunks.{moment}", kill)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(replay.operation_id)
    overtaken()
    replay = ran(replay)
    assert replay.operation.state_choice is OperationState.SUCCEEDED
    assert arrived(queue, 90) == [*letters[::3], *letters[1::3], *letters[2::3]]
    assert set(item_states(replay)) == {"arrived" if moment == "finish_chunk" else "sent"}


def test_one_that_was_overtaken_sends_nothing_more(queue, monkeypatch) -> None:
    """It had begun a transaction when its lease ended."""
    letters = make_letters(queue, 9)
    replay = start_replay(SYSTEM, letters)
    commit = ChunkSender._commit

    def commit_late(sender, outgoing) -> None:
        monkeypatch.setattr(ChunkSender, "_commit", commit)
        with sender._producer().begin() as late:
            for info, message in outgoing:
                late.send(info, message)
            overtaken()
            assert ran(replay).operation.state_choice is OperationState.SUCCEEDED

    monkeypatch.setattr(ChunkSender, "_commit", commit_late)
    assert ran(replay).sent == 9
    assert arrived(queue, 9) == letters


def test_what_is_hidden_behind_an_open_transaction_is_waited_for(queue, monkeypatch) -> None:
    monkeypatch.setitem(runner.KINDS, "replay_letters", ReplayKind(ManualClock()))
    others = runtime.provider().transactional_producer(f"others-{queue.id}").begin()
    others.send(queue.partition_info(0), QueueMessage(b"key", b"data"))
    place = queue.partition_info(0).place
    wait_until(lambda: runtime.provider().admin().end_offsets([place])[place])
    letters = make_letters(queue, 9)
    replay = start_replay(SYSTEM, letters)
    with monkeypatch.context() as dying:
        dying.setattr("workers.operations.chunks.finish_chunk", kill)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(replay.operation_id)
    overtaken()
    assert ran(replay).operation.state_choice is OperationState.RUNNING
    others.abort()
    wait_until(lambda: len(sent_letters(queue)) == 9)
    Operation.objects.update(due_at=None)
    assert ran(replay).operation.state_choice is OperationState.SUCCEEDED
    assert sent_letters(queue) == letters


def overtaken() -> None:
    Operation.objects.update(lease_expires_at=datetime(2026, 1, 1, tzinfo=UTC))


def arrived(queue: Queue, count: int) -> list[UUID]:
    """Kafka shows a transaction's messages shortly after it has said that they are committed."""
    wait_until(lambda: len(sent_letters(queue)) >= count)
    return sent_letters(queue)


def kill(*_: object) -> None:
    raise KeyboardInterrupt
