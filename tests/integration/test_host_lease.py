"""A host and the end of its lease."""

from collections.abc import Iterator, Mapping

import pytest

from queueapi.actions.actor import SYSTEM
from queueapi.actions.queues import create_queue
from queueapi.models import Queue
from queuecore.cluster.agent import ClusterAgent
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.handlers import handler
from queuecore.messages import Record
from workers.host import ConsumerHost


@handler("test.lease")
def handle(record: Record, context: DeliveryContext) -> None: ...


@pytest.fixture
def queue(installation) -> Queue:
    return create_queue(
        SYSTEM, installation.queue.tenant, name="Leased", topic="leased", handler="test.lease", partitions=2
    )


def test_nothing_is_begun_whose_lease_ends_while_it_is_made(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process was suspended there: the guard, which ends what it finds, came before there was anything."""
    host = ConsumerHost("host-1", on_death=lambda _: None)
    names = [str(info) for info in queue.partition_infos()]
    answers: Iterator[Mapping[str, int]] = iter([dict.fromkeys(names, 1), {}])
    monkeypatch.setattr(ClusterAgent, "held", property(lambda _: next(answers, {})))
    host.lease_over()
    host._look()
    made = host._everyone()
    assert len(made) == 2
    assert all(one.is_stopped and one._consumption is None for one in made)
    host._indexing.stop()
