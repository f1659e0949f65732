"""A queue's life on Kafka: its topics are as its row says, and what is left is moved in order and once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from queueapi import runtime, wakeups
from queueapi.actions.actor import SYSTEM
from queueapi.actions.queue_ends import delete_queue
from queueapi.actions.queues import change_queue
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.backlog import messages_left
from queueapi.celery_config import celery_settings
from queueapi.choices import OperationState, QueueState
from queueapi.errors import InvalidInput
from queueapi.models import Queue, Tenant
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import wait_until
from tests.integration.queue_kit import consume, fill, new_queue, numbers_of, run_to_end, stored


@pytest.fixture
def tenant(tmp_path: Path, settings, transactional_db, kafka_service: KafkaService) -> Iterator[Tenant]:
    tree = settings.SWITCHYARD.queue
    on_kafka = replace(tree, type="kafka", kafka=replace(tree.kafka, bootstrap_servers=kafka_service.bootstrap_servers))
    settings.SWITCHYARD = replace(settings.SWITCHYARD, data_dir=tmp_path, queue=on_kafka)
    settings.CELERY = celery_settings(settings.SWITCHYARD)
    wakeups._sender.cache_clear()
    runtime.close_provider()
    yield create_tenant(SYSTEM, "Greenhouse")
    runtime.close_provider()
    wakeups._sender.cache_clear()


def named(name: str, **options: object) -> Queue:
    """The broker outlives the test: each has topics of its own."""
    return new_queue(ensure_system_tenant(), name, topic=f"{name}-{uuid4().hex}", partitions=2, **options)


def test_topics_have_what_the_queue_says(tenant) -> None:
    queue = named("Kept", retention_ms=60_000, custom_properties={"compression.type": "zstd"})
    assert queue.state == QueueState.ACTIVE
    change_queue(
        SYSTEM, queue, retention_ms=120_000, custom_properties={"compression.type": "lz4", "segment.ms": "9000"}
    )
    assert runtime.provider().admin().topics()[f"{queue.topic}.0"].retention_ms == 120_000
    with pytest.raises(InvalidInput, match=r"did you mean compression\.type"):
        change_queue(SYSTEM, queue, custom_properties={"compresion.type": "lz4", "segment.ms": "9000"})
    with pytest.raises(InvalidInput, match=r"segment\.ms has been set, and the topics keep it"):
        change_queue(SYSTEM, queue, custom_properties={"compression.type": "lz4"})


def test_what_is_left_is_moved_and_the_queue_is_gone(tenant) -> None:
    source, target = named("Source"), named("Target")
    fill(source, tenant, 30)
    consume(source)
    assert messages_left(source) == 0
    fill(source, tenant, 40)
    operation = delete_queue(SYSTEM, source, move_to=target)
    wait_until(lambda: run_to_end(operation).state_choice.is_final, 90)
    assert operation.state == OperationState.SUCCEEDED
    assert stored(target) == numbers_of(40)
    assert not [name for name in runtime.provider().admin().topics() if name.startswith(source.topic)]
    assert not Queue.objects.filter(pk=source.pk).exists()
    consume(target)
    assert messages_left(target) == 0, "what transactions leave behind is no message"
