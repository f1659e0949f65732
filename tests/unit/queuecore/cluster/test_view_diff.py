"""What an instance is told, of what happened between two views of its cluster."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from queuecore.cluster.events import (
    NOTHING_SEEN,
    ClusterTopologyChangeEvent,
    Event,
    PartitionChangeEvent,
    ServiceListChangedEvent,
    diff,
    diff_for_all,
)
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.cluster.view import ClusterView, Ownership
from queuecore.routing import QueueKey
from queuecore.topics import ServiceType

ME = "me"
ENGINE = ServiceType.TB_RULE_ENGINE
MAIN, HIGH = QueueKey(ENGINE, "Main"), QueueKey(ENGINE, "High")


def view(version: int, ids: str, **owners: Ownership) -> ClusterView:
    """`Main_0=...`: that partition of that queue."""
    partitions = {name: ClusterPartition(name, ENGINE, name[:-2], int(name[-1])) for name in owners}
    return ClusterView(version, {one: ServiceInfo(one) for one in ids.split()}, partitions, owners)


def held(owner: str | None, epoch: int = 1) -> Ownership:
    return Ownership(owner, epoch, owner)


BEFORE = view(3, "me a b", Main_0=held(ME), Main_1=held("a"), High_0=held("b"))


def test_the_first_view_tells_who_is_there_and_what_is_mine() -> None:
    assert diff(NOTHING_SEEN, BEFORE, ME) == [
        ServiceListChangedEvent(3, ME, ("a", "b")),
        PartitionChangeEvent(3, ME, {"Main_0": 1}),
    ]


def test_who_has_nothing_at_first_is_told_of_no_change() -> None:
    assert diff(NOTHING_SEEN, BEFORE, "c") == [ServiceListChangedEvent(3, "c", ("a", "b", "me"))]


def test_nothing_changed() -> None:
    assert diff(BEFORE, replace(BEFORE, version=4), ME) == []


def test_a_view_that_is_not_newer_says_nothing() -> None:
    after = view(3, "me", Main_0=held("a"))
    assert diff(BEFORE, after, ME) == diff(BEFORE, replace(after, version=2), ME) == []


def test_a_partition_comes_from_another() -> None:
    after = view(4, "me a b", Main_0=held(ME), Main_1=held(ME, 2), High_0=held("b"))
    assert diff(BEFORE, after, ME) == [
        ClusterTopologyChangeEvent(4, frozenset({MAIN})),
        PartitionChangeEvent(4, ME, {"Main_0": 1, "Main_1": 2}),
    ]


def test_a_partition_is_taken_away() -> None:
    after = view(4, "me a b", Main_0=held(None, 1), Main_1=held("a"), High_0=held("b"))
    assert diff(BEFORE, after, ME) == [PartitionChangeEvent(4, ME, {}, frozenset({"Main_0"}))]


def test_a_partition_that_is_planned_for_another_is_still_mine() -> None:
    after = replace(BEFORE, version=4, owners={**BEFORE.owners, "Main_0": Ownership(ME, 1, "a")})
    assert diff(BEFORE, after, ME) == []


def test_a_new_epoch_of_my_own_is_a_change_and_of_others_is_none() -> None:
    mine = replace(BEFORE, version=4, owners={**BEFORE.owners, "Main_0": held(ME, 2)})
    assert diff(BEFORE, mine, ME) == [PartitionChangeEvent(4, ME, {"Main_0": 2})]
    theirs = replace(BEFORE, version=4, owners={**BEFORE.owners, "Main_1": held("a", 2)})
    assert diff(BEFORE, theirs, ME) == []


def test_others_exchange_partitions() -> None:
    after = view(4, "me a b", Main_0=held(ME), Main_1=held("a"), High_0=held("a", 2))
    assert diff(BEFORE, after, ME) == [ClusterTopologyChangeEvent(4, frozenset({HIGH}))]


def test_a_queue_of_others_goes() -> None:
    after = view(4, "me a b", Main_0=held(ME), Main_1=held("a"))
    assert diff(BEFORE, after, ME) == [ClusterTopologyChangeEvent(4, frozenset({HIGH}))]


def test_a_service_without_partitions_comes() -> None:
    after = replace(BEFORE, version=4, services={**BEFORE.services, "c": ServiceInfo("c")})
    assert diff(BEFORE, after, ME) == [
        ServiceListChangedEvent(4, ME, ("a", "b", "c")),
        ClusterTopologyChangeEvent(4, frozenset()),
    ]


def test_a_service_that_is_of_other_types_since_its_restart() -> None:
    core = ServiceInfo("a", (ServiceType.TB_CORE,))
    after = replace(BEFORE, version=4, services={**BEFORE.services, "a": core})
    assert diff(BEFORE, after, ME) == [ServiceListChangedEvent(4, ME, ("a", "b"))]


ids = st.sampled_from(["me", "a", "b", "c"])
names = st.sampled_from(["Main_0", "Main_1", "Main_2", "High_0", "High_1"])
ownerships = st.builds(Ownership, st.one_of(st.none(), ids), st.integers(1, 3), st.one_of(st.none(), ids))
views = st.lists(
    st.builds(
        lambda present, owners: view(1, " ".join(sorted(present | {ME})), **owners),
        st.sets(ids),
        st.dictionaries(names, ownerships),
    ),
    max_size=8,
).map(lambda found: [replace(one, version=number) for number, one in enumerate(found, 1)])


def apply(event: Event, known: dict[str, object]) -> None:
    match event:
        case ServiceListChangedEvent(_, current, others):
            known["services"] = {current, *others}
        case PartitionChangeEvent(_, _, partitions, removed):
            before = known["mine"]
            assert isinstance(before, dict)
            assert before.keys() - partitions.keys() == removed
            known["mine"] = dict(partitions)


def owner_of(one: ClusterView, name: str) -> str | None:
    owner = one.owners[name].owner if name in one.owners else None
    return None if owner == ME else owner


@given(views)
def test_who_hears_all_events_knows_what_the_last_view_says(history: list[ClusterView]) -> None:
    known: dict[str, object] = {"services": set(), "mine": {}}
    before = NOTHING_SEEN
    for after in history:
        told = diff(before, after, ME)
        assert len({type(event) for event in told}) == len(told)
        assert {event.sequence for event in told} <= {after.version}
        for event in told:
            apply(event, known)
        assert known["services"] == set(after.services)
        assert known["mine"] == {name: one.epoch for name, one in after.owners.items() if one.owner == ME}
        before = after


@given(views)
def test_the_topology_names_just_the_queues_whose_partitions_others_exchanged(history: list[ClusterView]) -> None:
    for before, after in pairwise(history):
        moved = {
            QueueKey(ENGINE, name[:-2])
            for name in before.owners.keys() | after.owners.keys()
            if owner_of(before, name) != owner_of(after, name)
        }
        told = [event for event in diff(before, after, ME) if isinstance(event, ClusterTopologyChangeEvent)]
        if moved or before.services.keys() != after.services.keys():
            assert told == [ClusterTopologyChangeEvent(after.version, frozenset(moved))]
        else:
            assert told == []


@given(views)
def test_what_all_are_told_is_what_each_would_find(history: list[ClusterView]) -> None:
    for before, after in pairwise(history):
        told = diff_for_all(before, after)
        assert {one: told.get(one, []) for one in after.services} == {
            one: diff(before, after, one) for one in after.services
        }
    for first in history[:1]:
        assert diff_for_all(NOTHING_SEEN, first) == {}
