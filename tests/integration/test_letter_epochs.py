"""Letters of consumers that had lost their partition are refused, and counted."""

import pytest

from queueapi import runtime
from queueapi.actions.letter_index import index_letters
from queueapi.models import DeadLetter, LetterEpoch
from queuecore.deadletter.envelope import PREFIX
from queuecore.messages import Record

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def write(installation):
    """Enter letters with these epochs, the first at the next offset of the dead-letter topic."""
    offsets = iter(range(1000))

    def make(epoch: int | None, topic: str, partition: int) -> Record:
        headers = {f"{PREFIX}queue.id": str(installation.queue.id).encode(), f"{PREFIX}topic": topic.encode()}
        if epoch is not None:
            headers[f"{PREFIX}epoch"] = b"%d" % epoch
        return Record("telemetry.dlq", partition, next(offsets), 0, None, headers, b"data")

    def write(*epochs: int | None, topic: str = "telemetry.0", partition: int = 0) -> int:
        records = [make(epoch, topic, partition) for epoch in epochs]
        return index_letters(records[::-1], runtime.provider().reader())

    return write


def known() -> dict[tuple[str, int], tuple[int, int]]:
    return {(row.topic, row.partition): (row.epoch, row.refused) for row in LetterEpoch.objects.all()}


def test_a_letter_of_an_older_epoch_is_refused_and_counted(write, caplog) -> None:
    assert write(3, 5, 4, 5) == 3
    assert write(4, 6) == 1
    assert sorted(DeadLetter.objects.values_list("epoch", flat=True)) == [3, 5, 5, 6]
    assert known() == {("telemetry.0", 0): (6, 2)}
    assert "it came with epoch 4 after one with 5, from a consumer that had lost its partition" in caplog.text


def test_each_partition_has_epochs_of_its_own(write) -> None:
    assert write(9) == write(2, topic="telemetry.1", partition=1) == write(3, topic="other.0") == 1
    assert known() == {("telemetry.0", 0): (9, 0), ("telemetry.1", 1): (2, 0), ("other.0", 0): (3, 0)}


def test_letters_without_an_epoch_are_entered_as_ever(write) -> None:
    assert write(None, 7, None) == 3
    assert write(None) == 1
    assert known() == {("telemetry.0", 0): (7, 0)}
