"""What is given out of what has been fetched."""

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from queuecore.messages import Record
from queuecore.providers.kafka.intake import Intake
from queuecore.topics import ProviderPartition

NOTHING: frozenset[ProviderPartition] = frozenset()
ZERO = ProviderPartition("topic", 0)


def message(partition: int, offset: int, size: int = 1) -> Message:
    when = (TIMESTAMP_CREATE_TIME, 5)
    return Message(topic="topic", partition=partition, offset=offset, value=bytes(size), timestamp=when)


def offsets(taken: tuple[list[Record], dict[ProviderPartition, int]]) -> list[tuple[int, int]]:
    """Partition and offset of each; what is said to be behind them is behind the last of each partition."""
    records, ends = taken
    assert ends == {ProviderPartition("topic", one.partition): one.offset + 1 for one in records}
    return [(one.partition, one.offset) for one in records]


def test_all_of_it_if_it_fits() -> None:
    intake = Intake(max_records=4, max_partition_bytes=100)
    intake.add([message(0, 0), message(1, 0), message(0, 1)])
    assert (intake.ready(NOTHING), intake.room(NOTHING)) == (3, 1)
    assert offsets(intake.take(NOTHING)) == [(0, 0), (1, 0), (0, 1)]
    assert (intake.take(NOTHING), intake.ready(NOTHING), intake.room(NOTHING)) == (([], {}), 0, 4)


def test_no_more_than_a_pack() -> None:
    intake = Intake(max_records=2, max_partition_bytes=100)
    intake.add([message(0, 0), message(1, 0), message(0, 1)])
    assert intake.room(NOTHING) == 0
    assert offsets(intake.take(NOTHING)) == [(0, 0), (1, 0)]
    assert offsets(intake.take(NOTHING)) == [(0, 1)]


def test_no_more_of_a_partition_than_its_share_and_in_order() -> None:
    intake = Intake(max_records=100, max_partition_bytes=10)
    intake.add([message(0, 0, 6), message(0, 1, 6), message(0, 2, 1), message(1, 0, 10), message(1, 1, 30)])
    assert offsets(intake.take(NOTHING)) == [(0, 0), (1, 0)]
    assert offsets(intake.take(NOTHING)) == [(0, 1), (0, 2), (1, 1)]


def test_what_is_paused_stays() -> None:
    intake = Intake(max_records=2, max_partition_bytes=100)
    intake.add([message(0, 0), message(0, 1), message(1, 0)])
    assert (intake.ready({ZERO}), intake.room({ZERO})) == (1, 1)
    assert offsets(intake.take({ZERO})) == [(1, 0)]
    intake.add([message(0, 2)])
    assert offsets(intake.take(NOTHING)) == [(0, 0), (0, 1)]
    assert offsets(intake.take(NOTHING)) == [(0, 2)]


def test_what_is_taken_away_is_forgotten() -> None:
    intake = Intake(max_records=10, max_partition_bytes=100)
    intake.add([message(0, 0), message(1, 0)])
    intake.drop({ZERO})
    assert offsets(intake.take(NOTHING)) == [(1, 0)]
