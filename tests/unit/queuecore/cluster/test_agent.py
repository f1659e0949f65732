"""An instance's life in its cluster, with threads and short leases."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from queuecore.cluster.agent import ClusterAgent
from queuecore.cluster.coordinator import Coordinator
from queuecore.cluster.events import PartitionChangeEvent, ServiceListChangedEvent
from queuecore.cluster.memory_store import MemoryStore
from queuecore.cluster.options import ClusterOptions
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.errors import StoreUnavailable, Superseded
from queuecore.testing.waiting import wait_until

OPTIONS = ClusterOptions(lease_s=1.0, coordinator_lease_s=0.5, look_every_s=0.02, debounce_s=0.05)
PARTITIONS = [ClusterPartition(f"orders.{number}", queue="Orders", number=number) for number in range(4)]


class CutOffStore:
    """A store that one instance can be cut off from."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.is_cut_off = False

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if self.is_cut_off:
                raise StoreUnavailable("the store cannot be reached; mend that")
            return getattr(self._store, name)(*args, **options)

        return call


class Host:
    """Consumes at once what it gets, and stops at once when told to, unless it is `slow`."""

    def __init__(self, store: MemoryStore, name: str, *, slow: bool = False) -> None:
        self.cut_off_store = CutOffStore(store)
        self.slow = slow
        self.log: list[str] = []
        self.remaining_s = 0.0
        self.lease_when_over = 1.0
        self.ended = threading.Event()
        self.heard: list[object] = []
        self.agent = ClusterAgent(
            self.cut_off_store,  # type: ignore[arg-type]
            ServiceInfo(name),
            self,
            host="here",
            pid=1,
            options=OPTIONS,
            coordinator=Coordinator(self.cut_off_store, lambda: PARTITIONS, OPTIONS),  # type: ignore[arg-type]
        )
        for kind in (PartitionChangeEvent, ServiceListChangedEvent):
            self.agent.events.listen(kind, self.heard.append)

    def holdings_changed(self) -> None:
        if not self.slow:
            self.agent.release(self.agent.leaving)

    def lease_ending(self, remaining_s: float) -> None:
        self.log.append("ending")
        self.remaining_s = remaining_s

    def lease_over(self) -> None:
        self.log.append("over")
        self.lease_when_over = self.agent.lease_remaining_s

    def superseded(self, error: Superseded) -> None:
        self.log.append("superseded")
        self.ended.set()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def start(store: MemoryStore) -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def start(name: str, **options: Any) -> Host:
        host = Host(store, name, **options)
        hosts.append(host)
        host.agent.start()
        return host

    yield start
    for host in hosts:
        host.cut_off_store.is_cut_off = False
        host.agent.stop()


def test_instances_share_what_there_is(start) -> None:
    a = start("a")
    wait_until(lambda: len(a.agent.held) == 4)
    b = start("b")
    wait_until(lambda: (len(a.agent.held), len(b.agent.held)) == (2, 2))
    assert not a.agent.held.keys() & b.agent.held.keys()
    assert min(b.agent.held.values()) > max(a.agent.held.values())
    assert a.agent.is_coordinator
    assert not b.agent.is_coordinator


def test_nothing_is_taken_that_is_not_released(start) -> None:
    a = start("a", slow=True)
    wait_until(lambda: len(a.agent.held) == 4)
    b = start("b")
    leaving = wait_until(lambda: a.agent.leaving)
    assert len(leaving) == 2
    assert b.agent.held == {}
    a.agent.release(leaving)
    wait_until(lambda: b.agent.held.keys() == leaving)


def test_who_leaves_is_followed_at_once(start) -> None:
    a, b = start("a"), start("b")
    wait_until(lambda: (len(a.agent.held), len(b.agent.held)) == (2, 2))
    a.agent.stop()
    wait_until(lambda: len(b.agent.held) == 4 and b.agent.is_coordinator)


def test_who_is_cut_off_stops_before_others_take_over_and_comes_back(start) -> None:
    a, b = start("a"), start("b")
    wait_until(lambda: (len(a.agent.held), len(b.agent.held)) == (2, 2))
    before = dict(a.agent.held)
    a.cut_off_store.is_cut_off = True
    wait_until(lambda: a.log == ["ending", "over"] and a)
    assert a.remaining_s > 0
    # Over for itself, before it is for the others.
    assert a.lease_when_over > 0
    assert a.agent.held == {}
    wait_until(lambda: len(b.agent.held) == 4)
    a.cut_off_store.is_cut_off = False
    wait_until(lambda: (len(a.agent.held), len(b.agent.held)) == (2, 2))
    assert min(a.agent.held.values()) > max(before.values())


def test_a_short_cut_is_not_noticed(start) -> None:
    a = start("a")
    wait_until(lambda: len(a.agent.held) == 4)
    before = dict(a.agent.held)
    a.cut_off_store.is_cut_off = True
    remaining_s = a.agent.lease_remaining_s
    wait_until(lambda: a.agent.lease_remaining_s < remaining_s - 0.2)
    a.cut_off_store.is_cut_off = False
    wait_until(lambda: a.agent.lease_remaining_s > remaining_s - 0.1)
    assert a.agent.held == before


def test_two_of_one_id_do_not_live_beside_each_other(start) -> None:
    first = start("a")
    wait_until(lambda: len(first.agent.held) == 4)
    second = start("a")
    assert first.ended.wait(10)
    wait_until(lambda: len(second.agent.held) == 4)
    assert "superseded" not in second.log
    wait_until(lambda: first.agent.held == {})


def test_who_met_newer_commits_gets_newer_epochs(start) -> None:
    a = start("a")
    wait_until(lambda: len(a.agent.held) == 4)
    a.agent.met_newer({"orders.1": 5_000})
    wait_until(lambda: a.agent.held["orders.1"] > 5_000)


def test_listeners_hear_of_what_changes(start) -> None:
    a = start("a")
    wait_until(lambda: any(isinstance(event, PartitionChangeEvent) for event in a.heard))
    start("b")
    wait_until(lambda: any(isinstance(event, ServiceListChangedEvent) and event.others == ("b",) for event in a.heard))
