"""How a group's partitions are divided."""

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.groups import assign
from queuecore.providers.options import Strategy
from queuecore.topics import ProviderPartition

Wants = Mapping[str, Collection[ProviderPartition]]
Assignment = Mapping[ProviderPartition, str]

STRATEGIES: list[Strategy] = ["range", "round_robin", "sticky"]


def of(topic: str, count: int) -> list[ProviderPartition]:
    return [ProviderPartition(topic, number) for number in range(count)]


def numbers(plan: Assignment, member: str, topic: str = "t") -> list[int]:
    return sorted(one.partition for one, holder in plan.items() if holder == member and one.topic == topic)


def moves(current: Assignment, plan: Assignment, wants: Wants) -> int:
    """Partitions taken from a member that wanted to keep them."""
    return sum(
        owner != plan[partition] and partition in wants.get(owner, ())
        for partition, owner in current.items()
        if partition in plan
    )


members = st.sampled_from([f"m{number}" for number in range(5)])
places = st.sampled_from([*of("t", 6), *of("u", 4)])
any_wants = st.dictionaries(members, st.sets(places), max_size=5)
any_current = st.dictionaries(places, members)
same_wants = st.builds(
    lambda who, what: dict.fromkeys(sorted(who), what), st.sets(members, min_size=1), st.sets(places)
)


def test_range_gives_each_member_a_stretch_of_each_topic() -> None:
    wants = {member: [*of("t", 7), *of("u", 2)] for member in "abc"}
    plan = assign("range", wants, {})
    assert [numbers(plan, member) for member in "abc"] == [[0, 1, 2], [3, 4], [5, 6]]
    assert [numbers(plan, member, "u") for member in "abc"] == [[0], [1], []]


def test_range_divides_what_the_same_members_want() -> None:
    wants = {"a": of("t", 4), "b": of("t", 6), "c": of("t", 6)[4:]}
    plan = assign("range", wants, {})
    assert [numbers(plan, member) for member in "abc"] == [[0, 1], [2, 3, 4], [5]]


def test_round_robin_goes_round_over_all_topics() -> None:
    wants = {member: [*of("t", 3), *of("u", 3)] for member in "ab"}
    plan = assign("round_robin", wants, {})
    assert [(numbers(plan, member), numbers(plan, member, "u")) for member in "ab"] == [([0, 2], [1]), ([1], [0, 2])]


def test_round_robin_passes_over_who_does_not_want_it() -> None:
    """Kafka's own example: three members, each with one topic more."""
    wants = {"a": of("t0", 1), "b": [*of("t0", 1), *of("t1", 2)], "c": [*of("t0", 1), *of("t1", 2), *of("t2", 3)]}
    plan = assign("round_robin", wants, {})
    held = {member: [place for place in plan if plan[place] == member] for member in "abc"}
    assert held == {
        "a": of("t0", 1),
        "b": of("t1", 1),
        "c": [ProviderPartition("t1", 1), *of("t2", 3)],
    }


def test_sticky_takes_only_what_a_new_member_must_get() -> None:
    two = assign("sticky", dict.fromkeys("ab", of("t", 6)), {})
    three = assign("sticky", dict.fromkeys("abc", of("t", 6)), two)
    assert Counter(three.values()) == {"a": 2, "b": 2, "c": 2}
    assert sum(two[place] != three[place] for place in two) == 2


def test_sticky_gives_a_gone_members_partitions_to_the_others_and_leaves_theirs() -> None:
    three = assign("sticky", dict.fromkeys("abc", of("t", 6)), {})
    two = assign("sticky", dict.fromkeys("ac", of("t", 6)), three)
    assert Counter(two.values()) == {"a": 3, "c": 3}
    assert all(two[place] == owner for place, owner in three.items() if owner != "b")


def test_sticky_hands_on_where_only_a_chain_makes_it_even() -> None:
    """c wants nothing of a's, but something of b's, which wants something of a's."""
    t, u = of("t", 4), of("u", 2)
    current = {**dict.fromkeys(t, "a"), **dict.fromkeys(u, "b")}
    plan = assign("sticky", {"a": t, "b": [*t, *u], "c": u}, current)
    assert Counter(plan.values()) == {"a": 2, "b": 2, "c": 2}


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(wants=any_wants, current=any_current)
def test_every_wanted_partition_goes_to_one_who_wants_it(strategy: Strategy, wants: Wants, current: Assignment) -> None:
    plan = assign(strategy, wants, current)
    assert plan.keys() == {place for wanted in wants.values() for place in wanted}
    assert all(place in wants[member] for place, member in plan.items())


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(wants=any_wants, current=any_current, data=st.data())
def test_the_same_question_has_the_same_answer(
    strategy: Strategy, wants: Wants, current: Assignment, data: st.DataObject
) -> None:
    shuffled = {member: data.draw(st.permutations(sorted(wants[member]))) for member in reversed(list(wants))}
    assert assign(strategy, shuffled, dict(reversed(current.items()))) == assign(strategy, wants, current)


@pytest.mark.parametrize("strategy", ["round_robin", "sticky"])
@given(wants=same_wants, current=any_current)
def test_members_that_want_the_same_get_the_same_to_within_one(
    strategy: Strategy, wants: Wants, current: Assignment
) -> None:
    plan = assign(strategy, wants, current)
    counts = [sum(holder == member for holder in plan.values()) for member in wants]
    assert max(counts) - min(counts) <= 1


@given(wants=any_wants, current=any_current)
def test_sticky_leaves_its_own_plan_alone(wants: Wants, current: Assignment) -> None:
    plan = assign("sticky", wants, current)
    assert assign("sticky", wants, plan) == plan


few = st.sampled_from(["a", "b", "c"])
small = st.sampled_from(of("t", 6))


@given(wants=st.dictionaries(few, st.sets(small), min_size=1), current=st.dictionaries(small, few))
def test_no_plan_as_even_as_the_sticky_one_moves_fewer(wants: Wants, current: Assignment) -> None:
    """Against every plan there is."""
    wanted = sorted({place for places in wants.values() for place in places})
    choices = [[member for member in wants if place in wants[member]] for place in wanted]
    plans = [dict(zip(wanted, chosen, strict=True)) for chosen in product(*choices)]

    def cost(plan: Assignment) -> tuple[int, int]:
        return sum(count**2 for count in Counter(plan.values()).values()), moves(current, plan, wants)

    assert cost(assign("sticky", wants, current)) == min(map(cost, plans))
