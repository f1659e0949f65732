"""What is counted in bounded room: the most frequent entities, and tenants up to a limit."""

import random
from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.messages import TENANT_ID, Record
from queuecore.metrics import MOST_TENANTS, OTHER
from queuecore.metrics.heavy_hitters import HeavyHitters
from queuecore.metrics.sampling import ALL_OF_FIRST, KEPT, MOST_KEY_BYTES, TOLD, EntitySample
from queuecore.metrics.shares import MOST_TENANT_BYTES, TenantShares

HOT = UUID(int=7)


def record(key: UUID | bytes | None, tenant: bytes | None = None) -> Record:
    return Record("in.0", 0, 0, 0, key, {} if tenant is None else {TENANT_ID: tenant}, b"x")


class TestHeavyHitters:
    @given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5))), st.integers(1, 8))
    def test_no_count_is_too_high_and_none_too_low_by_more_than_its_share(self, added, kept: int) -> None:
        hitters: HeavyHitters[int] = HeavyHitters(kept)
        exact: Counter[int] = Counter()
        for thing, number in added:
            hitters.add(thing, number)
            exact[thing] += number
            assert len(hitters) <= 2 * kept
        told = dict(hitters.top(100))
        for thing, number in exact.items():
            assert number - exact.total() / (kept + 1) <= told.get(thing, 0) <= number

    def test_the_most_frequent_come_first(self) -> None:
        hitters: HeavyHitters[str] = HeavyHitters(10)
        for thing in "abbccc":
            hitters.add(thing)
        assert hitters.top(2) == [("c", 3), ("b", 2)]


class TestEntities:
    def test_of_a_quiet_partition_everything_is_known(self) -> None:
        sample = EntitySample()
        sample.add([record(HOT, b"red")] * 3 + [record(b"7", b"blue")] + [record(None)])
        assert [(one.key, one.is_uuid, one.tenant_id, one.messages) for one in sample.told()] == [
            (HOT.bytes, True, "red", 3),
            (b"7", False, "blue", 1),
        ]

    def test_an_id_and_its_bytes_are_two(self) -> None:
        sample = EntitySample()
        sample.add([record(HOT), record(HOT.bytes)])
        assert sorted(one.is_uuid for one in sample.told()) == [False, True]

    @pytest.mark.parametrize("pack", [1, 7, 1_000])
    def test_the_hot_one_is_found_among_many(self, pack: int) -> None:
        chance = random.Random(7)
        sample = EntitySample(chance.random)
        records = [record(HOT, b"red") if chance.random() < 0.2 else record(UUID(int=n)) for n in range(100, 50_100)]
        for start in range(0, len(records), pack):
            sample.add(records[start : start + pack])
        first, *others = sample.told()
        assert (first.key, first.tenant_id) == (HOT.bytes, "red")
        assert first.messages == pytest.approx(10_000, rel=0.25)
        assert len(others) < TOLD
        assert all(one.messages < first.messages / 4 for one in others)

    def test_those_that_come_in_turn_are_all_seen(self) -> None:
        sample = EntitySample(random.Random(7).random)
        turn = [record(UUID(int=number)) for number in range(16)]
        for _ in range(200):
            sample.add(turn * 10)
        told = {UUID(bytes=one.key): one.messages for one in sample.told()}
        assert len(told) == TOLD
        assert all(messages == pytest.approx(2_000, rel=0.5) for messages in told.values())

    def test_few_are_looked_at_when_many_come(self) -> None:
        looked_at: list[int] = []

        class Noting(Record):
            @property
            def key(self) -> bytes:
                looked_at.append(1)
                return b"1"

        records = [Noting("in.0", 0, 0, 0, None, {}, b"x")] * 1_000
        sample = EntitySample(random.Random(7).random)
        for _ in range(200):
            sample.add(records)
        assert ALL_OF_FIRST <= len(looked_at) < 1_000 + ALL_OF_FIRST * 10
        [told] = sample.told()
        assert told.messages == pytest.approx(200_000, rel=0.1)

    def test_room_is_bounded_whatever_comes(self) -> None:
        sample = EntitySample()
        sample.add([record(b"k" * (MOST_KEY_BYTES + 1))])
        assert list(sample.told()) == []
        sample.add([record(UUID(int=number)) for number in range(20 * KEPT)])
        assert len(sample._hitters) <= 2 * KEPT
        assert len(sample._tenants) <= 4 * KEPT


class TestTenants:
    def test_those_beyond_the_limit_are_told_together(self) -> None:
        shares = TenantShares()
        for number in range(MOST_TENANTS + 10):
            shares.of(b"tenant-%d" % number).messages += 1
        shares.of(b"tenant-0").messages += 1
        told = {one.tenant_id: one.messages for one in shares.told()}
        assert len(told) == MOST_TENANTS + 1
        assert (told["tenant-0"], told[OTHER]) == (2, 10)

    def test_messages_that_name_nobody_are_whose_the_partition_is(self) -> None:
        shares = TenantShares(b"blue")
        shares.of(None).messages += 1
        shares.of(b"red").messages += 1
        assert [one.tenant_id for one in shares.told()] == ["blue", "red"]

    def test_a_header_may_be_anything(self) -> None:
        shares = TenantShares()
        shares.of(b"\xff" * 5_000).bytes += 1
        [told] = shares.told()
        assert told.tenant_id == "\N{REPLACEMENT CHARACTER}" * MOST_TENANT_BYTES
