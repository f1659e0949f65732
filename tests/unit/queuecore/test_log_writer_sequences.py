"""A producer's batches are numbered: what is sent again is not stored again."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queuecore.errors import OutOfSequence, ProducerFenced
from queuecore.providers.log import sequences
from queuecore.providers.log.batch import Origin
from queuecore.providers.log.writer import PartitionWriter
from tests.log_partitions import Partition, append, batch


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    """Each batch is a segment of its own: what was stored is found in any of them."""
    with closing(Partition(tmp_path, segment_bytes=1)) as partition:
        yield partition


@pytest.fixture
def writer(partition: Partition) -> PartitionWriter:
    return partition.writer()


def send(writer: PartitionWriter, sequence: int, *data: str, producer: int = 7, epoch: int = 0) -> int:
    return append(writer, *data, origin=Origin(producer, epoch, sequence))


def test_a_batch_that_is_sent_again_is_where_it_was(partition: Partition, writer: PartitionWriter) -> None:
    sent = [("a", "b"), ("c",), ("d", "e", "f")]
    assert [send(writer, sequence, *data) for sequence, data in zip((0, 2, 3), sent, strict=True)] == [0, 2, 3]
    assert [send(writer, sequence, *data) for sequence, data in zip((0, 2, 3), sent, strict=True)] == [0, 2, 3]
    assert send(writer, 6, "g") == 6
    assert partition.data() == ["a", "b", "c", "d", "e", "f", "g"]


def test_the_last_five_batches_are_remembered(partition: Partition, writer: PartitionWriter) -> None:
    for sequence in range(6):
        send(writer, sequence, str(sequence))
    assert [send(writer, sequence, str(sequence)) for sequence in range(1, 6)] == [1, 2, 3, 4, 5]
    with pytest.raises(OutOfSequence):
        send(writer, 0, "0")
    assert partition.data() == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("sequence", "data"), [(3, ["gap"]), (0, ["of", "other", "size"]), (1, ["in the middle"])], ids=str
)
def test_a_batch_that_does_not_follow_is_refused(
    partition: Partition, writer: PartitionWriter, sequence: int, data: list[str]
) -> None:
    send(writer, 0, "a", "b")
    with pytest.raises(
        OutOfSequence, match=rf"producer 7 sent sequence {sequence}, expected 2; .*a new producer"
    ) as no:
        send(writer, sequence, *data)
    assert no.value.fields == {"expected": 2}
    assert partition.data() == ["a", "b"]
    assert send(writer, 2, "c") == 2


def test_producers_do_not_get_in_each_others_way(partition: Partition, writer: PartitionWriter) -> None:
    for sequence in range(3):
        for producer in (7, 8):
            send(writer, sequence, f"{producer} {sequence}", producer=producer)
    append(writer, "nobody's")
    append(writer, "nobody's")
    assert send(writer, 2, "8 2", producer=8) == 5
    assert partition.data()[-3:] == ["8 2", "nobody's", "nobody's"]


@pytest.mark.parametrize("torn", [b"", batch(4, "torn")[:-1]], ids=["whole", "torn"])
def test_a_producer_that_comes_back_is_found_in_the_log(partition: Partition, torn: bytes) -> None:
    with closing(Partition(partition.root, segment_bytes=1)) as before:
        for sequence in range(3):
            send(before.writer(), sequence, f"mine {sequence}")
        append(before.writer(), "another's")
    partition.add_bytes(torn)
    again = partition.writer()
    assert send(again, 1, "mine 1") == 1
    assert send(again, 3, "mine 3") == 4
    with pytest.raises(OutOfSequence):
        send(partition.writer(), 9, "too far")
    assert partition.data() == ["mine 0", "mine 1", "mine 2", "another's", "mine 3"]


def test_the_log_is_not_searched_for_a_producer_that_is_new(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        append(partition.writer(), str(number))
    writer = partition.writer()
    writer.recover()
    writer.sequences.is_new(7)
    monkeypatch.setattr(os, "pread", None)
    assert writer.sequences.find(Origin(7, 0, 0), 1) is None


def test_a_producer_whose_batches_retention_removed_goes_on(partition: Partition) -> None:
    for sequence in range(3):
        send(partition.writer(), sequence, str(sequence))
    for path in partition.segments()[:-1]:
        path.unlink()
    assert send(partition.writer(), 3, "3") == 3
    partition.segments()[0].unlink()
    assert send(partition.writer(), 4, "4") == 4


def test_a_segment_that_retention_removes_during_the_search_is_passed_over(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(partition.writer(), 0, "a")
    monkeypatch.setattr(sequences, "segment_bases", lambda _: [0, 1_000])
    assert send(partition.writer(), 0, "a") == 0


def test_a_newer_epoch_begins_anew_and_fences_the_older(partition: Partition, writer: PartitionWriter) -> None:
    send(writer, 0, "old")
    send(writer, 1, "old")
    assert send(writer, 0, "new", epoch=1) == 2
    for one in (writer, partition.writer()):
        with pytest.raises(ProducerFenced, match="producer 7 writes with epoch 0, but epoch 1 was here; stop it"):
            send(one, 2, "old")
    assert send(writer, 0, "new", epoch=1) == 2
    assert partition.data() == ["old", "old", "new"]
