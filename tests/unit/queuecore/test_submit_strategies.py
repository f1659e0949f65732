"""The five submit strategies: which messages wait for each other."""

from collections.abc import Hashable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.errors import ConfigurationError
from queuecore.messages import TENANT_ID, Key, Record
from queuecore.submit import (
    Batch,
    Burst,
    Sequential,
    SequentialByOriginator,
    SequentialByTenant,
    SubmitStrategy,
    SubmitStrategyType,
    submit_strategy,
)
from tests.unit.counting import lines_run

ONE, OTHER = UUID(int=1), UUID(int=2)

every_strategy = pytest.mark.parametrize("name", list(SubmitStrategyType))


def record(key: Key = ONE, tenant: bytes | None = None, offset: int = 0) -> Record:
    return Record("t.0", 0, offset, 0, key, {} if tenant is None else {TENANT_ID: tenant}, b"data")


def lanes(strategy: SubmitStrategy, *records: Record) -> list[Hashable | None]:
    return [strategy.lane_of(one) for one in records]


class TestByName:
    @pytest.mark.parametrize(
        ("name", "strategy"),
        [
            ("BURST", Burst()),
            ("BATCH", Batch(7)),
            ("SEQUENTIAL", Sequential()),
            ("SEQUENTIAL_BY_ORIGINATOR", SequentialByOriginator()),
            ("SEQUENTIAL_BY_TENANT", SequentialByTenant()),
        ],
    )
    def test_each_is_found(self, name: str, strategy: SubmitStrategy) -> None:
        assert submit_strategy(name, batch_size=7) == strategy

    def test_a_name_that_there_is_not_is_refused_with_those_there_are(self) -> None:
        with pytest.raises(ConfigurationError, match=r"'burst'; choose one of BURST, BATCH, SEQUENTIAL, "):
            submit_strategy("burst")

    @pytest.mark.parametrize("size", [0, -1])
    def test_an_empty_batch_is_refused(self, size: int) -> None:
        with pytest.raises(ConfigurationError, match=f"a batch of {size} messages"):
            submit_strategy("BATCH", batch_size=size)

    def test_only_a_batch_has_a_size_to_be_wrong(self) -> None:
        assert submit_strategy("BURST", batch_size=0) == Burst()


class TestLanes:
    @pytest.mark.parametrize("strategy", [Burst(), Batch(2)], ids=str)
    def test_in_a_burst_or_a_batch_nothing_waits_for_another(self, strategy: SubmitStrategy) -> None:
        assert lanes(strategy, record(ONE), record(ONE), record(None)) == [None, None, None]

    def test_in_a_sequence_all_wait_for_each_other(self) -> None:
        first, *others = lanes(Sequential(), record(ONE, b"a"), record(OTHER, b"b"), record(None))
        assert first is not None
        assert others == [first, first]

    def test_by_originator_those_of_one_key_do(self) -> None:
        one, again, other, raw = lanes(
            SequentialByOriginator(), record(ONE, b"a"), record(ONE, b"b"), record(OTHER), record(b"raw")
        )
        assert one == again
        assert len({one, other, raw}) == 3

    def test_by_originator_one_without_a_key_waits_for_nothing(self) -> None:
        assert SequentialByOriginator().lane_of(record(None)) is None

    def test_by_originator_an_empty_key_is_a_key(self) -> None:
        assert SequentialByOriginator().lane_of(record(b"")) is not None

    def test_by_tenant_those_of_one_tenant_do(self) -> None:
        one, again, other = lanes(SequentialByTenant(), record(ONE, b"a"), record(OTHER, b"a"), record(ONE, b"b"))
        assert one == again
        assert one != other

    def test_by_tenant_those_that_name_none_are_one_tenants(self) -> None:
        one, again, other = lanes(SequentialByTenant(), record(ONE), record(OTHER), record(ONE, b"a"))
        assert one is not None
        assert one == again
        assert one != other


class TestStages:
    @every_strategy
    @given(count=st.integers(0, 50), size=st.integers(1, 60))
    def test_every_lane_is_in_one_stage_in_the_order_they_came(self, name: str, count: int, size: int) -> None:
        given_lanes = [[number] for number in range(count)]
        stages = submit_strategy(name, size).stages(given_lanes)
        assert [lane for stage in stages for lane in stage] == given_lanes

    @given(count=st.integers(0, 50), size=st.integers(1, 60))
    def test_a_batch_is_full_but_the_last(self, count: int, size: int) -> None:
        stages = Batch(size).stages([[number] for number in range(count)])
        assert all(len(stage) == size for stage in stages[:-1])
        assert all(0 < len(stage) <= size for stage in stages)

    @pytest.mark.parametrize("name", [one for one in SubmitStrategyType if one is not SubmitStrategyType.BATCH])
    def test_only_batches_wait_for_each_other(self, name: str) -> None:
        assert len(submit_strategy(name).stages([[1], [2], [3]])) == 1

    @every_strategy
    def test_what_holds_back_all_behind_it(self, name: str) -> None:
        assert submit_strategy(name).holds_all == (name in {"BATCH", "SEQUENTIAL"})


@every_strategy
def test_cost_is_linear_in_the_pack(name: str) -> None:
    strategy = submit_strategy(name, batch_size=10)

    def steps(count: int) -> int:
        records = [record(UUID(int=number % 5), b"%d" % (number % 3)) for number in range(count)]

        def submit() -> None:
            for one in records:
                strategy.lane_of(one)
            strategy.stages([[one] for one in records])

        return lines_run(submit)

    small, middle, large = steps(100), steps(200), steps(400)
    assert large - middle == 2 * (middle - small)
