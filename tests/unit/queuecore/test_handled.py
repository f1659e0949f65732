"""What a handler is done with, until it is settled."""

import pytest

from queuecore.messages import NO_HEADERS, QueueMessage, Record
from queuecore.queues.handled import Handled, Tray
from queuecore.consuming.places import are_together, ends_of
from queuecore.sending import Addressed
from queuecore.topics import ProviderPartition, TopicPartitionInfo

FIRST, SECOND = ProviderPartition("orders.0", 0), ProviderPartition("orders.1", 0)
SENT = (Addressed(TopicPartitionInfo("invoices", 0), QueueMessage(None, b"")),)


def record(offset: int, place: ProviderPartition = FIRST) -> Record:
    return Record(place.topic, place.partition, offset, 0, None, NO_HEADERS, b"")


def together(*offsets: int) -> list[Record]:
    """Of one batch: they share their source."""
    source = record(0)[4]
    return [tuple.__new__(Record, (offset, 0, b"", 0, source)) for offset in offsets]


class TestTray:
    @pytest.mark.parametrize("records", [together(3, 4, 7), [record(3), record(4), record(7)]])
    def test_what_follows_each_other_is_one_entry(self, records: list[Record]) -> None:
        tray = Tray()
        for one in records:
            tray.add_plain(one)
        assert tray.take() == [Handled(records[-1], count=3)]
        assert tray.take() == []

    def test_what_has_to_be_stored_is_an_entry_of_its_own_in_its_place(self) -> None:
        tray = Tray()
        tray.add_plain(record(0))
        tray.add(Handled(record(1), SENT))
        tray.add_plain(record(2))
        tray.add_plain(record(3))
        assert tray.take() == [Handled(record(0)), Handled(record(1), SENT), Handled(record(3), count=2)]

    def test_each_partition_has_entries_of_its_own(self) -> None:
        tray = Tray()
        for one in (record(0), record(9, SECOND), record(1)):
            tray.add_plain(one)
        assert tray.take() == [Handled(record(0)), Handled(record(9, SECOND)), Handled(record(1))]

    def test_what_is_taken_grows_no_more(self) -> None:
        tray = Tray()
        tray.add_plain(record(0))
        taken = tray.take()
        tray.add_plain(record(1))
        assert taken == [Handled(record(0))]
        assert tray.take() == [Handled(record(1))]

    def test_a_partition_that_is_lost_is_forgotten(self) -> None:
        tray = Tray()
        tray.add_plain(record(0))
        tray.add_plain(record(9, SECOND))
        tray.forget([SECOND])
        tray.add_plain(record(10, SECOND))
        assert tray.take() == [Handled(record(0)), Handled(record(10, SECOND))]
        tray.add_plain(record(1))
        tray.forget(None)
        assert tray.take() == []


def test_the_end_of_each_partition_is_behind_its_last_record() -> None:
    assert ends_of([]) == {}
    assert ends_of([*together(3, 4), record(9, SECOND), record(7), record(10, SECOND)]) == {FIRST: 8, SECOND: 11}


def test_records_are_together_in_one_partition() -> None:
    assert are_together(record(1), record(2))
    assert not are_together(record(1), record(2, SECOND))
    assert not are_together(record(1), record(2, ProviderPartition(FIRST.topic, 1)))
