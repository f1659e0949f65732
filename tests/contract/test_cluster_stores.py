"""What every store of a cluster promises: who is there, who leads, and who has what under which epoch."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import F

from queueapi.cluster import models
from queueapi.cluster.store import DatabaseStore
from queuecore.cluster.memory_store import MemoryStore
from queuecore.cluster.rebalances import Cause, Rebalance, RebalanceState
from queuecore.cluster.services import ClusterPartition, Move, ServiceInfo
from queuecore.cluster.store import ClusterStore, Member
from queuecore.errors import LeaseLost, NotCoordinator, Superseded, UnknownRebalance, UnknownService
from queuecore.testing.clock import ManualClock
from queuecore.topics import ServiceType
from tests.databases import on_database

pytestmark = pytest.mark.django_db(transaction=True)

LEASE_S = 10.0
NAMES = ("orders.0", "orders.1", "orders.2")
PARTITIONS = [ClusterPartition(name, queue="Orders", number=number) for number, name in enumerate(NAMES)]


@dataclass
class Kit:
    """A store, and time that passes when told to."""

    store: ClusterStore
    pass_time: Callable[[float], None]

    def join(self, name: str, **options) -> Member:
        return self.store.join(ServiceInfo(name, **options), host="here", pid=1, lease_s=LEASE_S)

    def lead(self, member: Member) -> int:
        term = self.store.lead(member, LEASE_S)
        assert term is not None
        return term

    def assign(self, term: int, **targets: str | None) -> None:
        """Of partitions by their numbers, as `p0="a"`."""
        self.store.set_partitions(term, PARTITIONS)
        self.store.apply(term, "now", {NAMES[int(key[1:])]: target for key, target in targets.items()}, None)


def _shift(seconds: float) -> None:
    """In a database time has passed where what was written is older."""
    delta = timedelta(seconds=seconds)
    for model, fields in (
        (models.ServiceInstance, ("lease_expires_at", "heartbeat_at", "gone_at")),
        (models.ClusterState, ("coordinator_until",)),
        (models.Partition, ("idle_since",)),
    ):
        model.objects.update(**{field: F(field) - delta for field in fields})


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def kit(request: pytest.FixtureRequest) -> Iterator[Kit]:
    if request.param == "memory":
        clock = ManualClock()
        yield Kit(MemoryStore(clock), clock.advance)
        return
    where = nullcontext() if request.param == "sqlite" else on_database(request.getfixturevalue("postgres_url"))
    with where:
        yield Kit(DatabaseStore(), _shift)
        for model in (models.ClusterState, models.ServiceInstance, models.Partition, models.Rebalance):
            model.objects.all().delete()


def test_an_instance_is_there_with_all_that_it_says_of_itself(kit: Kit) -> None:
    info = ServiceInfo("a", (ServiceType.EDQS,), 2.5, frozenset({"gpu"}), frozenset({"tenant"}))
    before = kit.store.version()
    kit.store.join(info, host="here", pid=7, lease_s=LEASE_S)
    view = kit.store.view()
    assert (view.services, view.draining) == ({"a": info}, frozenset())
    assert view.version == kit.store.version() > before


def test_a_lease_lasts_as_long_as_it_is_renewed(kit: Kit) -> None:
    member = kit.join("a")
    version = kit.store.version()
    for _ in range(3):
        kit.pass_time(LEASE_S * 0.6)
        kit.store.renew(member, LEASE_S)
    assert kit.store.version() == version
    kit.pass_time(LEASE_S * 1.1)
    for use in (kit.store.take, lambda one: kit.store.renew(one, LEASE_S), lambda one: kit.store.lead(one, LEASE_S)):
        with pytest.raises(LeaseLost, match="a has ended"):
            use(member)


def test_who_joins_with_an_id_that_is_taken_supersedes_and_frees(kit: Kit) -> None:
    first = kit.join("a")
    kit.assign(kit.lead(first), p0="a")
    assert kit.store.take(first).keys() == {NAMES[0]}
    second = kit.join("a")
    with pytest.raises(Superseded, match="joined as a;"):
        kit.store.renew(first, LEASE_S)
    with pytest.raises(Superseded):
        kit.store.release(first, {NAMES[0]: 0})
    holdings = kit.store.holdings(second)
    assert (holdings.held, holdings.free) == ({}, {NAMES[0]})
    kit.store.leave(first)
    assert kit.store.take(second)[NAMES[0]] > 0


def test_who_lost_its_lease_does_not_put_out_who_came_in_its_place(kit: Kit) -> None:
    first, info = kit.join("a"), ServiceInfo("a")
    kit.pass_time(LEASE_S * 1.1)
    again = kit.store.join(info, host="here", pid=1, lease_s=LEASE_S, former=first)
    second = kit.join("a")
    for former in (first, again):
        with pytest.raises(Superseded):
            kit.store.join(info, host="here", pid=1, lease_s=LEASE_S, former=former)
    kit.store.renew(second, LEASE_S)
    kit.store.leave(second)
    kit.store.join(info, host="here", pid=1, lease_s=LEASE_S, former=again)


def test_leaving_frees_everything_and_is_remembered(kit: Kit) -> None:
    member = kit.join("a")
    kit.assign(kit.lead(member), p0="a")
    kit.store.take(member)
    kit.store.leave(member)
    kit.store.leave(member)
    kit.pass_time(5)
    assert kit.store.view().services == {}
    assert kit.store.view().owners[NAMES[0]].owner is None
    assert {name: round(ago) for name, ago in kit.store.gone().items()} == {"a": 5}


def test_one_leads_until_its_lease_ends_or_it_resigns(kit: Kit) -> None:
    a, b = kit.join("a"), kit.join("b")
    term = kit.lead(a)
    assert kit.store.lead(b, LEASE_S) is None
    assert kit.store.lead(a, LEASE_S) == term
    kit.pass_time(LEASE_S * 1.1)
    b = kit.join("b")
    second = kit.lead(b)
    assert second > term
    for stale in (
        lambda: kit.store.bury(term),
        lambda: kit.store.forget(term, 0),
        lambda: kit.store.set_partitions(term, PARTITIONS),
        lambda: kit.store.apply(term, "now", {}, None),
        lambda: kit.store.save_rebalance(term, Rebalance("why")),
    ):
        with pytest.raises(NotCoordinator):
            stale()
    kit.store.resign(b)
    a = kit.join("a")
    assert kit.lead(a) > second
    kit.store.leave(a)
    assert kit.lead(b) > second


def test_the_dead_are_buried_and_after_long_forgotten(kit: Kit) -> None:
    a, b = kit.join("a"), kit.join("b")
    term = kit.lead(b)
    kit.assign(term, p0="a", p1="b")
    kit.store.take(a)
    kit.store.take(b)
    kit.pass_time(LEASE_S * 0.7)
    kit.store.renew(b, LEASE_S)
    term = kit.lead(b)
    assert kit.store.bury(term) == ()
    kit.pass_time(LEASE_S * 0.7)
    kit.store.renew(b, LEASE_S)
    term = kit.lead(b)
    assert kit.store.bury(term) == ("a",)
    owners = kit.store.view().owners
    assert (owners[NAMES[0]].owner, owners[NAMES[0]].target, owners[NAMES[1]].owner) == (None, "a", "b")
    with pytest.raises(LeaseLost):
        kit.store.renew(a, LEASE_S)
    assert kit.store.forget(term, 5) == ()
    kit.pass_time(6)
    assert (kit.store.forget(term, 5), kit.store.gone()) == (("a",), {})


def test_a_partition_goes_from_hand_to_hand_under_rising_epochs(kit: Kit) -> None:
    a, b = kit.join("a"), kit.join("b")
    term = kit.lead(a)
    kit.assign(term, p0="a", p1="a", p2="b")
    first = kit.store.take(a)
    assert first.keys() == {NAMES[0], NAMES[1]}
    assert kit.store.take(a) == {}
    kit.store.apply(term, "again", {NAMES[0]: "b"}, None)
    assert kit.store.holdings(a).leaving == {NAMES[0]}
    taken = kit.store.take(b)
    assert taken.keys() == {NAMES[2]}
    kit.store.release(a, {NAMES[0]: 2.5, NAMES[2]: 0, "nothing": 0})
    assert kit.store.holdings(b).free == {NAMES[0]}
    kit.pass_time(1)
    taken |= kit.store.take(b)
    assert taken[NAMES[0]] > max(first.values())
    assert len({*taken.values(), *first.values()}) == 4
    assert kit.store.holdings(b).held == taken
    assert kit.store.holdings(a).held == {NAMES[1]: first[NAMES[1]]}
    [pause] = kit.store.pauses_ms([NAMES[0]])
    assert 3500 <= pause < 4500


def test_an_epoch_that_the_store_has_forgotten_is_outdone(kit: Kit) -> None:
    a, b = kit.join("a"), kit.join("b")
    kit.assign(kit.lead(a), p0="a", p1="b")
    kit.store.take(a)
    kit.store.take(b)
    renewed = kit.store.renew_epochs(a, {NAMES[0]: 1_000, NAMES[1]: 2_000})
    assert renewed == {NAMES[0]: 2_001} == kit.store.holdings(a).held
    assert kit.store.holdings(b).held[NAMES[1]] < 1_000


def test_partitions_that_are_no_longer_there_are_released(kit: Kit) -> None:
    member = kit.join("a")
    term = kit.lead(member)
    kit.assign(term, p0="a", p1="a")
    kit.store.take(member)
    changed = [replace(PARTITIONS[0], label="gpu"), PARTITIONS[2]]
    assert kit.store.set_partitions(term, changed)
    assert not kit.store.set_partitions(term, changed)
    view = kit.store.view()
    assert view.partitions == {one.name: one for one in changed}
    assert kit.store.holdings(member).leaving == {NAMES[1]}
    kit.store.release(member, {NAMES[1]: 0})
    assert kit.store.holdings(member).held.keys() == {NAMES[0]}
    assert kit.store.set_partitions(term, [*changed, PARTITIONS[1]])
    assert kit.store.view().owners[NAMES[1]].target is None


def test_a_partition_that_comes_back_before_it_is_released_stays_with_its_owner(kit: Kit) -> None:
    member = kit.join("a")
    term = kit.lead(member)
    kit.assign(term, p0="a")
    epoch = kit.store.take(member)[NAMES[0]]
    kit.store.set_partitions(term, PARTITIONS[1:])
    kit.store.set_partitions(term, PARTITIONS)
    kit.store.apply(term, "again", {NAMES[0]: "a"}, None)
    holdings = kit.store.holdings(member)
    assert (holdings.held, holdings.leaving) == ({NAMES[0]: epoch}, frozenset())


def test_what_is_drained_is_marked(kit: Kit) -> None:
    kit.join("a")
    kit.store.set_draining("a", draining=True)
    assert kit.store.view().draining == {"a"}
    kit.store.set_draining("a", draining=False)
    assert kit.store.view().draining == frozenset()
    with pytest.raises(UnknownService, match="did you mean 'a'"):
        kit.store.set_draining("aa", draining=True)


def test_who_lost_its_lease_is_drained_still_and_a_new_process_is_not(kit: Kit) -> None:
    first = kit.join("a")
    kit.store.set_draining("a", draining=True)
    kit.pass_time(LEASE_S * 1.1)
    kit.store.bury(kit.lead(kit.join("b")))
    assert kit.store.view().draining == frozenset()
    again = kit.store.join(ServiceInfo("a"), host="here", pid=1, lease_s=LEASE_S, former=first)
    assert kit.store.view().draining == {"a"}
    kit.store.leave(again)
    kit.join("a")
    assert kit.store.view().draining == frozenset()


def test_rebalances_are_kept_and_the_one_under_way_comes_first(kit: Kit) -> None:
    term = kit.lead(kit.join("a"))
    assert kit.store.open_rebalance() is None
    asked = kit.store.request_rebalance("as asked", "ann")
    assert (kit.store.open_rebalance(), asked.state) == (asked, RebalanceState.PLANNED)
    running = Rebalance(
        "a left",
        cause=Cause.MEMBERSHIP,
        state=RebalanceState.RUNNING,
        created_ms=1_700_000_000_000,
        started_ms=1_700_000_000_001,
        tries=1,
        moves=2,
        placements=1,
        total=3,
        done=1,
        error="slow",
        balance={"before": {}},
        listed=(Move(NAMES[0], "a", "b"),),
        pauses_ms=(5, 9),
    )
    kit.store.apply(term, "now", {}, running)
    assert kit.store.open_rebalance() == running == kit.store.find_rebalance(running.id)
    assert kit.store.cancel_rebalance(running.id) == running
    kit.store.save_rebalance(term, replace(running, done=2))
    assert kit.store.find_rebalance(running.id) == replace(running, done=2, is_unwanted=True)
    ended = replace(running, state=RebalanceState.DONE, done=3, finished_ms=1_700_000_000_002)
    kit.store.save_rebalance(term, ended)
    assert kit.store.open_rebalance() == asked
    assert kit.store.find_rebalance(uuid4()) is None
    with pytest.raises(UnknownRebalance):
        kit.store.cancel_rebalance(uuid4())


def test_it_is_said_why_nobody_may_have_a_partition(kit: Kit) -> None:
    term = kit.lead(kit.join("a"))
    kit.assign(term, p0="a")
    kit.store.apply(term, "now", {}, None, {NAMES[1]: "no gpu", NAMES[2]: "no gpu"})
    assert kit.store.view().unassigned == {NAMES[1]: "no gpu", NAMES[2]: "no gpu"}
    kit.store.apply(term, "now", {}, None)
    assert kit.store.view().unassigned.keys() == {NAMES[1], NAMES[2]}
    kit.store.apply(term, "now", {}, None, {NAMES[2]: "nobody is there"})
    assert kit.store.view().unassigned == {NAMES[2]: "nobody is there"}


def test_what_was_planned_for_is_remembered(kit: Kit) -> None:
    term = kit.lead(kit.join("a"))
    assert kit.store.planned_for() == ""
    kit.store.apply(term, "the situation", {}, None)
    assert kit.store.planned_for() == "the situation"
