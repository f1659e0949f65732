"""The lag that pages show is what Kafka's own `kafka-consumer-groups` says of the same moment."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queueapi import runtime
from queueapi.actions.provisioning import provision_metrics
from queueapi.models import LagCurrent, LagMinute, Queue
from queueapi.plans import consumption_plans
from queuecore.messages import QueueMessage
from queuecore.providers.base import QueueConsumer
from queuecore.testing.contract.kit import send_all, take
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition
from tests.integration.kafka_groups import Figures, Told, committed, told_by_kafka
from tests.integration.test_queue_life_kafka import named, tenant  # noqa: F401 a fixture
from tests.services import require_or_skip
from workers.sampling import publish_samples
from workers.spark.pipeline import run_pipeline
from workers.spark.session import missing_java

pytestmark = pytest.mark.usefixtures("tenant")


@pytest.fixture(autouse=True)
def _java() -> None:
    if problem := missing_java():
        require_or_skip(problem)


class Lags:
    """Queues on Kafka whose lags are seen by both, while nothing moves."""

    def __init__(self, kafka: KafkaService, folder: Path) -> None:
        self._kafka = kafka
        self._folder = folder
        provision_metrics()

    def told_by_us(self) -> Figures:
        """Through the whole pipeline: samples on Kafka, a run of Spark over them, the table that pages read."""
        publish_samples(runtime.provider(), "sampler")
        run_pipeline()
        fields = ("consumer_group", "topic", "committed_offset", "end_offset", "lag_messages")
        rows = LagCurrent.objects.values_list(*fields)
        return {(group, ProviderPartition(topic, 0)): Told(*figures) for group, topic, *figures in rows}

    def told_by_kafka(self, ours: Figures) -> Figures:
        """Groups may have read other tests' topics too."""
        groups = {group for group, _ in ours}.intersection(runtime.provider().admin().groups())
        told = told_by_kafka(self._kafka, sorted(groups), self._folder)
        return {key: figures for key, figures in told.items() if key in ours}

    def agreed(self) -> Figures:
        """What both say: the same of all that was ever committed. Where nothing was, the tool has no lag."""
        ours = self.told_by_us()
        theirs = self.told_by_kafka(ours)
        assert committed(ours) == committed(theirs) != {}
        assert {key: told.end for key, told in theirs.items()} == {key: ours[key].end for key in theirs}
        assert all(told.lag is None for told in theirs.values() if told.committed is None)
        return ours


@pytest.fixture
def lags(kafka_service: KafkaService, tmp_path: Path) -> Lags:
    return Lags(kafka_service, tmp_path)


@contextmanager
def reading(queue: Queue, messages: int) -> Iterator[QueueConsumer]:
    """A member of the queue's one group that has polled so many, and holds all partitions."""
    (plan,) = consumption_plans(queue, "")
    consumer = runtime.provider().consumer(plan.group)
    try:
        consumer.subscribe(plan.infos)
        take(consumer, messages)
        yield consumer
    finally:
        consumer.stop()


def filled(name: str, *messages: int, **options: object) -> Queue:
    queue = named(name, **options)
    for info, count in zip(queue.partition_infos(), messages, strict=True):
        send_all(runtime.provider(), info, *[b"x"] * count)
    return queue


def commit(queue: Queue, *offsets: int) -> None:
    """One for each of the queue's partitions, whose groups have no members."""
    for plan, offset in zip(consumption_plans(queue, ""), offsets, strict=True):
        runtime.provider().admin().alter_group_offsets(plan.group, {plan.infos[0].place: offset})


def write_in_transaction(queue: Queue) -> None:
    """One message to each partition. The mark that ends the transaction has an offset too, and is written later."""
    places = [info.place for info in queue.partition_infos()]
    admin = runtime.provider().admin()
    before = admin.end_offsets(places)
    producer = runtime.provider().transactional_producer(f"lag-{queue.pk}")
    with producer.begin() as chunk:
        for info in queue.partition_infos():
            chunk.send(info, QueueMessage(None, b"x"))
    producer.stop()
    wait_until(lambda: admin.end_offsets(places) == {place: end + 2 for place, end in before.items()})


def of_queue(figures: Figures, queue: Queue) -> list[tuple[int | None, int | None]]:
    """What is committed and the lag, by partition."""
    by_place = {place: told for (_, place), told in figures.items()}
    return [(by_place[info.place].committed, by_place[info.place].lag) for info in queue.partition_infos()]


def test_every_lag_is_what_kafkas_own_tool_says(lags: Lags) -> None:
    divided = filled("Divided", 7, 4)
    commit(divided, 3, 4)
    together = filled("Together", 5, 6, consumer_per_partition=False)
    new, idle = filled("New", 8, 2), filled("Idle", 0, 0)
    with reading(together, 11) as consumer:
        consumer.commit({together.partition_infos()[0].place: 2})
        agreed = lags.agreed()
        assert of_queue(agreed, divided) == [(3, 4), (4, 0)]
        assert of_queue(agreed, together) == [(2, 3), (None, 6)], "without a commit, all that is stored"
        assert of_queue(agreed, new) == [(None, 8), (None, 2)]
        assert of_queue(agreed, idle) == [(None, 0), (None, 0)]
        minutes = dict(LagMinute.objects.values_list("queue", "lag_messages"))
        assert minutes == {divided.pk: 4, together.pk: 9, new.pk: 10, idle.pk: 0}

        consumer.commit()
        commit(divided, 1, 4)
        for info in (*divided.partition_infos(), *new.partition_infos()):
            send_all(runtime.provider(), info, b"more", b"and more")
        agreed = lags.agreed()
        assert of_queue(agreed, divided) == [(1, 8), (4, 2)], "the first was sent back"
        assert of_queue(agreed, together) == [(5, 0), (6, 0)]
        assert of_queue(agreed, new) == [(None, 10), (None, 4)]


def test_what_holds_no_message_counts_as_kafkas_own_tool_counts_it(lags: Lags) -> None:
    """The marks of transactions, and what retention has removed behind a group."""
    transacted, shortened = filled("Transacted", 3, 3), filled("Shortened", 6, 6)
    commit(transacted, 3, 1)
    commit(shortened, 1, 5)
    write_in_transaction(transacted)
    runtime.provider().admin().delete_records({info.place: 4 for info in shortened.partition_infos()})
    agreed = lags.agreed()
    assert of_queue(agreed, transacted) == [(3, 2), (1, 4)]
    assert of_queue(agreed, shortened) == [(1, 5), (5, 1)]
