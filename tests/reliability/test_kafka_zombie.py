"""Consumers and brokers that fall silent.

A consumer that was stopped for longer than its session cannot commit over the one that took its place. While a broker
is silent nobody waits for it for longer than the timeout, and all goes on when it is back.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore.errors import ProviderUnavailable
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import KafkaOptions
from queuecore.sending import send_and_wait
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
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
    info, timeout_s = TopicPartitionInfo("silence"), 2
    hasty = KafkaOptions(request_timeout_ms=2_000, delivery_timeout_ms=2_000)
    with closing(KafkaProvider(own_broker.bootstrap_servers, kafka=hasty)) as provider:
        provider.admin().create_topics([TopicSpec(info.full_topic_name)])
        leaving, staying = provider.consumer("leaving"), provider.consumer("staying")
        for consumer in (leaving, staying):
            consumer.subscribe([info])
        send_and_wait(provider.producer(), info, QueueMessage(None, b"before"), DEADLINE_S)
        for consumer in (leaving, staying):
            wait_until(lambda one=consumer: one.poll(100))
        with silent(own_broker):
            began = time.monotonic()
            for consumer in (leaving, staying):
                with pytest.raises(ProviderUnavailable, match="check that the brokers run"):
                    consumer.commit()
                assert consumer.poll(10) == []
            with pytest.raises(ProviderUnavailable):
                send_and_wait(provider.producer(), info, QueueMessage(None, b"lost"), DEADLINE_S)
            leaving.stop()
            assert time.monotonic() - began < 10 * timeout_s
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
