"""Consumers and brokers that fall silent.

A consumer that was stopped for longer than its session cannot commit over the one that took its place; nor can the
consumption of a partition over the next one, which takes its place at once. While a broker is silent nobody waits for
it for longer than the timeout, and all goes on when it is back.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.errors import ProviderUnavailable
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec, Transaction, TransactionalProducer
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import ConsumerOptions, KafkaOptions
from queuecore.sending import send_and_wait
from queuecore.submit import submit_strategy
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.reliability.kafka_load import stored
from tests.services import running

ROOT = Path(__file__).parents[2]

ZOMBIE = """
import sys
from queuecore.errors import QueueError
from queuecore.providers.kafka import KafkaProvider
from queuecore.topics import TopicPartitionInfo

servers, topic, group = sys.argv[1:]
info = TopicPartitionInfo(topic)
consumer = KafkaProvider(servers).consumer(group)
consumer.subscribe([info])
while not (records := consumer.poll(100)):
    pass
print("polled", flush=True)
sys.stdin.readline()
try:
    consumer.commit({info.place: records[-1].offset + 1})
    print("committed", flush=True)
except QueueError as error:
    print(error.code, flush=True)
"""


@pytest.fixture
def provider(kafka_service: KafkaService) -> Iterator[KafkaProvider]:
    with closing(KafkaProvider(kafka_service.bootstrap_servers)) as provider:
        yield provider


@pytest.mark.full
def test_a_displaced_consumers_commit_is_refused(provider: KafkaProvider, kafka_service: KafkaService) -> None:
    info, group = TopicPartitionInfo(f"zombie-{uuid4().hex[:12]}"), f"zombie-{uuid4().hex[:12]}"
    place = info.place
    provider.admin().create_topics([TopicSpec(place.topic)])
    for number in range(3):
        send_and_wait(provider.producer(), info, QueueMessage(None, b"%d" % number), DEADLINE_S)
    successor = provider.consumer(group)
    command = [sys.executable, "-c", ZOMBIE, kafka_service.bootstrap_servers, place.topic, group]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as zombie:
        try:
            assert zombie.stdout is not None
            assert zombie.stdout.readline() == "polled\n"
            os.kill(zombie.pid, signal.SIGSTOP)
            successor.subscribe([info])
            wait_until(lambda: successor.poll(100))
            successor.commit({place: 1})
            os.kill(zombie.pid, signal.SIGCONT)
            answer, _ = zombie.communicate("commit\n", timeout=DEADLINE_S)
            assert answer == "not_owner\n"
        finally:
            successor.stop()
            zombie.kill()
    assert provider.admin().committed_offsets({group: [place]}) == {group: {place: 1}}


HOST = """
import sys
from queuecore.consuming import consumption
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import ConsumerOptions
from queuecore.topics import TopicPartitionInfo

servers, topic, session_ms = sys.argv[1:]

def handle(record, context):
    print("handling", flush=True)
    sys.stdin.readline()

def stand_by(provider, plan, stopping):
    print("stands by", flush=True)
    stopping.wait()

consumption.stand_by = stand_by
provider = KafkaProvider(servers, consuming=ConsumerOptions(session_timeout_ms=int(session_ms)))
plan = ConsumptionPlan(topic, topic, (TopicPartitionInfo(topic, 0),), "print", member_id="the-only")
consuming = consumption.Consumption(plan, provider, handle)
consuming.start()
consuming.ended.wait()
"""


@pytest.mark.full
def test_the_next_owner_of_a_partition_waits_for_no_session_to_end(kafka_service: KafkaService) -> None:
    # Nobody here waits for so long.
    consuming = ConsumerOptions(session_timeout_ms=int(5 * DEADLINE_S * 1000))
    info, handled = TopicPartitionInfo(f"zombie-{uuid4().hex[:12]}", 0), list[bytes]()
    plan = ConsumptionPlan(
        info.topic, info.topic, (info,), "note", submit=submit_strategy("SEQUENTIAL"), member_id="the-only"
    )
    servers = kafka_service.bootstrap_servers
    command = [sys.executable, "-c", HOST, servers, info.topic, str(consuming.session_timeout_ms)]
    with closing(KafkaProvider(servers, consuming=consuming)) as provider:
        provider.admin().create_topics([TopicSpec(info.full_topic_name)])
        for number in range(3):
            send_and_wait(provider.producer(), info, QueueMessage(None, b"%d" % number), DEADLINE_S)
        successor = Consumption(plan, provider, lambda record, context: handled.append(record.data))
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as zombie:
            try:
                assert zombie.stdout is not None
                assert zombie.stdout.readline() == "handling\n"
                os.kill(zombie.pid, signal.SIGSTOP)
                successor.start()
                wait_until(lambda: successor.counts.handled == 3)
                os.kill(zombie.pid, signal.SIGCONT)
                assert zombie.stdin is not None
                zombie.stdin.write("\n" * 3)
                zombie.stdin.flush()
                said = iter(zombie.stdout.readline, "")
                assert "stands by\n" in said
            finally:
                zombie.kill()
                assert successor.stop(DEADLINE_S)
        assert handled == [b"0", b"1", b"2"]
        assert provider.admin().committed_offsets({plan.group: [info.place]}) == {plan.group: {info.place: 3}}


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[KafkaService]:
    yield from running(KafkaService(tmp_path / "kafka", ephemeral=True))


@contextmanager
def silent(broker: KafkaService) -> Iterator[None]:
    assert broker.pid is not None
    os.killpg(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(broker.pid, signal.SIGCONT)


@pytest.mark.full
def test_nobody_waits_for_a_silent_broker_and_all_goes_on_when_it_is_back(own_broker: KafkaService) -> None:
    info = TopicPartitionInfo("silence")
    hasty = KafkaOptions(request_timeout_ms=2_000, delivery_timeout_ms=2_000)
    with closing(KafkaProvider(own_broker.bootstrap_servers, kafka=hasty)) as provider:
        provider.admin().create_topics([TopicSpec(info.full_topic_name)])
        leaving, staying = provider.consumer("leaving"), provider.consumer("staying")
        for consumer in (leaving, staying):
            consumer.subscribe([info])
        send_and_wait(provider.producer(), info, QueueMessage(None, b"before"), DEADLINE_S)
        for consumer in (leaving, staying):
            wait_until(lambda one=consumer: one.poll(100))
        # Silent until the block ends: who waits for the broker never gets there.
        with silent(own_broker):
            for consumer in (leaving, staying):
                with pytest.raises(ProviderUnavailable, match="check that the brokers run"):
                    consumer.commit()
                assert consumer.poll(10) == []
            with pytest.raises(ProviderUnavailable):
                send_and_wait(provider.producer(), info, QueueMessage(None, b"lost"), DEADLINE_S)
            leaving.stop()
        found: list[bytes] = []

        def heard_again() -> bool:
            with suppress(ProviderUnavailable):
                send_and_wait(provider.producer(), info, QueueMessage(None, b"after"), DEADLINE_S)
            found.extend(record.data for record in staying.poll(100))
            return b"after" in found

        wait_until(heard_again)
        staying.commit()
        staying.stop()
        assert provider.admin().committed_offsets({"staying": [info.place]})["staying"][info.place] > 1


def begun(producer: TransactionalProducer) -> Transaction:
    """The next transaction, once the broker answers."""

    def begin() -> Transaction | None:
        with suppress(ProviderUnavailable):
            return producer.begin()
        return None

    transaction = wait_until(begin)
    assert transaction is not None
    return transaction


@pytest.mark.full
def test_nobody_waits_for_a_silent_broker_and_transactions_go_on_when_it_is_back(own_broker: KafkaService) -> None:
    info = TopicPartitionInfo("silence")
    hasty = KafkaOptions(request_timeout_ms=5_000, delivery_timeout_ms=5_000)
    reading_all = ConsumerOptions(isolation="read_uncommitted")
    with closing(KafkaProvider(own_broker.bootstrap_servers)) as patient:
        # The first makes the broker create the topic that it keeps transactions in.
        patient.transactional_producer("first").stop()
    with closing(KafkaProvider(own_broker.bootstrap_servers, kafka=hasty, consuming=reading_all)) as provider:
        provider.admin().create_topics([TopicSpec(info.full_topic_name)])
        unsent, in_doubt = (provider.transactional_producer(name) for name in ("unsent", "in doubt"))
        for producer in (unsent, in_doubt):
            with producer.begin() as transaction:
                transaction.send(info, QueueMessage(None, b"before"))
        doubtful = in_doubt.begin()
        doubtful.send(info, QueueMessage(None, b"in doubt"))
        wait_until(lambda: b"in doubt" in stored(provider, [info]))
        lost = unsent.begin()
        # Silent until the block ends: who waits for the broker never gets there.
        with silent(own_broker):
            with pytest.raises(ProviderUnavailable, match="may have taken effect"):
                doubtful.commit()
            lost.send(info, QueueMessage(None, b"unsent"))
            with pytest.raises(ProviderUnavailable, match="check that the brokers run"):
                lost.commit()
            for producer in (unsent, in_doubt):
                with pytest.raises(ProviderUnavailable):
                    producer.begin()
            with pytest.raises(ProviderUnavailable):
                provider.transactional_producer("late")
        for producer in (unsent, in_doubt):
            with begun(producer) as transaction:
                transaction.send(info, QueueMessage(None, b"after"))
            producer.stop()
    with closing(KafkaProvider(own_broker.bootstrap_servers)) as provider:
        found = Counter(stored(provider, [info]))
    assert found.pop(b"in doubt", 1) == 1
    assert found == {b"before": 2, b"after": 2}
