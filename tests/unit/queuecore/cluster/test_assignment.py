"""Plans of who consumes what: what every plan keeps to, whatever the cluster is like."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.cluster.assignment import ASSIGNORS, Assignor, plan
from queuecore.cluster.services import ClusterPartition, Move, ServiceInfo
from queuecore.errors import ConfigurationError
from tests.unit.queuecore.cluster.assignment_kit import (
    Cluster,
    clusters,
    may_have,
    plain_services,
    pools_of,
    queue,
    shares_in,
)


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(cluster=clusters())
def test_each_partition_goes_to_one_that_may_have_it_or_the_plan_says_why_not(
    assignor: Assignor, cluster: Cluster
) -> None:
    made = cluster.plan(assignor)
    alive = {one.service_id: one for one in cluster.services}
    for partition in cluster.partitions:
        if any(may_have(one, partition, cluster.services) for one in cluster.services):
            assert may_have(alive[made.assignment[partition.name]], partition, cluster.services)
            assert partition.name not in made.unassigned
        else:
            assert made.unassigned[partition.name]
            assert partition.name not in made.assignment


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(cluster=clusters(), data=st.data())
def test_the_order_of_what_is_given_does_not_matter(assignor: Assignor, cluster: Cluster, data: st.DataObject) -> None:
    shuffled = Cluster(
        data.draw(st.permutations(cluster.services)),
        data.draw(st.permutations(cluster.partitions)),
        dict(data.draw(st.permutations(list(cluster.current.items())))),
    )
    assert shuffled.plan(assignor) == cluster.plan(assignor)


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(cluster=clusters())
def test_planning_again_from_the_plan_changes_nothing(assignor: Assignor, cluster: Cluster) -> None:
    made = cluster.plan(assignor)
    again = plan(assignor, cluster.services, cluster.partitions, made.assignment)
    assert again.assignment == made.assignment
    assert again.moves == ()
    assert again.before == again.after == made.after


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(cluster=clusters())
def test_moves_are_those_that_had_another_owner(assignor: Assignor, cluster: Cluster) -> None:
    made = cluster.plan(assignor)
    assert list(made.moves) == [
        Move(name, cluster.current[name], made.assignment[name])
        for name in sorted(made.assignment)
        if name in cluster.current and cluster.current[name] != made.assignment[name]
    ]


@given(cluster=clusters())
def test_sticky_gives_every_service_its_share_of_each_pool_to_within_one(cluster: Cluster) -> None:
    assignment = cluster.plan().assignment
    for pool, names in pools_of(cluster).items():
        counts = Counter(assignment[name] for name in names if pool)
        for service, share in shares_in(pool, len(names), cluster).items():
            assert abs(counts[service] - share) < 1


@given(cluster=clusters())
def test_the_balance_counts_what_each_service_has_before_and_after(cluster: Cluster) -> None:
    made = cluster.plan()
    names = {one.name for one in cluster.partitions}
    before = Counter(owner for name, owner in cluster.current.items() if name in names)
    after = Counter(made.assignment.values())
    for balance, counts in ((made.before, before), (made.after, after)):
        assert {service: load.count for service, load in balance.services.items()} == {
            one.service_id: counts[one.service_id] for one in cluster.services
        }
        away = [abs(load.count - load.share) for load in balance.services.values()]
        assert balance.largest_deviation == max(away, default=0)
    assert sum(load.share for load in made.after.services.values()) == pytest.approx(len(made.assignment))


def test_a_plan_for_nobody_and_for_nothing() -> None:
    nobody = plan("sticky", [], queue("main", 2), {"main.0": "gone"})
    assert (nobody.assignment, nobody.moves) == ({}, ())
    assert nobody.unassigned == dict.fromkeys(["main.0", "main.1"], "there is no service")
    nothing = plan("sticky", plain_services(2), [], {"main.0": "s0"})
    assert (nothing.assignment, nothing.moves, nothing.unassigned) == ({}, (), {})
    assert nothing.after.largest_deviation == 0


def test_what_is_wrong_is_said() -> None:
    one, other = ServiceInfo("a"), ServiceInfo("a", weight=2)
    with pytest.raises(ConfigurationError, match="no assignor 'range'; choose one of sticky, thingsboard"):
        plan("range", [], [], {})
    with pytest.raises(ConfigurationError, match="two services are called 'a'"):
        plan("sticky", [one, other], [], {})
    with pytest.raises(ConfigurationError, match="two partitions are called 'p'"):
        plan("sticky", [one], [ClusterPartition("p"), ClusterPartition("p", number=1)], {})
    with pytest.raises(ConfigurationError, match="no hash function 'md5'"):
        plan("thingsboard", [one], [], {}, hash_name="md5")
