"""Whatever happens to a cluster's instances, no partition is ever consumed by two; and once it stops happening, all are
consumed, evenly."""

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from queuecore.cluster.coordinator import Coordinator
from queuecore.cluster.leases import Lease
from queuecore.cluster.memory_store import MemoryStore
from queuecore.cluster.options import ClusterOptions
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.cluster.store import Member
from queuecore.errors import LeaseLost, NotCoordinator
from queuecore.testing.clock import ManualClock

OPTIONS = ClusterOptions(lease_s=10, coordinator_lease_s=5, debounce_s=0.5, rebalance_timeout_s=20)
MOST = 12


@dataclass
class Instance:
    """One life of a service: what it knows of itself, which may be out of date."""

    service: ServiceInfo
    coordinator: Coordinator
    lease: Lease
    member: Member | None = None
    held: dict[str, int] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)
    is_frozen: bool = False
    is_cut_off: bool = False

    @property
    def consumes(self) -> set[str]:
        """What it would hand to handlers if it ran now."""
        return set(self.held) if self.lease.remaining_s > OPTIONS.over_s else set()


class ClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.number = 6
        self.started = 0
        self.instances: dict[str, Instance] = {}
        # Lives that others superseded, and that do not know it.
        self.ghosts: list[Instance] = []
        self.epochs: dict[str, int] = {}

    def partitions(self) -> list[ClusterPartition]:
        return [ClusterPartition(f"p{index}", queue="Q", number=index) for index in range(self.number)]

    @rule(name=st.sampled_from("abcd"), weight=st.sampled_from([1.0, 1.0, 2.0]))
    def start(self, name: str, weight: float) -> None:
        """Also while another life of it is there."""
        if name in self.instances:
            self.ghosts.append(self.instances[name])
        self.instances[name] = Instance(
            ServiceInfo(name, weight=weight),
            Coordinator(self.store, self.partitions, OPTIONS, self.clock),
            Lease(self.clock.monotonic),
        )
        self.turn(self.instances[name])

    @precondition(lambda self: self.instances)
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        del self.instances[data.draw(st.sampled_from(sorted(self.instances)))]

    @precondition(lambda self: self.instances)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        instance = self.instances.pop(data.draw(st.sampled_from(sorted(self.instances))))
        instance.held.clear()
        if instance.member is not None:
            self.store.leave(instance.member)

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), how=st.sampled_from(["is_frozen", "is_cut_off"]))
    def disturb(self, data: st.DataObject, how: str) -> None:
        instance = self.instances[data.draw(st.sampled_from(sorted(self.instances)))]
        setattr(instance, how, not getattr(instance, how))

    @rule(number=st.integers(0, MOST))
    def change_partitions(self, number: int) -> None:
        self.number = number

    @rule()
    def ask_for_a_rebalance(self) -> None:
        self.store.request_rebalance("as asked", "ann")

    @rule()
    def cancel(self) -> None:
        if (rebalance := self.store.open_rebalance()) is not None:
            self.store.cancel_rebalance(rebalance.id)

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), drains=st.booleans())
    def drain(self, data: st.DataObject, drains: bool) -> None:
        alive = sorted(self.store.view().services)
        if alive:
            self.store.set_draining(data.draw(st.sampled_from(alive)), draining=drains)

    @rule(seconds=st.sampled_from([0.1, 0.5, 1, 4, 6, 11]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @precondition(lambda self: self.instances)
    @rule(data=st.data())
    def let_one_act(self, data: st.DataObject) -> None:
        self.turn(self.instances[data.draw(st.sampled_from(sorted(self.instances)))])

    @precondition(lambda self: self.ghosts)
    @rule(data=st.data())
    def let_a_ghost_act(self, data: st.DataObject) -> None:
        self.turn(data.draw(st.sampled_from(self.ghosts)))

    @rule()
    def let_all_act(self) -> None:
        for instance in list(self.instances.values()):
            self.turn(instance)

    def turn(self, instance: Instance) -> None:
        """As the agent has it."""
        if instance.is_frozen or instance.is_cut_off:
            return
        try:
            self.settle(instance)
            if instance.member is not None:
                instance.coordinator.step(instance.member)
        except LeaseLost:
            instance.lease.end()
            instance.member, instance.held, instance.leaving = None, {}, set()
        except NotCoordinator:
            pass

    def settle(self, instance: Instance) -> None:
        now = self.clock.monotonic()
        if instance.member is None:
            if instance in self.ghosts:
                return self.ghosts.remove(instance)
            instance.member = self.store.join(instance.service, host="here", pid=1, lease_s=OPTIONS.lease_s)
        else:
            self.store.renew(instance.member, OPTIONS.lease_s)
        instance.lease.extend(now, OPTIONS.lease_s)
        # Consumed no longer, and then said so.
        for name in instance.leaving:
            instance.held.pop(name, None)
        self.store.release(instance.member, dict.fromkeys(instance.leaving, 0.0))
        self.store.take(instance.member)
        holdings = self.store.holdings(instance.member)
        instance.held, instance.leaving = dict(holdings.held), set(holdings.leaving)
        return None

    @invariant()
    def nothing_is_consumed_by_two(self) -> None:
        """But for a life that was started anew while it was still there: that one is fenced at the provider."""
        consumed = Counter(name for instance in self.instances.values() for name in instance.consumes)
        assert all(number == 1 for number in consumed.values()), consumed

    @invariant()
    def epochs_rise(self) -> None:
        owners = self.store.view().owners
        for name, owner in owners.items():
            assert owner.epoch >= self.epochs.get(name, 0)
        self.epochs = {**self.epochs, **{name: owner.epoch for name, owner in owners.items()}}

    def teardown(self) -> None:
        """Left in peace, it comes to rest: all is consumed, each by its weight."""
        self.ghosts.clear()
        if not self.instances:
            return
        for instance in self.instances.values():
            instance.is_frozen = instance.is_cut_off = False
        for _ in range(60):
            self.clock.advance(2)
            self.let_all_act()
        if self.store.open_rebalance() is None:
            # One that was cancelled left things as they were.
            self.store.request_rebalance("at last", "ann")
        for _ in range(20):
            self.clock.advance(0.5)
            self.let_all_act()
        assert self.store.open_rebalance() is None
        view = self.store.view()
        usable = {name: info for name, info in view.services.items() if name not in view.draining}
        if not usable:
            return
        counts = Counter(owner.owner for owner in view.owners.values())
        total = sum(info.weight for info in usable.values())
        assert set(view.partitions) == {one.name for one in self.partitions()}
        for name, info in usable.items():
            assert abs(counts[name] - self.number * info.weight / total) < 1, (counts, usable)


ClusterMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)
TestCluster = ClusterMachine.TestCase
