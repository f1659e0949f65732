"""Where what handlers sent goes, when that changes meanwhile."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from typing import Any

import pytest

from queuecore import DeliveryContext, Queues, Record
from queuecore.consuming.consumption import Consumption
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.delivery import Delivery
from queuecore.queues.composing import Composer
from queuecore.sending import Addressed
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo


class Moving:
    """A routing by which everything goes to another topic from some time on."""

    def __init__(self) -> None:
        self.target: TopicPartitionInfo | None = None
        self.open = 0
        self.unanswered: list[Future[Any]] = []

    def where(self, addressed: Addressed) -> Addressed:
        assert self.open == 1
        return addressed if self.target is None else addressed._replace(info=self.target)

    def sent(self, stored: "Future[Any]") -> None:
        self.unanswered.append(stored)

    @contextmanager
    def posting(self) -> Iterator["Moving"]:
        self.open += 1
        yield self
        self.open -= 1


@pytest.mark.parametrize("delivery", ["at_most_once", "at_least_once", "exactly_once"])
def test_where_it_goes_is_decided_when_it_is_sent(queues: Queues, delivery: str) -> None:
    """The routing changes between a handler's sending and its end."""
    for name in ("orders", "early", "late"):
        queues.create(name)
    routing = Moving()

    def forward(record: Record, context: DeliveryContext) -> None:
        context.send("early", record.key, record.data)
        routing.target = TopicPartitionInfo("late", 0)

    for data in (b"1", b"2"):
        queues.publish("orders", "one", data).result(DEADLINE_S)
    plan = ConsumptionPlan("orders", "g", (TopicPartitionInfo("orders", 0),), "handler", delivery=Delivery(delivery))
    consumption = Consumption(
        plan, queues.provider, forward, composer=Composer(queues._directory, "me"), routing=routing
    )
    consumption.start()
    with closing(queues.provider.reader()) as reader:
        late = TopicPartitionInfo("late", 0).place
        wait_until(lambda: [one.data for one in reader.read(late, 0, 10)] == [b"1", b"2"])
        assert consumption.stop(DEADLINE_S)
        assert reader.read(TopicPartitionInfo("early", 0).place, 0, 10) == []
    assert routing.open == 0
    assert all(stored.done() for stored in routing.unanswered)
