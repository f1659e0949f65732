"""Events on their way to the pipeline: nobody waits for them, they are bounded, and what cannot go is counted."""

import logging
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from queuecore import open_queues
from queuecore.errors import ProviderUnavailable, UnknownTopic
from queuecore.messages import QueueMessage, Record
from queuecore.metrics import EVENT_VERSION, METRICS_PARTITIONS, METRICS_TOPIC, OTHER
from queuecore.metrics import recorder as metrics_recorder
from queuecore.metrics import reporting as metrics_reporting
from queuecore.metrics.prometheus import RuntimeCollector
from queuecore.metrics.recorder import Recorder
from queuecore.metrics.reporting import MOST_UNANSWERED, EventReporter, create_metrics_topic, reporting
from queuecore.metrics.samples import Sample, to_event
from queuecore.processing import processing_strategy
from queuecore.proto.events_pb2 import ConsumedSample, Event, RequestSample, SentSample
from queuecore.providers.base import Provider, SendCallback
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryProvider
from queuecore.sending import send
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.unit.queuecore.consuming_kit import GROUP, Bench


@pytest.fixture(params=["in-memory", "log"])
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Provider]:
    opened = MemoryProvider() if request.param == "in-memory" else LogProvider(tmp_path / "log")
    with closing(opened):
        yield opened


def events(provider: Provider) -> list[Event]:
    if METRICS_TOPIC not in provider.admin().topics():
        return []
    places = [ProviderPartition(METRICS_TOPIC, number) for number in range(METRICS_PARTITIONS)]
    with closing(provider.reader()) as reader:
        return [Event.FromString(record.data) for place in places for record in reader.read(place, 0, 1_000)]


class Source:
    """Something to tell, each time."""

    def __init__(self, *samples: Sample) -> None:
        self.samples_each_time = samples or (SentSample(topic="out", sent=1),)

    def samples(self, now: float) -> Iterator[tuple[str, Sample]]:
        return (("web-1", sample) for sample in self.samples_each_time)


class Producer:
    """One whose provider answers when it is told to; `refusal` is raised by every send."""

    default_topic = ""

    def __init__(self, refusal: ProviderUnavailable | None = None) -> None:
        self.refusal = refusal
        self.callbacks: list[SendCallback] = []
        self.asked = 0

    def send(
        self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback, patience_s: float | None = None
    ) -> None:
        self.asked += 1
        if self.refusal is not None:
            raise self.refusal
        self.callbacks.append(callback)

    def flush(self, timeout_s: float) -> bool:
        return True

    def stop(self) -> None: ...


AWAY = ProviderUnavailable("no room for more")


@pytest.mark.parametrize(
    ("sample", "field"),
    [
        (RequestSample(request_topic="js", pending=3), "request_sample"),
        (ConsumedSample(queue_id="7", polled=3, processing_buckets=[1, 2]), "consumed_sample"),
        (SentSample(topic="out", sent=3), "sent_sample"),
    ],
)
def test_an_event_says_its_version_time_and_service(sample: Sample, field: str) -> None:
    event = Event.FromString(to_event(sample, "web-1", 123).SerializeToString())
    assert (event.version, event.at_ms, event.service_id, event.WhichOneof("body")) == (
        EVENT_VERSION, 123, "web-1", field
    )  # fmt: skip
    assert getattr(event, field) == sample


def test_a_consumption_is_reported_again_and_again_and_the_last_of_it_at_the_end(provider: Provider) -> None:
    recorder = Recorder("worker-1")
    with closing(Bench(provider)) as bench, reporting(provider, recorder, 0.01) as reporter:
        bench.consume(lambda record, context: None, recording=recorder, queue_id="7")
        bench.send("a", tenant="red")
        wait_until(lambda: any(event.consumed_sample.handled for event in events(provider)))
        bench.send("b", tenant="red")
        bench.wait_for_commit(2)
        wait_until(lambda: [one.counts.handled for one in recorder.consumed] == [2])
    told = events(provider)
    assert sum(event.consumed_sample.handled for event in told) == 2
    assert {event.service_id for event in told} == {"worker-1"}
    assert reporter.dropped == 0


def test_the_topic_is_created_where_it_is_missing_and_when_it_is_lost(provider: Provider) -> None:
    with reporting(provider, Source(), 0.01):
        wait_until(lambda: events(provider))
        provider.admin().delete_topics([METRICS_TOPIC])
        wait_until(lambda: events(provider))
    assert provider.admin().topics()[METRICS_TOPIC].partitions == METRICS_PARTITIONS


class TestProviderAway:
    def test_the_first_that_is_refused_keeps_the_others_from_waiting(self) -> None:
        producer = Producer(AWAY)
        reporter = EventReporter(producer, [Source(*[SentSample(sent=1)] * 5)])
        reporter.report()
        assert (producer.asked, reporter.dropped) == (1, 5)

    def test_no_more_than_so_many_wait_to_be_stored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metrics_reporting, "_PATIENCE_S", 0)
        producer = Producer()
        reporter = EventReporter(producer, [Source(*[SentSample(sent=1)] * (MOST_UNANSWERED // 2 + 1))])
        reporter.report()
        reporter.report()
        assert len(producer.callbacks) == MOST_UNANSWERED
        assert reporter.dropped == 2
        for callback in producer.callbacks:
            callback(None, None)
        reporter.report()
        assert reporter.dropped == 2

    def test_what_is_refused_later_is_counted_too(self, caplog: pytest.LogCaptureFixture) -> None:
        producer = Producer()
        reporter = EventReporter(producer, [Source()])
        for _ in range(3):
            reporter.report()
        for callback in producer.callbacks:
            callback(None, AWAY)
        assert reporter.dropped == 3
        assert [record.levelno for record in caplog.records if "dropped" in record.message] == [logging.WARNING]

    def test_a_second_outage_is_said_as_well(self, caplog: pytest.LogCaptureFixture) -> None:
        producer = Producer()
        reporter = EventReporter(producer, [Source()])
        for error in (AWAY, AWAY, None, AWAY):
            reporter.report()
            producer.callbacks[-1](None, error)
        assert [record.levelno for record in caplog.records if "dropped" in record.message] == [logging.WARNING] * 2

    def test_one_that_finds_no_room_waits_for_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metrics_reporting, "MOST_UNANSWERED", 1)
        monkeypatch.setattr(metrics_reporting, "_PATIENCE_S", DEADLINE_S)
        producer = Producer()
        reporter = EventReporter(producer, [Source(SentSample(sent=1), SentSample(sent=2))])
        reports = threading.Thread(target=reporter.report)
        reports.start()
        wait_until(lambda: len(producer.callbacks) == 1)
        producer.callbacks[0](None, None)
        reports.join(DEADLINE_S)
        assert (len(producer.callbacks), reporter.dropped) == (2, 0)

    def test_nothing_is_sent_before_the_topic_can_be_seen_to(self) -> None:
        producer, is_away = Producer(), True

        def provision() -> None:
            if is_away:
                raise AWAY

        reporter = EventReporter(producer, [Source()], provision=provision)
        reporter.report()
        assert (producer.asked, reporter.dropped) == (0, 1)
        is_away = False
        reporter.report()
        assert (producer.asked, reporter.dropped) == (1, 1)

    def test_a_topic_that_is_gone_is_seen_to_again(self) -> None:
        producer, seen_to = Producer(), []
        reporter = EventReporter(producer, [Source()], provision=lambda: seen_to.append(1))
        reporter.report()
        reporter.report()
        assert len(seen_to) == 1
        producer.callbacks.pop()(None, UnknownTopic("gone"))
        reporter.report()
        assert len(seen_to) == 2

    def test_what_is_consumed_goes_on(self, bench: Bench) -> None:
        recorder = Recorder("worker-1")
        with EventReporter(Producer(AWAY), [recorder], interval_s=0.001) as reporter:
            bench.consume(lambda record, context: None, recording=recorder)
            for number in range(1, 6):
                bench.send("a")
                bench.wait_for_commit(number)
            wait_until(lambda: reporter.dropped > 0)
        [partition] = recorder.consumed
        assert partition.counts.polled == 5

    def test_a_source_that_raises_does_not_end_the_reporter(self, caplog: pytest.LogCaptureFixture) -> None:
        class Broken(Source):
            def samples(self, now: float) -> Iterator[tuple[str, Sample]]:
                if not caplog.records:
                    raise RuntimeError("a defect")
                return super().samples(now)

        producer = Producer()
        with EventReporter(producer, [Broken()], interval_s=0.001):
            wait_until(lambda: producer.callbacks)
        assert "a report is incomplete" in caplog.text


def test_samples_say_how_long_they_are_of(bench: Bench) -> None:
    clock = ManualClock()
    recorder = Recorder("worker-1", clock=clock)
    producer = recorder.counted(bench.provider.producer())
    for waited_s in (2.0, 5.0):
        send(producer, bench.infos[0], QueueMessage(None, b"x")).result(DEADLINE_S)
        clock.advance(waited_s)
        [(_, sample)] = recorder.samples(clock.monotonic())
        assert sample.interval_ms == waited_s * 1000


# Libraries' users


def test_a_program_reports_by_one_argument(tmp_path: Path) -> None:
    with open_queues("log", folder=tmp_path, producer_id="shop", metrics_interval_s=60) as queues:
        queues.create("orders")
        queues.subscribe("orders", lambda record, context: None, group="billing")
        queues.publish("orders", "customer-1", b"2 apples").result(DEADLINE_S)
        assert queues.recorder is not None
        recorder = queues.recorder
        wait_until(lambda: sum(one.counts.handled for one in recorder.consumed) == 1)
        assert queues.names() == ["orders"]
    with closing(LogProvider(tmp_path)) as provider:
        told = events(provider)
    assert {event.service_id for event in told} == {"shop"}
    [consumed] = [event.consumed_sample for event in told if event.HasField("consumed_sample")]
    assert (consumed.queue_id, consumed.group, consumed.handled) == ("orders", "billing", 1)
    [sent] = [event.sent_sample for event in told if event.HasField("sent_sample")]
    assert (sent.topic, sent.sent, sent.sent_bytes) == ("orders.0", 1, 8)


def test_a_program_that_does_not_ask_for_it_reports_nothing() -> None:
    with open_queues("in-memory") as queues:
        queues.create("orders")
        queues.publish("orders", None, b"1").result(DEADLINE_S)
        assert queues.recorder is None
        assert METRICS_TOPIC not in queues.provider.admin().topics()


# Prometheus


def shown(*recorders: Recorder) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(RuntimeCollector(recorders))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        f"{one.name}{{{','.join(sorted(one.labels.values()))}}}": one.value
        for family in families
        for one in family.samples
    }


class TestPrometheus:
    def test_the_names_are_those_of_the_original(self, bench: Bench) -> None:
        recorder = Recorder("worker-1")

        def fail_bad(record: Record, context: object) -> None:
            if record.data == b"bad":
                raise ValueError("no")

        bench.send("good", "bad")
        bench.consume(fail_bad, recording=recorder, processing=processing_strategy("SKIP_ALL_FAILURES"))
        bench.wait_for_commit(2)
        send(recorder.counted(bench.provider.producer()), bench.infos[0], QueueMessage(None, b"x")).result(DEADLINE_S)
        wait_until(lambda: sum(one.counts.handled for one in recorder.consumed) == 2)
        list(recorder.samples(0.0))
        numbers = shown(recorder)
        assert numbers[f"queue_consumer_polled_total{{0,{GROUP},in,in.0}}"] == 3
        assert numbers[f"queue_errors_total{{0,failed,{GROUP},in,in.0}}"] == 1
        assert numbers[f"queue_errors_total{{0,{GROUP},in,in.0,timed_out}}"] == 0
        assert numbers["queue_producer_sent_total{0,in.0}"] == 1
        assert numbers["queue_producer_failed_total{0,in.0}"] == 0
        assert numbers[f"queue_processing_time_seconds_bucket{{+Inf,{GROUP},in}}"] >= 1
        assert numbers[f"queue_processing_time_seconds_sum{{{GROUP},in}}"] > 0

    def test_of_several_recorders_each_partition_is_shown_once(self) -> None:
        recorders = [Recorder("host"), Recorder("web")]
        for recorder in recorders:
            recorder.stored([(TopicPartitionInfo("out"), QueueMessage(None, b"x"))])
        assert shown(*recorders)["queue_producer_sent_total{0,out}"] == 2

    def test_partitions_beyond_the_limit_are_shown_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metrics_recorder, "MOST_PARTITIONS", 2)
        recorder = Recorder("worker-1")
        for number in range(5):
            info = TopicPartitionInfo("in", number)
            recorder.partition("in", "7", GROUP, info).polled([], 0)
            recorder.stored([(info, QueueMessage(None, b"x"))])
        numbers = shown(recorder)
        assert numbers[f"queue_producer_sent_total{{{OTHER},{OTHER}}}"] == 3
        polled = [name for name in numbers if name.startswith("queue_consumer_polled_total")]
        assert len(polled) == 3


def test_creating_the_topic_again_changes_nothing(provider: Provider) -> None:
    for _ in range(2):
        create_metrics_topic(provider.admin())
    assert provider.admin().topics()[METRICS_TOPIC].partitions == METRICS_PARTITIONS
