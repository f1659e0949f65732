"""A group's members come and go, and no partition ever has two readers."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from queuecore.errors import ConfigurationError
from queuecore.groups import GroupState, Wants, from_json, to_json
from queuecore.topics import ProviderPartition


def of(topic: str, *numbers: int) -> frozenset[ProviderPartition]:
    return frozenset(ProviderPartition(topic, number) for number in numbers)


def whole(*topics: str) -> Wants:
    return Wants(topics=frozenset(topics))


def settle(state: GroupState, *members: str) -> None:
    """Let these members look, one after the other, until nothing changes."""
    for _ in range(10):
        before = state.version
        for member in members:
            state.release(member, state.sync(member).revoked)
            state.take(member)
        if state.version == before:
            return
    raise AssertionError("the members have looked ten times and still find something to do")


def test_a_strategy_there_is_not_keeps_nobody_out_but_its_member() -> None:
    state = GroupState()
    bad: Any = "roundrobin"
    with pytest.raises(ConfigurationError, match="range, round_robin, sticky"):
        state.join("bad", Wants(topics=frozenset("t"), strategy=bad), {"t": 3})
    state.join("good", whole("t"), {"t": 3})
    assert list(state.members) == ["good"]
    assert state.take("good") == of("t", 0, 1, 2)


def test_the_first_member_gets_everything() -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 3})
    assert state.sync("a").free == of("t", 0, 1, 2)
    assert state.take("a") == of("t", 0, 1, 2)
    assert state.is_owner("a", of("t", 0, 1, 2))
    assert state.take("a") == frozenset()


def test_a_partition_moves_only_when_its_owner_has_released_it() -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 2})
    state.take("a")
    state.join("b", whole("t"), {"t": 2})
    assert state.take("b") == frozenset()
    [moving] = state.sync("a").revoked
    assert state.is_owner("a", [moving])
    state.release("a", [moving])
    assert not state.is_owner("a", [moving])
    assert state.take("b") == {moving}


def test_what_a_gone_member_owned_is_free_at_once() -> None:
    state = GroupState()
    for member in ("a", "b"):
        state.join(member, whole("t"), {"t": 2})
        state.take(member)
    state.expire(["a", "a-stranger"])
    assert not state.is_owner("a", of("t", 0))
    assert state.sync("a").owned == frozenset()
    assert state.take("b") == of("t", 0, 1)


def test_a_member_that_comes_back_owns_nothing_before_it_takes_it() -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 1})
    state.take("a")
    state.leave("a")
    state.join("a", whole("t"), {"t": 1})
    assert state.sync("a").owned == frozenset()
    assert state.take("a") == of("t", 0)


def test_asking_for_something_else_keeps_what_is_still_wanted_and_the_rest_until_it_is_released() -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 2})
    state.take("a")
    state.join("a", Wants(of("t", 1) | of("u", 1)), {"t": 2, "u": 4})
    assert state.is_owner("a", of("t", 0, 1))
    assert (state.sync("a").revoked, state.sync("a").free) == (of("t", 0), of("u", 1))
    state.release("a", of("t", 0))
    assert state.take("a") == of("u", 1)
    assert state.sync("a").owned == of("t", 1) | of("u", 1)


def test_what_a_member_wants_no_longer_another_gets_when_it_is_released() -> None:
    state = GroupState()
    state.join("a", Wants(of("t", 0, 1)), {"t": 2})
    state.take("a")
    state.join("a", Wants(of("t", 0)), {"t": 2})
    state.join("b", Wants(of("t", 1)), {"t": 2})
    assert state.take("b") == frozenset()
    state.release("a", state.sync("a").revoked)
    assert (state.take("b"), state.take("a")) == (of("t", 1), frozenset())


def test_a_topic_that_nobody_wants_is_known_as_long_as_it_is_owned() -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 2})
    state.take("a")
    state.join("a", whole("u"), {"u": 1})
    assert state.counts == {"t": 2, "u": 1}
    state.topics_changed({"t": 0})
    assert state.sync("a").owned == frozenset()
    state.topics_changed({"u": 2})
    assert state.counts == {"u": 2}


def test_members_may_want_different_partitions() -> None:
    state = GroupState()
    state.join("a", Wants(of("t", 0)), {"t": 3})
    state.join("b", Wants(of("t", 1, 9)), {"t": 3})
    settle(state, "a", "b")
    assert state.owners == {ProviderPartition("t", 0): "a", ProviderPartition("t", 1): "b"}


def test_a_topic_that_grows_is_divided_anew() -> None:
    state = GroupState()
    for member in ("a", "b"):
        state.join(member, whole("t"), {"t": 1})
    settle(state, "a", "b")
    state.topics_changed({"t": 4, "nobody-wants-it": 7})
    settle(state, "a", "b")
    assert Counter(state.owners.values()) == {"a": 2, "b": 2}


def test_partitions_of_a_deleted_topic_have_no_owner_and_begin_anew_with_it() -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 2})
    state.take("a")
    state.topics_changed({"t": 0})
    assert (state.owners, state.targets) == ({}, {})
    state.topics_changed({"t": 2})
    assert state.sync("a").owned == frozenset()
    assert state.take("a") == of("t", 0, 1)


def test_the_strategy_is_the_oldest_members() -> None:
    state = GroupState()
    state.join("b", Wants(topics=frozenset({"t", "u"}), strategy="range"), {"t": 1, "u": 1})
    state.join("a", whole("t", "u"), {"t": 1, "u": 1})
    assert set(state.targets.values()) == {"a"}
    state.leave("b")
    state.join("b", whole("t", "u"), {"t": 1, "u": 1})
    assert set(state.targets.values()) == {"a", "b"}


def test_only_a_new_plan_is_a_new_generation_and_only_a_change_a_new_version() -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 1})
    seen = state.generation, state.version
    state.take("a")
    assert (state.generation, state.version) == (seen[0], seen[1] + 1)
    state.take("a")
    state.release("a", of("t", 5))
    state.leave("a-stranger")
    state.topics_changed({"t": 1})
    assert state.version == seen[1] + 1
    state.topics_changed({"t": 2})
    assert (state.generation, state.version) == (seen[0] + 1, seen[1] + 2)


def test_who_joins_with_the_same_member_id_gets_what_the_one_before_had() -> None:
    state = GroupState()
    for member in ("a", "b"):
        state.join(member, whole("t"), {"t": 4}, member_id=f"the-{member}")
    settle(state, "a", "b")
    had, kept = state.sync("a").owned, state.sync("b").owned
    state.join("c", whole("t"), {"t": 4}, member_id="the-a")
    assert not state.is_member("a")
    assert state.is_displaced("a", "the-a")
    assert not state.is_displaced("b", "the-b")
    assert not state.is_owner("a", had)
    assert state.take("c") == had
    assert (state.sync("b").owned, state.sync("b").revoked) == (kept, frozenset())


def test_a_member_id_is_free_when_its_member_is_gone() -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 1}, member_id="the-a")
    state.join("b", whole("t"), {"t": 1}, member_id="the-a")
    state.leave("b")
    assert (state.members, state.member_ids) == ({}, {})


@pytest.mark.parametrize("end", ["joins again", "leaves"])
def test_one_that_was_displaced_is_remembered_until_it_comes_again_or_goes(end: str) -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 1}, member_id="the-a")
    state.join("b", whole("t"), {"t": 1}, member_id="the-a")
    state.leave("b")
    state = from_json(to_json(state))
    assert state.is_displaced("a", "the-a")
    before = state.version
    if end == "leaves":
        state.leave("a")
    else:
        state.join("a", whole("t"), {"t": 1}, member_id="the-a")
    assert not state.is_displaced("a", "the-a")
    assert state.version > before


def test_a_stored_group_knows_its_members_ids() -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 1}, member_id="the-a")
    state.join("b", whole("t"), {"t": 1})
    assert from_json(to_json(state)).member_ids == {"a": "the-a"}


def test_a_description_says_who_reads_what() -> None:
    state = GroupState()
    state.join("a", whole("t"), {"t": 1})
    state.join("b", whole("t"), {"t": 1})
    settle(state, "a", "b")
    description = state.describe("the-group")
    assert (description.name, dict(description.members)) == ("the-group", {"a": of("t", 0), "b": frozenset()})


TOPICS = ["t", "u"]
members = st.sampled_from(["a", "b", "c", "d"])
places = st.builds(ProviderPartition, st.sampled_from(TOPICS), st.integers(0, 5))
all_wants = st.builds(
    Wants,
    st.frozensets(places, max_size=4),
    st.frozensets(st.sampled_from(TOPICS)),
    st.sampled_from(["range", "round_robin", "sticky"]),
)


class GroupMachine(RuleBasedStateMachine):
    """Members that join, go, look, release and take in any order, as topics grow and are deleted."""

    @initialize(counts=st.fixed_dictionaries({topic: st.integers(0, 6) for topic in TOPICS}))
    def begin(self, counts: dict[str, int]) -> None:
        self.state = GroupState()
        self.counts = counts
        # What each member was told to give up, as it knew it then.
        self.told: dict[str, frozenset[ProviderPartition]] = {}

    @rule(member=members, wants=all_wants, member_id=st.sampled_from([None, "one", "other"]))
    def join(self, member: str, wants: Wants, member_id: str | None) -> None:
        """Or want something else: nothing that it owns is taken from it without a word."""
        before = self.state.sync(member).owned
        self.state.join(member, wants, self.counts, member_id)
        assert self.state.sync(member).owned == before
        assert not self.state.is_displaced(member, member_id)

    @rule(member=members, fewer=st.frozensets(places, max_size=3))
    def want_less(self, member: str, fewer: frozenset[ProviderPartition]) -> None:
        """Where nobody else wants what it owns, it keeps all of it that it still wants."""
        if (wants := self.state.members.get(member)) is None:
            return
        less = Wants(wants.partitions - fewer, wants.topics, wants.strategy)
        owned = self.state.sync(member).owned
        others = [one.existing(self.counts) for other, one in self.state.members.items() if other != member]
        alone = owned - set().union(*others)
        self.state.join(member, less, self.counts, self.state.member_ids.get(member))
        assert self.state.sync(member).revoked & alone == alone - set(less.existing(self.counts))

    @rule(member=members)
    def leave(self, member: str) -> None:
        self.state.leave(member)

    @rule(gone=st.sets(members))
    def expire(self, gone: set[str]) -> None:
        self.state.expire(gone)
        assert not self.state.members.keys() & gone

    @rule(counts=st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 6), min_size=1))
    def topics_change(self, counts: dict[str, int]) -> None:
        self.counts.update(counts)
        self.state.topics_changed(counts)

    @invariant()
    def no_two_members_have_the_same_id(self) -> None:
        ids = self.state.member_ids
        assert ids.keys() <= self.state.members.keys()
        assert len(set(ids.values())) == len(ids)

    @rule(member=members)
    def look(self, member: str) -> None:
        self.told[member] = self.state.sync(member).revoked

    @rule(member=members)
    def release(self, member: str) -> None:
        """What it was told long ago may be somebody else's by now."""
        others = {place: owner for place, owner in self.state.owners.items() if owner != member}
        self.state.release(member, self.told.pop(member, ()))
        assert others.items() <= self.state.owners.items()

    @rule(member=members)
    def take(self, member: str) -> None:
        before = dict(self.state.owners)
        taken = self.state.take(member)
        assert not taken & before.keys()
        assert self.state.owners == {**before, **dict.fromkeys(taken, member)}
        assert self.state.is_owner(member, taken)

    @rule()
    def everybody_looks(self) -> None:
        settle(self.state, *self.state.members)
        assert self.state.owners == self.state.targets

    @invariant()
    def an_owner_is_a_member_and_is_to_release_what_it_does_not_want(self) -> None:
        for place, owner in self.state.owners.items():
            assert place.partition < self.counts[place.topic]
            wanted = set(self.state.members[owner].existing(self.counts))
            assert place in wanted or place in self.state.sync(owner).revoked

    @invariant()
    def every_wanted_partition_is_planned_for_one_who_wants_it(self) -> None:
        wants = {member: set(wants.existing(self.counts)) for member, wants in self.state.members.items()}
        assert self.state.targets.keys() == set().union(*wants.values())
        assert all(place in wants[member] for place, member in self.state.targets.items())

    @invariant()
    def members_that_want_the_same_have_the_same_to_within_one(self) -> None:
        wants = {frozenset(wants.existing(self.counts)) for wants in self.state.members.values()}
        strategy = next((wants.strategy for wants in self.state.members.values()), "sticky")
        if len(wants) == 1 and strategy != "range":
            planned = Counter(self.state.targets.values())
            counts = [planned[member] for member in self.state.members]
            assert max(counts) - min(counts) <= 1

    @invariant()
    def text_keeps_it_all(self) -> None:
        again = from_json(to_json(self.state))
        assert vars(again) == vars(self.state)
        assert list(again.members) == list(self.state.members)


TestGroups = GroupMachine.TestCase
TestGroups.settings = settings(max_examples=100, stateful_step_count=30)
