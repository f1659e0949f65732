"""The only broker is away for a while under load, and all goes on when it is back: nothing has to be restarted."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from queuecore import Queues, Record, open_queues
from queuecore.consuming.draining import Backlog
from queuecore.providers.options import ProducerOptions
from queuecore.testing.services import KafkaService
from queuecore.topics import TopicPartitionInfo
from tests.reliability.kafka_load import Load, Member, Observer, out_of_order, stored, wait_until
from tests.services import running

OUTAGES_S = [pytest.param(8, id="8 s"), pytest.param(60, id="60 s", marks=pytest.mark.full)]
PARTITIONS = 3
INFOS = [TopicPartitionInfo("in", number) for number in range(PARTITIONS)]
PLACES = [info.place for info in INFOS]
# Room for about two seconds of the load; then callers are told at once rather than made to wait.
NARROW = ProducerOptions(buffer_memory=1024 * 1024, max_block_ms=50)
MESSAGE_BYTES = 1_024
PROGRESS = 500
PATIENCE_S = 180.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaService]:
    yield from running(KafkaService(tmp_path / "kafka", ephemeral=True))


@pytest.fixture
def queues(broker: KafkaService) -> Iterator[Queues]:
    with open_queues("kafka", servers=broker.bootstrap_servers, producing=NARROW) as queues:
        queues.create("in", PARTITIONS)
        yield queues


@dataclass
class Readers:
    """What a consumer of the provider's and a subscription were given."""

    by_consumer: list[bytes] = field(default_factory=list)
    by_subscription: list[bytes] = field(default_factory=list)

    def handle(self, record: Record, _context: object) -> None:
        self.by_subscription.append(record.data)

    def progress(self) -> int:
        """Of the one that is behind."""
        return min(len(self.by_consumer), len(self.by_subscription))


@pytest.mark.parametrize("outage_s", OUTAGES_S)
def test_the_broker_is_away_under_load(
    broker: KafkaService, queues: Queues, outage_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "queuecore")
    provider, readers = queues.provider, Readers()
    with (
        Member(provider, "readers", INFOS, readers.by_consumer),
        Observer(lambda: provider.admin().committed_offsets({"readers": PLACES})),
        queues.subscribe("in", readers.handle, group="handlers"),
    ):
        with Load(queues, "in", size=MESSAGE_BYTES) as load:
            wait_until(lambda: readers.progress() >= PROGRESS, PATIENCE_S)
            broker.stop()
            back = time.monotonic() + outage_s
            wait_until(lambda: load.push_backs and time.monotonic() >= back, PATIENCE_S)
            broker.start()
            acknowledged, handled = len(load.acknowledged) + PROGRESS, readers.progress() + PROGRESS
            wait_until(lambda: len(load.acknowledged) >= acknowledged, PATIENCE_S)
            wait_until(lambda: readers.progress() >= handled, PATIENCE_S)
        for group in ("readers", "handlers"):
            wait_until(Backlog(provider, group, PLACES).is_done, PATIENCE_S)

    found = stored(provider, INFOS)
    assert load.refusals == [], "what was buffered is stored when it is over"
    assert load.acknowledged - set(found) == set()
    for seen in (readers.by_consumer, readers.by_subscription):
        assert set(found) - set(seen) == set()
        assert out_of_order(seen) == []
    assert out_of_order(found) == []

    [lost, found_again] = [one for one in caplog.records if one.name == "queuecore.providers.kafka"]
    assert lost.levelno == logging.ERROR
    assert "cannot be reached (" in lost.getMessage()
    assert "what is sent waits" in lost.getMessage()
    assert "is reached again after" in found_again.getMessage()
