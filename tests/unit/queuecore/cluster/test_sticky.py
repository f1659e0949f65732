"""The sticky assignor: as few moves as any balanced plan, and partitions of a queue kept apart."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.cluster.assignment import AssignmentPlan, plan
from queuecore.cluster.evening import Choice, choose
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from tests.unit.queuecore.cluster.assignment_kit import (
    CORE,
    ENGINE,
    Cluster,
    clusters,
    plain_services,
    pools_of,
    queue,
    random_cluster,
    shares_in,
)

CASES = 4_000


def fewest_moves(cluster: Cluster) -> int:
    """Of all plans that give each service its share of each pool to within one: every distribution of every pool is
    looked at, partition by partition."""
    return sum(_fewest_in(pool, names, cluster) for pool, names in pools_of(cluster).items() if pool)


def _fewest_in(pool: tuple[str, ...], names: list[str], cluster: Cluster) -> int:
    # The fewest moves that lead to these counts.
    moves = {(0,) * len(pool): 0}
    for name in names:
        longer: dict[tuple[int, ...], int] = {}
        for (counts, so_far), at in product(moves.items(), range(len(pool))):
            key = (*counts[:at], counts[at] + 1, *counts[at + 1 :])
            cost = so_far + (cluster.current.get(name, pool[at]) != pool[at])
            longer[key] = min(cost, longer.get(key, cost))
        moves = longer
    shares = shares_in(pool, len(names), cluster)
    return min(
        cost
        for counts, cost in moves.items()
        if all(abs(count - shares[service]) < 1 for service, count in zip(pool, counts, strict=True))
    )


def test_no_balanced_plan_moves_fewer() -> None:
    chance = random.Random(7)
    moved = 0
    for number in range(CASES):
        cluster = random_cluster(chance)
        made = cluster.plan()
        assert len(made.moves) == fewest_moves(cluster), f"case {number}: {cluster}"
        moved += len(made.moves)
    assert moved > CASES, "the cases should make something move"


@given(cluster=clusters())
def test_nothing_moves_from_a_service_that_has_no_more_than_its_share(cluster: Cluster) -> None:
    moves = cluster.plan().moves
    for pool, names in pools_of(cluster).items():
        having = Counter(cluster.current.get(name) for name in names)
        moved = Counter(move.source for move in moves if move.partition in names)
        shares = shares_in(pool, len(names), cluster)
        assert all(not moved[service] for service in pool if having[service] <= shares[service])


def joined(services: list[ServiceInfo], partitions: list[ClusterPartition], *new: ServiceInfo) -> AssignmentPlan:
    before = plan("sticky", services, partitions, {})
    return plan("sticky", [*services, *new], partitions, before.assignment)


def test_a_new_service_gets_its_share_and_nothing_else_moves() -> None:
    made = joined(plain_services(4), queue("main", 20), ServiceInfo("new"))
    assert Counter(made.assignment.values()) == dict.fromkeys(["s0", "s1", "s2", "s3", "new"], 4)
    assert [move.target for move in made.moves] == ["new"] * 4


def test_twice_the_weight_is_twice_the_partitions() -> None:
    made = joined(plain_services(2), queue("main", 12), ServiceInfo("new", weight=2.0))
    assert Counter(made.assignment.values()) == {"s0": 3, "s1": 3, "new": 6}


def test_a_gone_services_partitions_are_spread_and_nothing_else_moves() -> None:
    before = plan("sticky", plain_services(5), queue("main", 20), {}).assignment
    made = plan("sticky", plain_services(4), queue("main", 20), before)
    assert Counter(made.assignment.values()) == dict.fromkeys(["s0", "s1", "s2", "s3"], 5)
    assert {move.source for move in made.moves} == {"s4"}


def test_new_partitions_move_nothing() -> None:
    before = plan("sticky", plain_services(3), queue("main", 7), {}).assignment
    made = plan("sticky", plain_services(3), queue("main", 17), before)
    assert made.moves == ()
    assert sorted(Counter(made.assignment.values()).values()) == [5, 6, 6]


def test_a_whole_share_is_met_exactly() -> None:
    """Three and three for two of the same weight: two and four is within one of neither."""
    partitions = queue("main", 6)
    current = {one.name: "s0" if one.number < 4 else "s1" for one in partitions}
    made = plan("sticky", plain_services(2), partitions, current)
    assert Counter(made.assignment.values()) == {"s0": 3, "s1": 3}
    assert len(made.moves) == 1


def test_weights_that_add_up_to_nothing_round_are_exact() -> None:
    services = [ServiceInfo("a", weight=0.1), ServiceInfo("b", weight=0.2), ServiceInfo("c", weight=1e-300)]
    counts = Counter(plan("sticky", services, queue("main", 3_000), {}).assignment.values())
    assert counts["a"] in (999, 1000, 1001)
    assert counts["c"] in (0, 1)


def test_extras_of_several_pools_go_to_different_services() -> None:
    """One partition that two services may have, and two that all three may: one each."""
    services = [ServiceInfo("a", (CORE, ENGINE)), ServiceInfo("b", (CORE, ENGINE)), ServiceInfo("c", (ENGINE,))]
    partitions = [*queue("core", 1, kind=CORE), *queue("engine", 2)]
    assert sorted(plan("sticky", services, partitions, {}).assignment.values()) == ["a", "b", "c"]


ids = st.sampled_from("abcd")
few_choices = st.lists(
    st.sets(ids, min_size=1).flatmap(
        lambda some: st.builds(Choice, st.just(sorted(some)), st.integers(0, len(some))),
    ),
    max_size=4,
)


@given(
    choices=few_choices, excess=st.fixed_dictionaries(dict.fromkeys("abcd", st.sampled_from([0.0, 0.5, -0.25, 2.0])))
)
def test_no_choice_of_extras_makes_the_totals_more_even(choices: list[Choice], excess: dict[str, float]) -> None:
    def unevenness(chosen: tuple[tuple[str, ...], ...]) -> float:
        return sum((excess[one] + sum(one in some for some in chosen)) ** 2 for one in excess)

    possible = product(*(combinations(candidates, number) for candidates, number in choices))
    chosen = choose(choices, dict(excess))
    assert [len(some) for some in chosen] == [choice.number for choice in choices]
    assert unevenness(tuple(map(tuple, chosen))) == min(map(unevenness, possible))


def test_an_extra_is_passed_on_where_a_later_choice_cannot_make_up_for_it() -> None:
    """a and b come first in both, but then one of them has two, and c none."""
    excess = dict.fromkeys("abcd", 0.0)
    choose([Choice(["a", "b", "c"], 2), Choice(["a", "b", "d"], 2)], excess)
    assert excess == dict.fromkeys("abcd", 1.0)


def most_of_a_queue(made: Mapping[str, str], partitions: list[ClusterPartition]) -> int:
    """On one service."""
    return max(Counter((one.queue, made[one.name]) for one in partitions).values())


@pytest.mark.parametrize(
    ("change", "most"),
    [
        (lambda services: services, 1),
        (lambda services: [*services, ServiceInfo("new")], 1),
        (lambda services: [*services, *plain_services(10, "new")], 1),
        (lambda services: services[3:], 2),
    ],
    ids=["fresh", "one joins", "ten join", "three leave"],
)
def test_partitions_of_a_queue_are_kept_apart(
    change: Callable[[list[ServiceInfo]], list[ServiceInfo]], most: int
) -> None:
    """20 queues of 10 partitions on 20 services."""
    partitions = [one for number in range(20) for one in queue(f"q{number:02}", 10)]
    before = plan("sticky", plain_services(20), partitions, {}).assignment
    after = plan("sticky", change(plain_services(20)), partitions, before).assignment
    assert most_of_a_queue(after, partitions) <= most


def test_a_service_that_gives_up_half_keeps_half_of_each_queue() -> None:
    """Whatever their sizes. Were it the most of the largest, nobody else would have any of the small ones."""
    partitions = [*queue("large", 10), *queue("small", 3), *queue("single", 1)]
    made = plan("sticky", plain_services(2), partitions, {one.name: "s0" for one in partitions})
    kept = Counter(one.queue for one in partitions if made.assignment[one.name] == "s0")
    assert (kept.total(), kept["large"]) == (7, 5)
    assert kept["small"] in (1, 2)
