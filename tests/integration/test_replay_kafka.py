"""Replays on Kafka: what a runner left on its way is found there as well."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

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
from queuecore.testing.services import KafkaService
from tests.integration.replay_kit import item_states, make_letters, ran, sent_letters
from workers.operations import runner


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


@pytest.mark.parametrize("moment", ["begin_chunk", "send_all", "finish_chunk"])
def test_nothing_is_lost_or_doubled_when_the_runner_dies(queue, monkeypatch, moment) -> None:
    letters = make_letters(queue, 90, partitions=3)
    replay = start_replay(SYSTEM, LetterFilter(queue=queue.id))
    with monkeypatch.context() as dying:
        dying.setattr(f"workers.operations.chunks.{moment}", kill)
        with pytest.raises(KeyboardInterrupt):
            runner.run_operation(replay.operation_id)
    Operation.objects.update(lease_expires_at=datetime(2026, 1, 1, tzinfo=UTC))
    replay = ran(replay)
    assert replay.operation.state_choice is OperationState.SUCCEEDED
    assert sent_letters(queue) == [*letters[::3], *letters[1::3], *letters[2::3]]
    assert set(item_states(replay)) == {"arrived" if moment == "finish_chunk" else "sent"}


def kill(*_: object) -> None:
    raise KeyboardInterrupt
