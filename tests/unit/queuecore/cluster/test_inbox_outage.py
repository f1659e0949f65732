"""An inbox outlives what happens to its provider."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from queuecore.cluster.notifications import NotificationInbox, Notifier, notification
from queuecore.cluster.services import ServiceInfo
from queuecore.errors import ProviderUnavailable
from queuecore.messages import Record
from queuecore.providers.base import QueueConsumer
from queuecore.providers.memory import MemoryProvider
from queuecore.testing.waiting import DEADLINE_S, wait_until

ME = ServiceInfo("core-1")


class Failing(MemoryProvider):
    """Loses its connection with the first poll of each of its first consumers."""

    outages = 2

    def consumer(self, *args: object, **options: object) -> QueueConsumer:
        consumer = super().consumer(*args, **options)  # type: ignore[arg-type]
        if self.outages > 0:
            self.outages -= 1
            consumer.poll = self.fail  # type: ignore[method-assign]
        return consumer

    def fail(self, duration_ms: int) -> list[Record]:
        raise ProviderUnavailable("nobody is there; look at the network")


@pytest.fixture
def provider() -> Iterator[Failing]:
    with closing(Failing()) as provider:
        yield provider


def test_it_joins_again_after_outages(provider: Failing, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[bytes] = []
    inbox = NotificationInbox(provider, ME)
    inbox.listen("test", lambda record: heard.append(record.data))
    with inbox:
        notifier = Notifier(provider.producer(), lambda: {"core-1": ME}, producer_id="core-1")
        notifier.notify("core-1", notification("test", b"1")).result(DEADLINE_S)
        wait_until(lambda: heard == [b"1"])
        assert (provider.outages, inbox.error) == (0, None)
    assert caplog.text.count("nobody is there; look at the network; joins its group again") == 1
