"""What a listener raises does not go through the library, which would lose the records it has at hand."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, TopicPartition

from queuecore.providers.kafka.assignment import Assignment
from queuecore.providers.kafka.intake import Intake
from queuecore.testing.contract.kit import Heard
from queuecore.topics import ProviderPartition

PLACE = ProviderPartition("topic", 0)
GIVEN = [TopicPartition(*PLACE)]


class Broken(Heard):
    def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
        super().assigned(partitions)
        raise RuntimeError("assigned")

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        super().revoked(partitions)
        raise RuntimeError("revoked")

    def lost(self, partitions: frozenset[ProviderPartition]) -> None:
        super().lost(partitions)
        raise RuntimeError("lost")


@pytest.fixture
def client() -> Iterator[Consumer]:
    """One that reaches nobody."""
    with closing(Consumer({"group.id": "group", "bootstrap.servers": "127.0.0.1:1", "log_level": 0})) as client:
        yield client


@pytest.fixture
def assignment() -> Assignment:
    return Assignment("group", None, Intake(10, 100), Broken(), incremental=False)


def test_what_a_listener_raises_is_kept(client: Consumer, assignment: Assignment) -> None:
    assignment.assigned(client, GIVEN)
    assert (assignment.held, assignment.is_telling) == ({PLACE}, False)
    with pytest.raises(RuntimeError, match="assigned"):
        assignment.raise_trouble()
    assignment.raise_trouble()
    assignment.revoked(client, GIVEN)
    assert (assignment.held, client.assignment()) == (set(), [])
    with pytest.raises(RuntimeError, match="revoked"):
        assignment.raise_trouble()


def test_the_first_is_told_where_there_are_more(client: Consumer, assignment: Assignment) -> None:
    assignment.assigned(client, GIVEN)
    assignment.lost(client, GIVEN)
    with pytest.raises(RuntimeError, match="assigned"):
        assignment.raise_trouble()
    assignment.raise_trouble()
