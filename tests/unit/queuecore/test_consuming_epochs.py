"""A consumption whose partitions are assigned by others: it follows its plan, and gives way to newer epochs."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.deadletter.envelope import PREFIX
from queuecore.delivery import Delivery
from queuecore.errors import ConfigurationError, Displaced, StaleEpoch
from queuecore.providers.base import QueueConsumer
from queuecore.providers.memory import MemoryProvider
from queuecore.testing.waiting import wait_until
from tests.unit.queuecore.consuming_kit import GROUP, NO_RETRY, SEQUENTIAL, Bench, Gate, a_plan

MEMBER = "partition-0"


@pytest.fixture
def broad_bench() -> Iterator[Bench]:
    """A queue of three partitions."""
    with closing(MemoryProvider()) as provider, closing(Bench(provider, partitions=3)) as bench:
        yield bench


@contextmanager
def another(bench: Bench, partition: int, epoch: int, member_id: str | None = None) -> Iterator[QueueConsumer]:
    """One that has the partition under this epoch, as soon as it polls."""
    info = bench.infos[partition]
    consumer = bench.provider.consumer(GROUP, member_id=member_id)
    try:
        consumer.subscribe([info], epochs={info.place: epoch})
        yield consumer
    finally:
        consumer.stop()


def commit_as_another(bench: Bench, partition: int, epoch: int, offset: int, member_id: str | None = None) -> None:
    with another(bench, partition, epoch, member_id) as consumer:
        wait_until(lambda: consumer.poll(25) or consumer.partitions)
        consumer.commit({bench.infos[partition].place: offset})


def epochs_of(bench: Bench) -> dict[int, int]:
    numbers = {info.place: number for number, info in enumerate(bench.infos)}
    found = bench.provider.admin().committed_epochs({GROUP: numbers})[GROUP]
    return {numbers[place]: epoch for place, epoch in found.items()}


def only(bench: Bench, *partitions: int, **epochs: int) -> ConsumptionPlan:
    given = {int(name.removeprefix("p")): epoch for name, epoch in epochs.items()}
    return replace(bench.plan(), infos=tuple(bench.infos[number] for number in partitions), epochs=given)


class TestPlans:
    def test_a_plan_is_compared_with_its_epochs_and_can_be_hashed(self) -> None:
        assert a_plan(epochs={0: 1}) == a_plan(epochs={0: 1}) != a_plan(epochs={0: 2})
        assert hash(a_plan(epochs={0: 1})) == hash(a_plan(epochs={0: 2}))

    def test_an_epoch_is_of_a_partition_of_the_plan(self) -> None:
        with pytest.raises(ConfigurationError, match="epochs are given for 7"):
            a_plan(epochs={7: 1})


class TestFencing:
    @pytest.mark.parametrize("delivery", list(Delivery))
    def test_every_commit_carries_the_epoch(self, wide_bench: Bench, delivery: Delivery) -> None:
        wide_bench.send("a", partition=0)
        wide_bench.send("b", partition=1)
        wide_bench.consume(Gate(), epochs={0: 5}, delivery=delivery)
        wide_bench.wait_for_commit(1, partition=0)
        wide_bench.wait_for_commit(1, partition=1)
        assert epochs_of(wide_bench) == {0: 5}

    def test_the_epoch_is_the_trackers_and_without_one_it_is_counted(self, wide_bench: Bench) -> None:
        consumption = wide_bench.consume(Gate(), epochs={1: 17})
        wait_until(lambda: consumption.partitions == {0, 1})
        parts = {part.info.partition: part for part in consumption.stay._parts.values()}
        assert (parts[0].tracker.epoch, parts[0].epoch) == (1, None)
        assert (parts[1].tracker.epoch, parts[1].epoch) == (17, 17)

    def test_one_that_comes_late_ends_and_says_under_which_epoch_another_has_it(self, bench: Bench) -> None:
        bench.send("a", "b")
        commit_as_another(bench, 0, epoch=9, offset=1, member_id=MEMBER)
        gate = Gate()
        late = bench.consume(gate, epochs={0: 8}, member_id=MEMBER)
        wait_until(late.ended.is_set)
        assert isinstance(late.see_error(), StaleEpoch)
        assert (gate.seen, late.stale, late.counts.stale_refused, bench.committed()) == ([], {0: 9}, 1, 1)

    @pytest.mark.parametrize("delivery", list(Delivery))
    def test_what_is_done_under_an_older_epoch_has_no_effect(self, bench: Bench, delivery: Delivery) -> None:
        bench.send("a", "b")
        gate = Gate("a", "b")
        older = bench.consume(gate, epochs={0: 1}, member_id=MEMBER, delivery=delivery, submit=SEQUENTIAL)
        wait_until(lambda: gate.seen)
        before = bench.committed()
        with another(bench, 0, epoch=2, member_id=MEMBER) as newer:
            wait_until(lambda: newer.poll(25) or newer.partitions)
            newer.commit({bench.infos[0].place: before or 1})
            gate.open()
            wait_until(older.ended.is_set)
            assert isinstance(older.see_error(), StaleEpoch | Displaced)
            assert (bench.committed(), epochs_of(bench)) == (before or 1, {0: 2})
            newer.poll(25)
            newer.commit({bench.infos[0].place: 2})

    def test_displaced_it_ends_and_does_not_stand_by(self, bench: Bench) -> None:
        consumption = bench.consume(Gate(), epochs={0: 1}, member_id=MEMBER)
        wait_until(lambda: consumption.partitions)
        with another(bench, 0, epoch=2, member_id=MEMBER) as newer:
            wait_until(consumption.ended.is_set)
            assert isinstance(consumption.see_error(), Displaced)
            newer.poll(25)
            assert newer.partitions

    def test_of_several_partitions_only_the_stale_one_is_left_alone(
        self, broad_bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        for number in range(3):
            broad_bench.send("a", "b", partition=number)
        commit_as_another(broad_bench, 1, epoch=9, offset=1)
        consumption = broad_bench.consume(Gate(), epochs={0: 8, 1: 8, 2: 8})
        for number in (0, 2):
            broad_bench.wait_for_commit(2, partition=number)
        wait_until(lambda: consumption.stale == {1: 9})
        assert "epoch 9" in caplog.text
        assert (consumption.partitions, consumption.counts.stale_refused) == ({0, 2}, 1)
        assert consumption.change(replace(consumption.plan, concurrency=2)), "which changes nothing about that"
        assert (consumption.stale, broad_bench.committed(1)) == ({1: 9}, 1)

        assert consumption.change(replace(consumption.plan, epochs={0: 8, 1: 10, 2: 8}))
        broad_bench.wait_for_commit(2, partition=1)
        assert (consumption.stale, epochs_of(broad_bench)) == ({}, {0: 8, 1: 10, 2: 8})

    def test_a_commit_that_is_refused_leaves_that_partition_alone_too(
        self, wide_bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gate = Gate("a")
        consumption = wide_bench.consume(gate, epochs={0: 1, 1: 1})
        wide_bench.send("a", partition=0)
        wait_until(lambda: gate.seen)
        # As if another had committed, and been gone again before we heard of it.
        [group] = wide_bench.provider._storage.groups.values()
        group.epochs[wide_bench.infos[0].place] = 2
        gate.open()
        wait_until(lambda: consumption.stale == {0: 2})
        wide_bench.send("b", partition=1)
        wide_bench.wait_for_commit(1, partition=1)
        assert (wide_bench.committed(0), consumption.counts.stale_refused) == (None, 1)
        assert consumption.error is None


class TestChanges:
    def test_partitions_come_and_go_and_those_that_stay_are_not_interrupted(self, broad_bench: Bench) -> None:
        gate = Gate("held")
        consumption = broad_bench.consumption(gate, epochs={0: 1})
        first = only(broad_bench, 0, 1, p0=1, p1=1)
        assert consumption.change(first)
        consumption.start()
        broad_bench.send("held", partition=1)
        broad_bench.send("a", partition=0)
        wait_until(lambda: set(gate.seen) == {"held", "a"})
        stay = consumption.stay
        stays = next(part for part in stay._parts.values() if part.info.partition == 1)

        assert consumption.change(only(broad_bench, 1, 2, p1=1, p2=4))
        broad_bench.send("b", partition=2)
        broad_bench.wait_for_commit(1, partition=2)
        wait_until(lambda: consumption.partitions == {1, 2})
        assert consumption.stay is stay
        assert stays in stay._parts.values(), "what was under way goes on"
        gate.open()
        broad_bench.wait_for_commit(1, partition=1)
        assert sorted(gate.seen) == ["a", "b", "held"]
        assert (broad_bench.committed(0), epochs_of(broad_bench)) == (1, {0: 1, 1: 1, 2: 4})
        broad_bench.send("nobody's", partition=0)
        broad_bench.send("c", partition=1)
        broad_bench.wait_for_commit(2, partition=1)
        assert "nobody's" not in gate.seen

    def test_what_is_given_away_is_handed_over_first(self, wide_bench: Bench) -> None:
        gate = Gate("a")
        consumption = wide_bench.consume(gate, epochs={0: 1, 1: 1}, hand_over_s=30.0)
        wide_bench.send("a", partition=0)
        wait_until(lambda: gate.seen)
        assert consumption.change(replace(only(wide_bench, 1, p1=1), hand_over_s=30.0))
        wait_until(lambda: not consumption.stay._parts[wide_bench.infos[0].place].attempt.is_open)
        gate.open()
        wide_bench.wait_for_commit(1, partition=0)
        wait_until(lambda: consumption.partitions == {1})
        assert [context.partition for context in gate.contexts] == [0]

    def test_a_new_epoch_begins_with_what_is_committed(self, bench: Bench) -> None:
        gate = Gate()
        bench.send("a")
        consumption = bench.consume(gate, epochs={0: 1})
        bench.wait_for_commit(1)
        assert consumption.change(bench.plan(epochs={0: 2}))
        wait_until(lambda: [part.epoch for part in consumption.stay._parts.values()] == [2])
        bench.send("b")
        bench.wait_for_commit(2)
        assert (gate.seen, epochs_of(bench)) == (["a", "b"], {0: 2})

    def test_a_plan_without_partitions_is_refused(self, bench: Bench) -> None:
        consumption = bench.consumption(Gate())
        with pytest.raises(ConfigurationError, match="stop the consumption"):
            consumption.change(replace(bench.plan(), infos=()))


class TestLetters:
    @pytest.mark.parametrize(("epochs", "told"), [({0: 17}, b"17"), ({}, None)], ids=["fenced", "free"])
    def test_a_letter_says_under_which_epoch_its_message_was_tried(
        self, bench: Bench, epochs: dict[int, int], told: bytes | None
    ) -> None:
        def fail(*_: object) -> None:
            raise ValueError("no")

        bench.send("bad")
        bench.consume(fail, processing=NO_RETRY, epochs=epochs)
        bench.wait_for_commit(1)
        [letter] = bench.letters()
        assert letter.headers.get(f"{PREFIX}epoch") == told
        assert bench.stories()["bad"].epoch == epochs.get(0)


def test_a_consumption_without_epochs_has_none_that_are_stale(bench: Bench) -> None:
    bench.send("a")
    commit_as_another(bench, 0, epoch=9, offset=0)
    consumption: Consumption = bench.consume(Gate())
    bench.wait_for_commit(1)
    assert (consumption.stale, consumption.counts.stale_refused, epochs_of(bench)) == ({}, 0, {0: 9})
