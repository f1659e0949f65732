"""What a reset of a group's offsets would mean, and doing it; on the provider in memory."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from queuecore.errors import GroupActive, OffsetOutOfRange, UnknownTopic
from queuecore.groups.lag import Standing, read_standings
from queuecore.groups.resetting import (
    AtOffset,
    AtTime,
    Earliest,
    Latest,
    Move,
    Shifted,
    Target,
    apply_reset,
    plan_reset,
)
from queuecore.messages import QueueMessage
from queuecore.providers.base import Provider, QueueAdmin, TopicSpec
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.sending import send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

GROUP = "group"
INFOS = [TopicPartitionInfo("orders", number, use_internal_partition=True) for number in range(3)]
READ, UNREAD, EMPTY = (info.place for info in INFOS)
SENT_MS = [1_000, 2_000, 3_000, 4_000, 5_000, 6_000]


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Two partitions with offsets 2 to 6, of which the group has done up to 4 in the first; one that is empty."""
    clock = ManualClock(SENT_MS[0])
    with closing(MemoryProvider(MemoryStorage(clock=clock))) as provider:
        provider.admin().create_topics([TopicSpec("orders", 3)])
        for time_ms in SENT_MS:
            clock.advance((time_ms - clock.now_ms()) / 1000)
            for info in INFOS[:2]:
                send_and_wait(provider.producer(), info, QueueMessage(None, b"x"), DEADLINE_S)
        provider.admin().delete_records({READ: 2, UNREAD: 2})
        provider.admin().alter_group_offsets(GROUP, {READ: 4})
        yield provider


@pytest.fixture
def admin(provider: Provider) -> QueueAdmin:
    return provider.admin()


def planned(admin: QueueAdmin, target: Target, place: ProviderPartition = READ) -> Move:
    [move] = plan_reset(admin, GROUP, [place], target).moves
    return move


# --- lag


def test_a_lag_counts_from_what_is_committed(admin: QueueAdmin) -> None:
    found = read_standings(admin, {GROUP: [READ, UNREAD, EMPTY], "other": [READ]})
    assert found == {
        GROUP: {READ: Standing(2, 6, 4), UNREAD: Standing(2, 6, None), EMPTY: Standing(0, 0, None)},
        "other": {READ: Standing(2, 6, None)},
    }
    assert [one.lag for one in found[GROUP].values()] == [2, None, None]
    assert read_standings(admin, {}) == {}


def test_what_does_not_exist_leaves_the_others_known(admin: QueueAdmin) -> None:
    nowhere = [ProviderPartition("nowhere", 0), ProviderPartition("gone", 0), ProviderPartition("orders", 9)]
    assert read_standings(admin, {GROUP: [READ, *nowhere], "other": nowhere}) == {
        GROUP: {READ: Standing(2, 6, 4)},
        "other": {},
    }


# --- planning


@pytest.mark.parametrize(
    ("target", "offset", "skipped", "repeated"),
    [
        (Earliest(), 2, 0, 2),
        (Latest(), 6, 2, 0),
        (Latest(before=3), 3, 0, 1),
        (AtTime(SENT_MS[5]), 5, 1, 0),
        (AtTime(SENT_MS[5] + 1), 6, 2, 0),
        (AtTime(0), 2, 0, 2),
        (AtOffset(4), 4, 0, 0),
        (Shifted(-1), 3, 0, 1),
        (Shifted(1), 5, 1, 0),
    ],
)
def test_a_plan_says_where_to_and_what_that_means(
    admin: QueueAdmin, target: Target, offset: int, skipped: int, repeated: int
) -> None:
    move = planned(admin, target)
    assert (move.offset, move.skipped, move.repeated, move.is_clamped) == (offset, skipped, repeated, False)
    assert move.changes == (offset != 4)


@pytest.mark.parametrize(
    ("target", "asked", "offset"),
    [(AtOffset(0), 0, 2), (AtOffset(9), 9, 6), (Shifted(-3), 1, 2), (Shifted(3), 7, 6), (Latest(before=5), 1, 2)],
)
def test_what_is_not_stored_becomes_the_nearest_that_is(
    admin: QueueAdmin, target: Target, asked: int, offset: int
) -> None:
    move = planned(admin, target)
    assert (move.asked, move.offset, move.is_clamped) == (asked, offset, True)


def test_where_nothing_is_committed_nobody_knows_what_is_skipped(admin: QueueAdmin) -> None:
    move = planned(admin, Latest(), UNREAD)
    assert (move.offset, move.skipped, move.repeated, move.changes) == (6, None, None, True)
    with pytest.raises(OffsetOutOfRange, match=r"orders\[1\], so there is nothing to shift from"):
        plan_reset(admin, GROUP, [READ, UNREAD], Shifted(1))


def test_what_was_removed_before_it_was_read_is_neither_skipped_nor_repeated(admin: QueueAdmin) -> None:
    admin.delete_records({READ: 5})
    move = planned(admin, Earliest())
    assert (move.offset, move.skipped, move.repeated, move.changes) == (5, 0, 0, True)


def test_a_plan_is_in_order_and_only_of_what_there_is(admin: QueueAdmin) -> None:
    plan = plan_reset(admin, GROUP, [EMPTY, READ, UNREAD, READ], Latest())
    assert [move.place for move in plan.moves] == [READ, UNREAD, EMPTY]
    with pytest.raises(UnknownTopic):
        plan_reset(admin, GROUP, [ProviderPartition("letters", 0)], Latest())


# --- applying


def test_a_plan_changes_nothing_until_it_is_applied(admin: QueueAdmin) -> None:
    plan = plan_reset(admin, GROUP, [READ, UNREAD], Earliest())
    assert admin.committed_offsets({GROUP: [READ, UNREAD]}) == {GROUP: {READ: 4}}
    apply_reset(admin, plan)
    assert admin.committed_offsets({GROUP: [READ, UNREAD]}) == {GROUP: {READ: 2, UNREAD: 2}}


def test_a_group_that_moved_on_is_left_alone(admin: QueueAdmin) -> None:
    plan = plan_reset(admin, GROUP, [READ, UNREAD], Earliest())
    admin.alter_group_offsets(GROUP, {READ: 5})
    with pytest.raises(GroupActive, match=r"had committed 4 in orders\[0\] .* and 5 now; stop its consumers"):
        apply_reset(admin, plan)
    admin.alter_group_offsets(GROUP, {READ: 4, UNREAD: 3})
    with pytest.raises(GroupActive, match=r"had committed nothing in orders\[1\] .* and 3 now"):
        apply_reset(admin, plan)
    assert admin.committed_offsets({GROUP: [READ, UNREAD]}) == {GROUP: {READ: 4, UNREAD: 3}}


def test_a_group_that_reads_is_left_alone(provider: Provider, admin: QueueAdmin) -> None:
    plan = plan_reset(admin, GROUP, [READ], Earliest())
    consumer = provider.consumer(GROUP)
    consumer.subscribe(INFOS[:1])
    try:
        wait_until(lambda: consumer.poll(10))
        with pytest.raises(GroupActive):
            apply_reset(admin, plan)
    finally:
        consumer.stop()
    assert admin.committed_offsets({GROUP: [READ]}) == {GROUP: {READ: 4}}
