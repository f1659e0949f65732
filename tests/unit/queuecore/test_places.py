"""Which partition a record comes from."""

from queuecore.consuming.places import are_together, place_of
from queuecore.messages import NO_HEADERS, Record
from queuecore.topics import ProviderPartition

FIRST, SECOND = ProviderPartition("orders.0", 0), ProviderPartition("orders.1", 0)


def record(offset: int, place: ProviderPartition = FIRST) -> Record:
    return Record(place.topic, place.partition, offset, 0, None, NO_HEADERS, b"")


def test_a_record_knows_its_partition() -> None:
    assert place_of(record(1, SECOND)) == SECOND


def test_records_are_together_in_one_partition() -> None:
    assert are_together(record(1), record(2))
    assert not are_together(record(1), record(2, SECOND))
    assert not are_together(record(1), record(2, ProviderPartition(FIRST.topic, 1)))


def test_those_of_one_batch_need_not_be_asked() -> None:
    source = record(0)[4]
    first, second = (tuple.__new__(Record, (offset, 0, b"", 0, source)) for offset in (1, 2))
    assert are_together(first, second)
