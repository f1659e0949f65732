"""The coordinator: what it plans, when, and what becomes of it."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from queuecore.cluster.coordinator import Coordinator
from queuecore.cluster.memory_store import MemoryStore
from queuecore.cluster.options import ClusterOptions
from queuecore.cluster.rebalances import Cause, RebalanceState
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.cluster.store import Member
from queuecore.errors import ConfigurationError, NotCoordinator
from queuecore.testing.clock import ManualClock

OPTIONS = ClusterOptions(debounce_s=0.5, rebalance_timeout_s=10)


def partitions(number: int) -> list[ClusterPartition]:
    return [ClusterPartition(f"orders.{index}", queue="Orders", number=index) for index in range(number)]


@dataclass
class Cluster:
    """Instances that do what they are told as soon as they look."""

    clock: ManualClock = field(default_factory=ManualClock)
    there: list[ClusterPartition] | None = field(default_factory=lambda: partitions(6))
    members: dict[str, Member] = field(default_factory=dict)
    stubborn: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.coordinators: dict[str, Coordinator] = {}

    def join(self, *names: str, **options) -> None:
        for name in names:
            service = ServiceInfo(name, **options)
            self.members[name] = self.store.join(service, host="here", pid=1, lease_s=OPTIONS.lease_s)
            self.coordinators[name] = Coordinator(self.store, lambda: self.there, OPTIONS, self.clock)

    def kill(self, name: str) -> None:
        del self.members[name], self.coordinators[name]

    def leave(self, name: str) -> None:
        self.store.leave(self.members[name])
        self.kill(name)

    def step(self, seconds: float = 0.2) -> None:
        self.clock.advance(seconds)
        for name, member in self.members.items():
            self.store.renew(member, OPTIONS.lease_s)
            self.coordinators[name].step(member)
            if name not in self.stubborn:
                self.store.release(member, dict.fromkeys(self.store.holdings(member).leaving, 0.0))
                self.store.take(member)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.2)):
            self.step()

    @property
    def owned(self) -> dict[str, int]:
        """How many each has."""
        owners = self.store.view().owners.values()
        return dict(Counter(owner.owner for owner in owners if owner.owner is not None))

    @property
    def rebalances(self) -> list:
        return list(self.store._state.rebalances.values())


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_what_is_there_is_placed(cluster: Cluster) -> None:
    cluster.join("a", "b", "c")
    cluster.run(2)
    assert cluster.owned == {"a": 2, "b": 2, "c": 2}
    [rebalance] = cluster.rebalances
    assert (rebalance.state, rebalance.cause, rebalance.reason) == (
        RebalanceState.DONE,
        Cause.MEMBERSHIP,
        "a, b, c joined",
    )
    assert (rebalance.moves, rebalance.placements, rebalance.total, rebalance.done) == (0, 6, 6, 6)


def test_only_the_fewest_move_and_nothing_stops_that_does_not(cluster: Cluster) -> None:
    cluster.join("a", "b")
    cluster.run(2)
    epochs = {name: owner.epoch for name, owner in cluster.store.view().owners.items()}
    cluster.join("c")
    cluster.run(2)
    assert cluster.owned == {"a": 2, "b": 2, "c": 2}
    after = cluster.store.view().owners
    assert sum(epochs[name] != after[name].epoch for name in epochs) == 2
    rebalance = cluster.rebalances[-1]
    assert (rebalance.moves, rebalance.placements, len(rebalance.listed)) == (2, 0, 2)
    assert rebalance.pauses_ms is not None
    assert rebalance.balance["before"]["largest_deviation"] == 2
    assert rebalance.balance["after"]["largest_deviation"] == 0


def test_the_dead_ones_partitions_are_consumed_again_after_its_lease(cluster: Cluster) -> None:
    cluster.join("a", "b", "c")
    cluster.run(2)
    cluster.kill("b")
    cluster.run(OPTIONS.lease_s - 1)
    assert cluster.owned == {"a": 2, "b": 2, "c": 2}
    cluster.run(2)
    assert cluster.owned == {"a": 3, "c": 3}
    assert cluster.rebalances[-1].reason == "b left"


def test_who_is_drained_has_not_left(cluster: Cluster) -> None:
    cluster.join("a", "b", "c")
    cluster.run(2)
    cluster.store.set_draining("b", draining=True)
    cluster.run(2)
    assert cluster.rebalances[-1].reason == "b drained"
    cluster.kill("c")
    cluster.run(OPTIONS.lease_s + 1)
    assert cluster.rebalances[-1].reason == "c left"


def test_the_dead_have_been_waited_for_long_enough(cluster: Cluster) -> None:
    cluster.join("a", "b")
    cluster.run(2)
    leader = next(name for name, one in cluster.coordinators.items() if one.is_leading)
    cluster.kill(next(name for name in cluster.members if name != leader))
    while "left" not in cluster.rebalances[-1].reason:
        cluster.step(0.1)
        is_declared_dead = len(cluster.store.view().services) == 1
        assert is_declared_dead == ("left" in cluster.rebalances[-1].reason)


def test_when_the_coordinator_dies_another_takes_over(cluster: Cluster) -> None:
    cluster.join("a", "b", "c")
    cluster.run(2)
    leader = next(name for name, one in cluster.coordinators.items() if one.is_leading)
    cluster.kill(leader)
    cluster.run(OPTIONS.lease_s + OPTIONS.coordinator_lease_s + 1)
    assert sorted(cluster.owned.values()) == [3, 3]
    assert leader not in cluster.owned


def test_a_storm_of_restarts_is_planned_for_once(cluster: Cluster) -> None:
    cluster.join("a", "b", "c")
    cluster.run(2)
    before = len(cluster.rebalances)
    for name in ("a", "b", "c"):
        cluster.leave(name)
        cluster.join(name)
        cluster.step()
    cluster.run(3)
    assert cluster.owned == {"a": 2, "b": 2, "c": 2}
    assert len(cluster.rebalances) == before


def test_coming_and_going_without_end_is_planned_for_all_the_same(cluster: Cluster) -> None:
    cluster.join("a")
    for number in range(20):
        cluster.join(f"b{number}")
        cluster.step(0.2)
    assert cluster.rebalances


def test_who_comes_back_with_its_id_gets_its_own(cluster: Cluster) -> None:
    cluster.join("a", "b")
    cluster.run(2)
    before = {name: owner.owner for name, owner in cluster.store.view().owners.items()}
    cluster.join("a")
    cluster.run(1)
    assert {name: owner.owner for name, owner in cluster.store.view().owners.items()} == before
    assert len(cluster.rebalances) == 1


def test_new_partitions_are_placed_and_removed_ones_released(cluster: Cluster) -> None:
    cluster.join("a", "b")
    cluster.run(2)
    cluster.there = partitions(8)
    cluster.run(2)
    assert cluster.owned == {"a": 4, "b": 4}
    assert (cluster.rebalances[-1].cause, cluster.rebalances[-1].placements) == (Cause.PARTITIONS, 2)
    cluster.there = partitions(2)
    cluster.run(2)
    assert cluster.owned == {"a": 1, "b": 1}


def test_nothing_is_planned_while_it_is_not_known_what_there_is(cluster: Cluster) -> None:
    there, cluster.there = cluster.there, None
    cluster.join("a")
    cluster.run(3)
    assert cluster.owned == {}
    cluster.there = there
    cluster.run(1)
    assert cluster.owned == {"a": 6}
    cluster.there = None
    cluster.run(1)
    assert cluster.owned == {"a": 6}


def test_what_nobody_may_have_is_said_and_placed_when_somebody_may(cluster: Cluster) -> None:
    cluster.there = [*partitions(2), ClusterPartition("maps.0", queue="Maps", label="gpu")]
    cluster.join("a")
    cluster.run(2)
    assert cluster.owned == {"a": 2}
    assert cluster.store.view().unassigned == {"maps.0": "no service of type TB_RULE_ENGINE has the label 'gpu'"}
    cluster.join("b", labels=frozenset({"gpu"}))
    cluster.run(2)
    assert cluster.store.view().owners["maps.0"].owner == "b"
    assert cluster.store.view().unassigned == {}


def test_who_is_drained_gets_nothing(cluster: Cluster) -> None:
    cluster.join("a", "b", "c")
    cluster.run(2)
    cluster.store.set_draining("c", draining=True)
    cluster.run(2)
    assert cluster.owned == {"a": 3, "b": 3}
    cluster.store.set_draining("c", draining=False)
    cluster.run(2)
    assert cluster.owned == {"a": 2, "b": 2, "c": 2}


def test_who_does_not_release_is_waited_for_some_times(cluster: Cluster) -> None:
    cluster.join("a")
    cluster.run(2)
    cluster.stubborn = {"a"}
    cluster.join("b")
    cluster.run(5)
    assert cluster.rebalances[-1].state is RebalanceState.RUNNING
    cluster.run(OPTIONS.rebalance_timeout_s)
    retried = cluster.rebalances[-1]
    assert (retried.state, retried.tries) == (RebalanceState.RETRYING, 2)
    assert retried.error == "3 partitions have not changed hands: a did not release in time"
    cluster.run(OPTIONS.rebalance_timeout_s * 2 + 1)
    failed = cluster.rebalances[-1]
    assert (failed.state, failed.done, failed.total) == (RebalanceState.FAILED, 0, 3)
    cluster.stubborn = set()
    cluster.run(2)
    assert cluster.owned == {"a": 6}
    cluster.store.request_rebalance("as asked", "ann")
    cluster.run(2)
    assert cluster.owned == {"a": 3, "b": 3}
    assert (cluster.rebalances[-1].state, cluster.rebalances[-1].requested_by) == (RebalanceState.DONE, "ann")


def test_a_cancelled_one_leaves_what_has_not_moved(cluster: Cluster) -> None:
    cluster.join("a")
    cluster.run(2)
    cluster.stubborn = {"a"}
    cluster.join("b")
    cluster.run(2)
    cluster.store.cancel_rebalance(cluster.rebalances[-1].id)
    cluster.stubborn = set()
    cluster.run(2)
    assert cluster.rebalances[-1].state is RebalanceState.CANCELLED
    assert cluster.owned == {"a": 6}


def test_one_that_is_asked_for_in_vain_is_done_at_once(cluster: Cluster) -> None:
    cluster.join("a", "b")
    cluster.run(2)
    asked = cluster.store.request_rebalance("to be sure", "ann")
    cluster.run(0.4)
    done = cluster.store.find_rebalance(asked.id)
    assert done is not None
    assert (done.state, done.total) == (RebalanceState.DONE, 0)


def test_when_its_target_dies_it_is_planned_once_more(cluster: Cluster) -> None:
    cluster.join("a")
    cluster.run(2)
    cluster.join("b")
    cluster.stubborn = {"a"}
    cluster.run(2)
    cluster.leave("b")
    cluster.run(2)
    cluster.stubborn = set()
    cluster.run(2)
    assert cluster.owned == {"a": 6}
    assert cluster.rebalances[-1].state is RebalanceState.DONE


def test_what_was_done_before_it_was_planned_once_more_counts(cluster: Cluster) -> None:
    cluster.join("a")
    cluster.run(0.8)
    assert cluster.owned == {"a": 6}
    cluster.join("b")
    cluster.run(3)
    first = cluster.rebalances[0]
    assert first.state is RebalanceState.DONE
    assert first.done == first.total >= 6


def test_one_that_leads_no_longer_changes_nothing(cluster: Cluster) -> None:
    cluster.join("a", "b")
    cluster.run(2)
    leader = next(name for name, one in cluster.coordinators.items() if one.is_leading)
    other = next(name for name in cluster.members if name != leader)
    cluster.clock.advance(OPTIONS.coordinator_lease_s + 1)
    cluster.store.renew(cluster.members[other], OPTIONS.lease_s)
    cluster.coordinators[other].step(cluster.members[other])
    with pytest.raises(NotCoordinator):
        cluster.store.bury(1)
    cluster.store.renew(cluster.members[leader], OPTIONS.lease_s)
    cluster.coordinators[leader].step(cluster.members[leader])
    assert not cluster.coordinators[leader].is_leading


@pytest.mark.parametrize("wrong", [{"lease_s": 0}, {"look_every_s": 2.0}, {"rebalance_tries": 0}])
def test_options_that_cannot_work_are_refused(wrong) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        ClusterOptions(**wrong)
