"""A consumer that was stopped for longer than its session cannot commit over the one that took its place."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.sending import send_and_wait
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo

ROOT = Path(__file__).parents[2]

ZOMBIE = """
import sys
from queuecore.errors import QueueError
from queuecore.providers.base import ProviderPartition
from queuecore.providers.kafka import KafkaProvider
from queuecore.topics import ProviderPartition, TopicPartitionInfo

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
