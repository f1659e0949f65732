"""Waking readers in other processes, without anyone looking all the time."""

import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider, bell
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.options import ProducerOptions
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo
from tests.log_partitions import INFO, PLACE, Partition, append
from tests.processes import Child

# Longer than any test runs: who comes back before was woken.
LONG_S = 10 * DEADLINE_S


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    with closing(Partition(tmp_path)) as partition:
        partition.writer().recover()
        yield partition


@pytest.fixture(params=["futex", "no futex"])
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no futex":
        monkeypatch.setattr(bell, "_libc", None)


def wait_for_a_record(parent: Connection, root: Path) -> None:
    with closing(PartitionReader(root, PLACE)) as reader:
        heard = reader.bell.heard()
        assert reader.read(0, 1) == []
        parent.send("waits")
        reader.bell.wait(heard, LONG_S)
        parent.send([record.data for record in reader.read(0, 1)])


@pytest.mark.usefixtures("_kernel")
def test_a_waiting_reader_in_another_process_is_woken_by_an_append(partition: Partition) -> None:
    with Child(wait_for_a_record, partition.root) as child, Child(wait_for_a_record, partition.root) as other:
        assert [child.hear(), other.hear()] == ["waits", "waits"]
        append(partition.writer(), "first")
        assert [child.hear(), other.hear()] == [[b"first"], [b"first"]]


@pytest.mark.usefixtures("_kernel")
def test_a_bell_that_rang_before_the_wait_is_not_missed(partition: Partition) -> None:
    reader = partition.reader()
    heard = reader.bell.heard()
    append(partition.writer(), "first")
    reader.bell.wait(heard, LONG_S)
    assert reader.bell.heard() != heard


@pytest.mark.usefixtures("_kernel")
def test_a_wait_ends_when_its_time_is_over(partition: Partition) -> None:
    reader = partition.reader()
    started = time.monotonic()
    reader.bell.wait(reader.bell.heard(), 0.05)
    assert 0.04 < time.monotonic() - started < DEADLINE_S
    reader.bell.wait(reader.bell.heard(), 0)
    reader.bell.wait(reader.bell.heard(), -1)


def test_the_bell_goes_on_ringing_beyond_32_bits(partition: Partition) -> None:
    reader = partition.reader()
    partition.page().bell._word.value = 2**32 - 1
    heard = reader.bell.heard()
    append(partition.writer(), "first")
    assert (heard, reader.bell.heard()) == (2**32 - 1, 0)


def test_a_topic_that_is_deleted_wakes_who_waits_for_it(partition: Partition) -> None:
    reader = partition.reader()
    heard = reader.bell.heard()
    partition.writer().mark_removed()
    reader.bell.wait(heard, LONG_S)


# --- through a provider

MANY = [TopicPartitionInfo("many", number, use_internal_partition=True) for number in range(3)]
FAST = ProducerOptions(acks="1")


def poll(parent: Connection, root: Path, infos: list[TopicPartitionInfo], poll_ms: int) -> None:
    with closing(LogProvider(root)) as provider:
        provider.admin().create_topics([TopicSpec(INFO.full_topic_name), TopicSpec("many", partitions=3)])
        consumer = provider.consumer("group")
        consumer.subscribe(infos)
        while len(consumer.partitions) < len(infos):
            consumer.poll(0)
        parent.send("waits")
        began, used = time.monotonic(), time.process_time()
        records = consumer.poll(poll_ms)
        parent.send(([record.data for record in records], time.monotonic() - began, time.process_time() - used))


@pytest.mark.parametrize("infos", [[INFO], MANY], ids=["one partition", "several"])
@pytest.mark.parametrize("how", ["sent", "committed"])
def test_a_waiting_consumer_gets_what_is_sent_and_what_is_committed(
    tmp_path: Path, infos: list[TopicPartitionInfo], how: str
) -> None:
    with Child(poll, tmp_path, infos, int(LONG_S * 1000)) as child:
        assert child.hear() == "waits"
        with closing(LogProvider(tmp_path, FAST)) as provider:
            if how == "sent":
                send_and_wait(provider.producer(), infos[-1], QueueMessage(None, b"new"), DEADLINE_S)
            else:
                with provider.transactional_producer("id").begin() as transaction:
                    transaction.send(infos[-1], QueueMessage(None, b"new"))
            assert child.hear()[0] == [b"new"]


@pytest.mark.parametrize("infos", [[INFO], MANY], ids=["one partition", "several"])
def test_a_consumer_that_waits_takes_next_to_no_processor_time(tmp_path: Path, infos: list[TopicPartitionInfo]) -> None:
    with Child(poll, tmp_path, infos, 1_000) as child:
        assert child.hear() == "waits"
        records, waited_s, used_s = child.hear()
    assert records == []
    assert waited_s >= 0.99
    assert used_s < 0.1, "it looks at the group a few times a second, and at the files not at all"
