"""Which dead-letter topics a host reads into the index."""

from collections.abc import Iterator

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.queues import change_queue, create_queue
from queueapi.models import DeadLetter, Queue
from queuecore.deadletter.writing import LetterWriter
from queuecore.messages import Record
from queuecore.providers.base import TopicSpec
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import wait_until
from queuecore.topics import TopicPartitionInfo
from workers.indexing import LetterIndexing


@pytest.fixture
def indexings(installation) -> Iterator[list[LetterIndexing]]:
    """What is in here is stopped."""
    running: list[LetterIndexing] = []
    yield running
    stop_all(running)


def stop_all(running: list[LetterIndexing]) -> None:
    for indexing in running:
        indexing.stop()
        assert all(one.wait_for_end(30) for one in indexing.indexers)
    running.clear()


def start(running: list[LetterIndexing]) -> LetterIndexing:
    running.append(LetterIndexing())
    running[-1].want(Queue.objects.all())
    return running[-1]


def write_letter(queue: Queue, topic: str, partition: int) -> None:
    source = queue.partition_info(0)
    record = Record(source.full_topic_name, 0, 9, 1_700_000_000_000, None, {}, b"data")
    writer = LetterWriter(str(queue.id), "group", "handler", "worker-1")
    _, letter = writer.write(source, record, ValueError("too hot"), reason="retries_exhausted", attempts=4)
    info = TopicPartitionInfo(topic, partition, use_internal_partition=True)
    send_and_wait(runtime.provider().producer(), info, letter, 10)


def is_indexed(topic: str, partition: int) -> bool:
    return DeadLetter.objects.filter(letter_topic=topic, letter_partition=partition).exists()


def test_partitions_that_a_topic_gets_are_read(installation, indexings) -> None:
    start(indexings)
    topic = installation.queue.letter_topic
    write_letter(installation.queue, topic, 0)
    wait_until(lambda: is_indexed(topic, 0))
    runtime.provider().admin().alter_topics([TopicSpec(topic, 5)])
    write_letter(installation.queue, topic, 4)
    wait_until(lambda: is_indexed(topic, 4))


def test_partitions_that_only_another_queue_has_are_read(installation, indexings) -> None:
    runtime.provider().admin().create_topics([TopicSpec("shared.letters", 8)])
    tenant = installation.queue.tenant
    create_queue(SYSTEM, tenant, name="Small", topic="small", handler="log", partitions=1, dlq_topic="shared.letters")
    start(indexings)
    create_queue(SYSTEM, tenant, name="Large", topic="large", handler="log", partitions=8, dlq_topic="shared.letters")
    write_letter(installation.queue, "shared.letters", 7)
    wait_until(lambda: is_indexed("shared.letters", 7))


def test_former_topics_are_read_after_a_restart(installation, indexings) -> None:
    own = installation.queue.letter_topic
    queue = change_queue(SYSTEM, installation.queue, dlq_topic="first")
    start(indexings)
    groups = runtime.provider().admin().committed_offsets
    places = [TopicPartitionInfo("first", number, use_internal_partition=True).place for number in range(3)]
    wait_until(lambda: groups({"dead-letter-index-first": places})["dead-letter-index-first"])
    stop_all(indexings)
    change_queue(SYSTEM, queue, dlq_topic="second")
    for topic in (own, "first", "second"):
        write_letter(installation.queue, topic, 2)
    start(indexings)
    for topic in (own, "first", "second"):
        wait_until(lambda topic=topic: is_indexed(topic, 2))


def test_a_former_topic_that_holds_messages_now_is_not_read(installation, indexings) -> None:
    change_queue(SYSTEM, installation.queue, dlq_topic="reused.0")
    admin = runtime.provider().admin()
    place = TopicPartitionInfo("reused.0", 0, use_internal_partition=True).place
    admin.alter_group_offsets("dead-letter-index-reused.0", {place: 0})
    change_queue(SYSTEM, installation.queue, dlq_topic="")
    create_queue(SYSTEM, installation.queue.tenant, name="Reused", topic="reused", handler="log", partitions=1)
    indexing = start(indexings)
    assert "letters in reused.0" not in [one.name for one in indexing.indexers]
