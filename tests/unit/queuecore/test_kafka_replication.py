"""Which brokers get the copies of a Kafka topic's partitions."""

from queuecore.providers.kafka.replication import spread
from queuecore.topics import ProviderPartition

A, B, C = (ProviderPartition("topic", number) for number in range(3))
NO_RACKS = {1: "", 2: "", 3: "", 4: ""}


def test_those_that_have_copies_keep_them_and_the_load_is_even() -> None:
    now = {A: [1], B: [2], C: [1]}
    wanted = spread(now, {"topic": 2}, NO_RACKS)
    assert {place: brokers[0] for place, brokers in wanted.items()} == {A: 1, B: 2, C: 1}
    assert sorted(broker for brokers in wanted.values() for broker in brokers) == [1, 1, 2, 2, 3, 4]


def test_a_copy_goes_to_a_rack_without_one() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    assert spread({A: [1]}, {"topic": 3}, racks) == {A: [1, 3, 5]}
    assert spread({A: [1]}, {"topic": 4}, racks) == {A: [1, 3, 5, 2]}


def test_a_broker_that_is_away_keeps_its_copy_and_gets_no_other() -> None:
    assert spread({A: [9, 1], B: [1]}, {"topic": 2}, {1: "", 2: ""}) == {A: [9, 1], B: [1, 2]}


def test_of_fewer_copies_the_first_stay() -> None:
    other = ProviderPartition("other", 0)
    assert spread({A: [3, 1, 2], other: [2, 3]}, {"topic": 1, "other": 1}, NO_RACKS) == {A: [3], other: [2]}
