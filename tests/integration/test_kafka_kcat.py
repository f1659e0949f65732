"""kcat, a client that is none of ours, reads what we write, and we read what it writes."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from queuecore.messages import TOMBSTONE, QueueMessage, Record
from queuecore.providers.base import Provider, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.sending import send_and_wait
from queuecore.testing.contract.kit import take
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo
from tests.services import require_program

DEVICE = uuid4()

# A message as we see it, and as kcat shows it: key, headers and payload.
SAME = {
    "text": (
        QueueMessage(b"pump", "21 °C".encode(), {"unit": b"C", "note": b""}),
        ("pump", {"unit": "C", "note": ""}, "21 °C"),
    ),
    "a device's": (QueueMessage(DEVICE, b"on"), (str(DEVICE), {}, "on")),
    "without a key": (QueueMessage(None, b"on"), (None, {}, "on")),
    "empty": (QueueMessage(b"pump", b""), ("pump", {}, "")),
    "a tombstone": (QueueMessage.tombstone(DEVICE), (str(DEVICE), {}, None)),
}


class Kcat:
    """kcat on one partition."""

    def __init__(self, servers: str, info: TopicPartitionInfo) -> None:
        topic, partition = info.place
        self._common = ["kcat", "-b", servers, "-t", topic, "-p", str(partition)]

    def read(self) -> list[tuple[Any, ...]]:
        """Key, headers and payload of all messages."""
        lines = self._run("-C", "-o", "beginning", "-e", "-q", "-J").splitlines()
        return [_shown(json.loads(line)) for line in lines]

    def read_raw(self) -> bytes:
        """Sizes and bytes of all keys and payloads."""
        return self._run("-C", "-o", "beginning", "-e", "-q", "-f", "%K=%k %S=%s\n")

    def write(self, payload: bytes, *options: str) -> None:
        """One message, of one line."""
        self._run("-P", *options, payload=payload)

    def _run(self, *options: str, payload: bytes = b"") -> bytes:
        command = [*self._common, *options]
        return subprocess.run(command, input=payload, stdout=subprocess.PIPE, timeout=DEADLINE_S, check=True).stdout


def _shown(message: Mapping[str, Any]) -> tuple[Any, ...]:
    headers = message.get("headers", [])
    return message["key"], dict(zip(headers[::2], headers[1::2], strict=True)), message["payload"]


@pytest.fixture
def provider(kafka_service: KafkaService) -> Iterator[Provider]:
    with closing(KafkaProvider(kafka_service.bootstrap_servers)) as provider:
        yield provider


@pytest.fixture
def info(provider: Provider) -> TopicPartitionInfo:
    """The second of two partitions."""
    info = TopicPartitionInfo(f"kcat-{uuid4().hex[:12]}", 1, use_internal_partition=True)
    provider.admin().create_topics([TopicSpec(info.full_topic_name, partitions=2)])
    return info


@pytest.fixture
def kcat(kafka_service: KafkaService, info: TopicPartitionInfo) -> Kcat:
    require_program("kcat")
    return Kcat(kafka_service.bootstrap_servers, info)


def read(provider: Provider, info: TopicPartitionInfo) -> list[Record]:
    with closing(provider.reader()) as reader:
        return reader.read(info.place, 0, 100)


def test_kcat_reads_what_we_write(provider: Provider, info: TopicPartitionInfo, kcat: Kcat) -> None:
    for message, _ in SAME.values():
        send_and_wait(provider.producer(), info, message, DEADLINE_S)
    assert kcat.read() == [shown for _, shown in SAME.values()]


def test_kcat_reads_bytes_that_are_no_text(provider: Provider, info: TopicPartitionInfo, kcat: Kcat) -> None:
    key, data = bytes([0, 255, 10]), bytes(range(256))
    send_and_wait(provider.producer(), info, QueueMessage(key, data), DEADLINE_S)
    assert kcat.read_raw() == b"3=" + key + b" 256=" + data + b"\n"


def test_we_read_what_kcat_writes(provider: Provider, info: TopicPartitionInfo, kcat: Kcat) -> None:
    kcat.write("21 °C\n".encode(), "-k", "pump", "-H", "unit=C", "-H", "note=")
    kcat.write(b"on\n", "-k", str(DEVICE))
    kcat.write(b"on\n")
    kcat.write(b"pump:\n", "-K", ":", "-Z")
    found = [(record.key, dict(record.headers), record.data) for record in read(provider, info)]
    assert found == [
        (b"pump", {"unit": b"C", "note": b""}, "21 °C".encode()),
        (DEVICE, {}, b"on"),
        (None, {}, b"on"),
        (b"pump", {TOMBSTONE: b""}, b""),
    ]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_we_read_what_kcat_compresses(provider: Provider, info: TopicPartitionInfo, kcat: Kcat, codec: str) -> None:
    kcat.write(b"on\n" * 100, "-z", codec)
    assert [record.data for record in read(provider, info)] == [b"on"] * 100


def test_a_group_of_ours_reads_what_kcat_writes(provider: Provider, info: TopicPartitionInfo, kcat: Kcat) -> None:
    kcat.write(b"one\ntwo\n")
    consumer = provider.consumer("readers-of-kcat")
    try:
        consumer.subscribe([info])
        assert [record.data for record in take(consumer, 2)] == [b"one", b"two"]
    finally:
        consumer.stop()
