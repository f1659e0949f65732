"""What consumptions and producers did is in their samples, all of it and once, wherever a sample ends."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecore.clock import SYSTEM_CLOCK
from queuecore.consuming.consumption import Consumption
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.work import Outcome, Work
from queuecore.delivery import Delivery
from queuecore.errors import ProviderUnavailable, QueueError, UnknownTopic
from queuecore.messages import TENANT_ID, QueueMessage, Record
from queuecore.metrics import METRICS_TOPIC, PROCESSING_BOUNDS_MS
from queuecore.metrics.consumed import ConsumedCounts, PartitionRecorder
from queuecore.metrics.recorder import Recorder
from queuecore.metrics.samples import Sample
from queuecore.metrics.sent import SentRecorder
from queuecore.processing import Verdict, processing_strategy
from queuecore.proto.events_pb2 import ConsumedSample, SentSample
from queuecore.providers.base import Provider, SendCallback, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryProvider
from queuecore.sending import Addressed, send
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.unit.queuecore.consuming_kit import GROUP, INFO, SEQUENTIAL, Bench, a_record

COUNTS = [one.name for one in fields(ConsumedCounts) if one.name != "processing_buckets"]
OUT = TopicPartitionInfo("out")


@pytest.fixture(params=["in-memory", "log"])
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Provider]:
    opened = MemoryProvider() if request.param == "in-memory" else LogProvider(tmp_path / "log")
    with closing(opened):
        yield opened


def consumed(samples: Iterable[tuple[str, Sample]]) -> list[ConsumedSample]:
    return [one for _, one in samples if isinstance(one, ConsumedSample)]


def sent(samples: Iterable[tuple[str, Sample]]) -> dict[str, SentSample]:
    return {one.topic: one for _, one in samples if isinstance(one, SentSample)}


def total(samples: Iterable[ConsumedSample]) -> Counter[str]:
    added: Counter[str] = Counter()
    for sample in samples:
        for name in COUNTS:
            added[name] += getattr(sample, name)
        added["attempts"] += sum(sample.processing_buckets)
        for tenant in sample.tenants:
            added["tenants' messages"] += tenant.messages
            added["tenants' bytes"] += tenant.bytes
            added["tenants' errors"] += tenant.errors
            added["tenants' letters"] += tenant.dead_letters
        added["letters"] += sum(letter.letters for letter in sample.letters)
    return added


# One partition, step by step


STEPS = st.one_of(
    st.tuples(st.just("poll"), st.integers(1, 30)),
    st.tuples(st.just("settle"), st.integers(1, 30), st.sampled_from([None, b"red", b"blue"])),
    st.tuples(st.just("attempt"), st.integers(0, 5), st.sampled_from([Outcome.FAILED, Outcome.TIMED_OUT])),
    st.tuples(st.just("take")),
)


def a_work(outcome: Outcome = Outcome.SUCCEEDED, tenant: bytes | None = None, data: bytes = b"xyz") -> Work:
    work = Work(a_record(0, data=data), None)
    work.outcome, work.tenant, work.deliveries = outcome, tenant, 1
    return work


class TestOnePartition:
    @given(st.lists(STEPS))
    @settings(max_examples=200)
    def test_wherever_samples_end_they_add_up(self, steps) -> None:
        recorder = PartitionRecorder("in", "7", GROUP, INFO)
        expected: Counter[str] = Counter()
        samples = []
        for step in steps:
            match step:
                case ("poll", number):
                    recorder.polled([a_record(0, key=b"k")] * number, 3 * number)
                    expected += Counter({"polled": number, "polled_bytes": 3 * number})
                case ("settle", number, tenant):
                    recorder.settled([a_work(tenant=tenant) for _ in range(number)], [])
                    recorder.committed()
                    shares = {"tenants' messages": number, "tenants' bytes": 3 * number}
                    expected += Counter({"handled": number, "commits": 1, **shares})
                case ("attempt", number, outcome):
                    recorder.packed()
                    works = [a_work(outcome, b"red") for _ in range(number)]
                    recorder.attempted({None: 2}, Verdict(again=works[:1], given_up=works[1:]), 0.25)
                    name = "failed" if outcome is Outcome.FAILED else "timed_out"
                    errors = {name: number, "tenants' errors": number, "retried": min(number, 1)}
                    expected += Counter({"packs": 1, "attempts": 1, "succeeded": 2, **errors})
                    expected["processing_total_ms"] += 250
                case _:
                    samples.append(recorder.take(1_000))
        samples.append(recorder.take(1_000))
        assert +total(filter(None, samples)) == +expected
        assert recorder.counts.polled == expected["polled"]
        assert recorder.take(1_000) is None

    def test_what_was_given_up_is_told_by_its_error(self, bench: Bench) -> None:
        recorder = Recorder("worker-1")
        bench.send("bad", "worse", "bad", tenant="red")

        def fail(record: Record, context: object) -> None:
            raise ValueError("no") if record.data == b"bad" else KeyError("other")

        no_retry = processing_strategy("SKIP_ALL_FAILURES")
        recorded(bench, recorder, fail, processing=no_retry)
        bench.wait_for_commit(3)
        [sample] = wait_for_counts(recorder, dead_lettered=3)
        prints = {data: story.fingerprint for data, story in bench.stories().items()}
        assert {(one.fingerprint, one.tenant_id, one.letters) for one in sample.letters} == {
            (prints["bad"], "red", 2),
            (prints["worse"], "red", 1),
        }
        [tenant] = sample.tenants
        assert (tenant.tenant_id, tenant.messages, tenant.errors, tenant.dead_letters) == ("red", 3, 3, 3)

    def test_how_long_attempts_took_is_counted_up_to_their_bounds(self) -> None:
        recorder = PartitionRecorder("in", "7", GROUP, INFO)
        for took_s in (0.0005, 0.0006, 60.0, 61.0):
            recorder.attempted({None: 1}, Verdict(), took_s)
        recorder.attempted({}, Verdict(), 5.0)
        sample = recorder.take(10)
        assert sample is not None
        assert list(sample.processing_bounds_ms) == list(PROCESSING_BOUNDS_MS)
        buckets = sample.processing_buckets
        assert (buckets[0], buckets[1], buckets[-2], buckets[-1], sum(buckets)) == (1, 1, 1, 1, 4)
        assert sample.processing_total_ms == pytest.approx(121_001.1)


# Whole consumptions


def recorded(bench: Bench, recorder: Recorder, handler, **changes) -> Consumption:
    return bench.consume(handler, recording=recorder, **changes)


def wait_for_counts(recorder: Recorder, **wanted: int) -> list[ConsumedSample]:
    def is_there() -> bool:
        counts = [one.counts for one in recorder.consumed]
        return all(sum(getattr(one, name) for one in counts) == number for name, number in wanted.items())

    wait_until(is_there)
    return consumed(recorder.samples(SYSTEM_CLOCK.monotonic()))


class ToOutput:
    def compose(self, queue: str, entity: object, payload: bytes, headers: dict[str, bytes]) -> Addressed:
        return Addressed(TopicPartitionInfo(queue), QueueMessage(None, payload, headers))


def forward_or_fail(record: Record, context: DeliveryContext) -> None:
    """One in seven fails at first, one in 35 for good."""
    number = int(record.data)
    if number % 35 == 0 or (number % 7 == 0 and context.attempt == 1):
        raise ValueError("no")
    context.send("out", None, record.data, {TENANT_ID: record.headers[TENANT_ID]})


@pytest.mark.parametrize("delivery", list(Delivery))
def test_samples_taken_at_any_time_add_up_to_what_was_counted(provider: Provider, delivery: Delivery) -> None:
    messages = 700
    recorder, samples, is_over = Recorder("worker-1"), [], threading.Event()

    def take_again_and_again() -> None:
        while not is_over.wait(0.001):
            samples.extend(recorder.samples(SYSTEM_CLOCK.monotonic()))

    taking = threading.Thread(target=take_again_and_again)
    with closing(Bench(provider, partitions=2)) as bench:
        provider.admin().create_topics([TopicSpec("out")])
        for number in range(1, messages + 1):
            headers = {TENANT_ID: b"red" if number % 3 else b"blue"}
            send(bench._producer, bench.infos[number % 2], QueueMessage(None, b"%d" % number, headers))
        assert bench._producer.flush(DEADLINE_S)
        processing = processing_strategy("RETRY_FAILED", retries=1, pause_ms=0)
        consumption = bench.consumption(
            forward_or_fail, recording=recorder, delivery=delivery, processing=processing, pack_size=50,
            composer=ToOutput(), queue_id="7",
        )  # fmt: skip
        taking.start()
        consumption.start()
        wait_until(lambda: consumption.counts.settled == messages)
        assert consumption.stop(DEADLINE_S)
    is_over.set()
    taking.join(DEADLINE_S)
    samples.extend(recorder.samples(SYSTEM_CLOCK.monotonic()))
    assert_adds_up(consumption, samples)


def assert_adds_up(consumption: Consumption, samples: list[tuple[str, Sample]]) -> None:
    counts, added = consumption.counts, total(consumed(samples))
    assert {name: added[name] for name in ("polled", "succeeded", "handled", "dead_lettered", "dropped")} == {
        name: getattr(counts, name) for name in ("polled", "succeeded", "handled", "dead_lettered", "dropped")
    }
    assert (added["failed"], added["timed_out"]) == (counts.failed + counts.tmp_failed, 0)
    assert added["retried"] == counts.retried
    assert added["attempts"] == counts.successful_iterations + counts.failed_iterations
    assert added["tenants' messages"] == counts.settled
    assert added["tenants' errors"] == counts.errors
    assert added["tenants' letters"] == added["letters"] == counts.dead_lettered
    assert added["tenants' bytes"] == added["polled_bytes"]
    assert added["commits"] > 0
    assert added["packs"] > 0
    forwarded = [one for _, one in samples if isinstance(one, SentSample) and one.topic == "out"]
    assert sum(one.sent for one in forwarded) == counts.sent
    assert {(one.queue_id, one.topic, one.partition, one.group) for one in consumed(samples)} == {
        ("7", "in.0", 0, GROUP),
        ("7", "in.1", 1, GROUP),
    }


def test_messages_that_are_dropped_unfinished_are_counted(bench: Bench) -> None:
    recorder, is_there, goes_on = Recorder("worker-1"), threading.Event(), threading.Event()

    def hang(record: Record, context: object) -> None:
        is_there.set()
        assert goes_on.wait(DEADLINE_S)

    bench.send("a", "b", "c")
    consumption = recorded(bench, recorder, hang, delivery=Delivery.AT_MOST_ONCE, submit=SEQUENTIAL)
    assert is_there.wait(DEADLINE_S)
    assert not consumption.stop(0.0)
    goes_on.set()
    assert total(consumed(recorder.samples(0.0)))["dropped"] == consumption.counts.dropped > 0


def test_a_partition_that_comes_back_goes_on_counting(bench: Bench) -> None:
    recorder = Recorder("worker-1")
    for number, data in enumerate("ab", start=1):
        bench.send(data)
        consumption = recorded(bench, recorder, lambda record, context: None)
        bench.wait_for_commit(number)
        assert consumption.stop(DEADLINE_S)
    [partition] = recorder.consumed
    assert (partition.counts.handled, partition.holders) == (2, 0)


def test_partitions_that_nobody_has_are_forgotten_after_a_while(bench: Bench) -> None:
    recorder = Recorder("worker-1")
    bench.send("a")
    consumption = recorded(bench, recorder, lambda record, context: None)
    bench.wait_for_commit(1)
    now = SYSTEM_CLOCK.monotonic()
    assert len(consumed(recorder.samples(now))) + len(consumed(recorder.samples(now + 3_600))) >= 1
    assert len(recorder.consumed) == 1
    assert consumption.stop(DEADLINE_S)
    list(recorder.samples(now + 3_601))
    list(recorder.samples(now + 7_200))
    assert list(recorder.consumed) == []


def test_a_quiet_partition_is_not_told_of(bench: Bench) -> None:
    recorder = Recorder("worker-1")
    recorded(bench, recorder, lambda record, context: None)
    wait_until(lambda: recorder.consumed)
    assert list(recorder.samples(0.0)) == []


# Producers


class Refusing:
    """A producer whose provider is away."""

    default_topic = "in"

    def send(
        self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback, patience_s: float | None = None
    ) -> None:
        raise ProviderUnavailable("no room for more")

    def flush(self, timeout_s: float) -> bool:
        return True

    def stop(self) -> None: ...


class TestProducers:
    def test_what_is_stored_and_what_is_refused_is_counted(self, provider: Provider) -> None:
        provider.admin().create_topics([TopicSpec("out")])
        recorder = Recorder("web-1")
        producer = recorder.counted(provider.producer())
        for data, headers in ((b"abc", {TENANT_ID: b"red"}), (b"de", {})):
            send(producer, OUT, QueueMessage(None, data, headers)).result(DEADLINE_S)
        with pytest.raises(UnknownTopic):
            send(producer, TopicPartitionInfo("nowhere"), QueueMessage(None, b"x")).result(DEADLINE_S)
        told = sent(recorder.samples(SYSTEM_CLOCK.monotonic()))
        assert (told["out"].sent, told["out"].sent_bytes, told["out"].failed) == (2, 5, 0)
        assert {(one.tenant_id, one.messages, one.bytes) for one in told["out"].tenants} == {("red", 1, 3), ("", 1, 2)}
        assert (told["nowhere"].sent, told["nowhere"].failed) == (0, 1)
        assert list(recorder.samples(SYSTEM_CLOCK.monotonic())) == []
        producer.stop()

    def test_what_found_no_room_is_counted_and_raised(self) -> None:
        recorder = Recorder("web-1")
        producer = recorder.counted(Refusing())
        with pytest.raises(ProviderUnavailable):
            send(producer, OUT, QueueMessage(None, b""))
        assert sent(recorder.samples(0.0))["out"].failed == 1
        assert (producer.default_topic, producer.flush(0)) == ("in", True)

    def test_many_handed_in_together_are_counted_each(self, provider: Provider) -> None:
        provider.admin().create_topics([TopicSpec("out")])
        recorder = Recorder("web-1")
        producer = recorder.counted(provider.producer())
        answers: list[QueueError | None] = []
        to = [OUT, OUT, TopicPartitionInfo("nowhere")]
        producer.send_many([(info, QueueMessage(None, b"abc"), lambda _, error: answers.append(error)) for info in to])
        assert producer.flush(DEADLINE_S)
        told = sent(recorder.samples(SYSTEM_CLOCK.monotonic()))
        assert (told["out"].sent, told["out"].sent_bytes, told["nowhere"].failed) == (2, 6, 1)
        assert sorted(type(error).__name__ for error in answers) == ["NoneType", "NoneType", "UnknownTopic"]
        producer.stop()

    def test_transactions_are_counted_by_what_they_stored(self) -> None:
        recorder = Recorder("worker-1")
        recorder.stored([Addressed(OUT, QueueMessage(None, b"abc"))] * 2)
        assert sent(recorder.samples(0.0))["out"].sent_bytes == 6

    @given(st.lists(st.tuples(st.sampled_from([None, b"red", b"blue", b"x" * 200]), st.binary(max_size=9)), min_size=1))
    def test_many_stored_together_are_counted_as_one_by_one(self, stored: list[tuple[bytes | None, bytes]]) -> None:
        together, singly = SentRecorder(OUT.place), SentRecorder(OUT.place)
        headers = [{} if tenant is None else {TENANT_ID: tenant} for tenant, _ in stored]
        messages = [QueueMessage(None, data, its) for (_, data), its in zip(stored, headers, strict=True)]
        together.stored_together(messages)
        for message in messages:
            singly.stored(message)
        assert together.take(1_000) == singly.take(1_000)

    def test_events_are_not_reported_about(self, provider: Provider) -> None:
        provider.admin().create_topics([TopicSpec(METRICS_TOPIC, 4)])
        recorder = Recorder("web-1")
        info = TopicPartitionInfo(METRICS_TOPIC, 1, use_internal_partition=True)
        send(recorder.counted(provider.producer()), info, QueueMessage(None, b"x")).result(DEADLINE_S)
        recorder.partition("metrics", "7", GROUP, info).polled([a_record(0)], 1)
        assert list(recorder.samples(0.0)) == []
        assert recorder.sent_to(ProviderPartition(METRICS_TOPIC, 1)) is None
