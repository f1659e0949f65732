"""What requests are like: counted, sampled for the pipeline, shown to Prometheus, and said aloud beyond thresholds."""

import logging
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from queuecore.errors import ConfigurationError, InvalidName, NotSupported, ProviderUnavailable, RequestsStopped
from queuecore.factories import Channel, Deployment, queue_factory
from queuecore.messages import QueueMessage
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event, RequestSample
from queuecore.providers.base import SendCallback, TopicSpec
from queuecore.providers.memory import MemoryProvider
from queuecore.requests import (
    LAG_BOUNDS_MS,
    Request,
    RequestOptions,
    RequestTemplate,
    RequestTopics,
    ResponseOptions,
    ResponseTemplate,
    lag_percentile,
)
from queuecore.requests.counts import LagHistogram
from queuecore.requests.prometheus import RequestCollector
from queuecore.requests.reporting import RequestReporter, RequestWatch
from queuecore.requests.thresholds import RequestThresholds, find_breaches
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, ServiceType, TopicPartitionInfo

TOPICS = RequestTopics.named("prices", partitions=2)


def echo(request: Request) -> bytes:
    return request.data


@pytest.fixture
def provider() -> Iterator[MemoryProvider]:
    provider = MemoryProvider()
    provider.admin().create_topics([TopicSpec(METRICS_TOPIC, METRICS_PARTITIONS), *TOPICS.specs])
    yield provider
    provider.close()


@pytest.fixture
def template(provider: MemoryProvider) -> Iterator[RequestTemplate]:
    with RequestTemplate(provider, TOPICS, "shop-1") as template:
        yield template


def samples(provider: MemoryProvider) -> list[Event]:
    reader = provider.reader()
    places = [ProviderPartition(METRICS_TOPIC, number) for number in range(METRICS_PARTITIONS)]
    return [Event.FromString(record.data) for place in places for record in reader.read(place, 0, 100)]


def buckets(*lags_ms: float) -> list[int]:
    histogram = LagHistogram()
    histogram.add(lags_ms)
    return histogram.buckets


def test_lags_are_counted_up_to_their_bounds() -> None:
    counted = buckets(0.2, 1, 1.1, 60_000, 60_001)
    assert (counted[0], counted[1], counted[-2], counted[-1]) == (2, 1, 1, 1)
    assert sum(counted) == 5
    assert len(counted) == len(LAG_BOUNDS_MS) + 1


@pytest.mark.parametrize(
    ("lags_ms", "percent", "bound_ms"),
    [([], 99, 0), ([3], 50, 5), ([3] * 99 + [900], 99, 5), ([3] * 98 + [900] * 2, 99, 1_000), ([90_000], 99, "inf")],
)
def test_percentiles_are_the_bounds_below_which_so_many_are(lags_ms, percent, bound_ms) -> None:
    assert lag_percentile(buckets(*lags_ms), percent) == float(bound_ms)


@pytest.mark.parametrize(
    ("sample", "timeouts", "metrics"),
    [
        (RequestSample(pending=8_000), 100, []),
        (RequestSample(pending=8_001), 0, ["pending_requests_count"]),
        (RequestSample(), 101, ["request_timeout_count"]),
        (RequestSample(lag_buckets=buckets(5_000)), 0, []),
        (RequestSample(lag_buckets=buckets(5_001)), 0, ["response_lag"]),
        (
            RequestSample(pending=9_000, lag_buckets=buckets(70_000)),
            500,
            ["pending", "request_timeout", "response_lag"],
        ),
    ],
)
def test_what_is_beyond_its_threshold_is_found(sample: RequestSample, timeouts: int, metrics: list[str]) -> None:
    found = list(find_breaches(sample, timeouts, RequestThresholds()))
    assert len(found) == len(metrics)
    for breach, metric in zip(found, metrics, strict=True):
        assert breach.metric.startswith(metric)
        assert str(breach.threshold) in str(breach)


def test_a_sample_has_what_happened_since_the_last(provider: MemoryProvider, template: RequestTemplate) -> None:
    watch = RequestWatch(template, RequestThresholds(), 100.0)
    with ResponseTemplate(provider, TOPICS, echo):
        for _ in range(3):
            template.send(b"1").result(DEADLINE_S)
    first = watch.look(110.0)
    assert (first.request_topic, first.interval_ms) == ("prices.requests", 10_000)
    assert (first.sent, first.answered, sum(first.lag_buckets), first.pending) == (3, 3, 3, 0)
    assert list(first.lag_bounds_ms) == list(LAG_BOUNDS_MS)
    template.send(b"nobody answers")
    second = watch.look(115.0)
    assert (second.interval_ms, second.sent, second.answered, second.pending) == (5_000, 1, 0, 1)
    assert second.pending_memory_bytes > 0
    assert (sum(first.age_buckets), sum(second.age_buckets)) == (0, 1)
    assert len(second.age_buckets) == len(second.lag_buckets)
    assert second.pending_limit == 10_000


def test_timeouts_are_of_the_last_minute_however_often_it_is_looked(
    template: RequestTemplate, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watch = RequestWatch(template, RequestThresholds(timeouts_per_minute=3), 0.0)
    for at in (10.0, 20.0):
        futures = [template.send(b"1", timeout_ms=1) for _ in range(2)]
        for future in futures:
            assert future.exception(DEADLINE_S) is not None
        watch.look(at)
    assert [breach.value for breach in watch.breaches] == [4]
    watch.look(30.0)
    assert caplog.text.count("request_timeout_count is 4, above 3") == 1
    watch.look(71.0)
    assert watch.breaches == ()
    assert "request_timeout_count is below its threshold again" in caplog.text


def test_samples_go_to_the_pipeline_of_each_instance_in_one_partition(
    provider: MemoryProvider, template: RequestTemplate
) -> None:
    with RequestReporter(provider.producer(), [template], interval_s=0.01) as reporter:
        wait_until(lambda: len(samples(provider)) >= 3)
        assert reporter.breaches == ()
    events = samples(provider)
    assert {(event.version, event.service_id, event.WhichOneof("body")) for event in events} == {
        (1, "shop-1", "request_sample")
    }
    assert reporter.dropped == 0


class Refusing:
    """A producer whose provider is away."""

    default_topic = ""

    def send(
        self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback, patience_s: float | None = None
    ) -> None:
        raise ProviderUnavailable("no room for more")

    def flush(self, timeout_s: float) -> bool:
        return True

    def stop(self) -> None: ...


def test_samples_that_nobody_takes_are_dropped_and_counted(template: RequestTemplate) -> None:
    reporter = RequestReporter(Refusing(), [template])
    reporter.report()
    reporter.report()
    assert reporter.dropped == 2


def test_prometheus_reads_what_is_asked_for(provider: MemoryProvider, template: RequestTemplate) -> None:
    registry = CollectorRegistry()
    registry.register(RequestCollector([template]))
    with ResponseTemplate(provider, TOPICS, echo):
        template.send(b"1").result(DEADLINE_S)
    template.send(b"2", timeout_ms=1).exception(DEADLINE_S)
    template.send(b"3")
    shown = generate_latest(registry).decode()
    labels = '{request_topic="prices.requests",service_id="shop-1"}'
    assert f"pending_requests_count{labels} 1.0" in shown
    assert f"request_timeout_count_total{labels} 1.0" in shown
    assert f"response_lag_seconds_count{labels} 1.0" in shown
    assert 'response_lag_seconds_bucket{le="0.001",request_topic="prices.requests"' in shown
    assert f"pending_requests_memory_bytes{labels}" in shown


# Where requests go, and how they are set


def test_topics_of_the_platform_are_those_of_the_catalogue() -> None:
    with queue_factory(Deployment.MONOLITH, ServiceType.TB_CORE, "in-memory", service_id="core-1") as factory:
        js = factory.requester(Channel.JS_REQUESTS)
        assert (js.topics.name, len(js.topics.requests)) == ("js_eval.requests", 30)
        assert js.response_topic == "js_eval.responses.core-1"
        edqs = factory.requester(Channel.EDQS_REQUESTS)
        assert [info.full_topic_name for info in edqs.topics.requests[:2]] == ["edqs.requests.0", "edqs.requests.1"]
        with pytest.raises(NotSupported, match="cannot send to transport_api_requests"):
            factory.requester(Channel.TRANSPORT_API_REQUESTS)
        with pytest.raises(NotSupported, match="cannot read js_requests"):
            factory.responder(Channel.JS_REQUESTS, echo)
        with pytest.raises(InvalidName, match=r"tb_core takes no requests; those that do end in \.requests"):
            factory.requester(Channel.CORE)


def test_a_transport_asks_a_core_by_their_factories() -> None:
    provider = MemoryProvider()
    core = queue_factory(Deployment.MONOLITH, ServiceType.TB_CORE, "in-memory", opened=provider)
    transport = queue_factory(
        Deployment.MONOLITH, ServiceType.TB_TRANSPORT, "in-memory", opened=provider, service_id="transport-1"
    )
    with (
        core.responder(Channel.TRANSPORT_API_REQUESTS, echo),
        transport.requester(Channel.TRANSPORT_API_REQUESTS) as asking,
    ):
        answer = asking.send(b"who is device 7").result(DEADLINE_S)
    assert (answer.topic, answer.data) == ("tb_transport.api.responses.transport-1", b"who is device 7")
    provider.close()


def test_names_that_cannot_be_are_refused(provider: MemoryProvider) -> None:
    with pytest.raises(InvalidName):
        RequestTemplate(provider, TOPICS, "not a name")
    with pytest.raises(InvalidName):
        RequestTopics.named("a b")


@pytest.mark.parametrize("wrong", [{"max_pending_requests": 0}, {"max_request_timeout_ms": 0}, {"poll_interval_ms": 0}])
def test_options_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="1 is the least"):
        RequestOptions(**wrong)


@pytest.mark.parametrize(("pending", "polled"), [(10_000, 1_000), (10, 2), (1, 1)])
def test_a_poll_is_a_part_of_what_may_be_pending(pending: int, polled: int) -> None:
    assert ResponseOptions(max_pending_requests=pending).poll_requests == polled


@pytest.mark.parametrize("timeout_ms", [0, -1, 60_001])
def test_a_timeout_that_cannot_be_is_refused(template: RequestTemplate, timeout_ms: int) -> None:
    with pytest.raises(ConfigurationError, match="use 1 to 60000, or raise max_request_timeout_ms"):
        template.send(b"", timeout_ms=timeout_ms)


def test_templates_are_started_once(provider: MemoryProvider, template: RequestTemplate) -> None:
    with pytest.raises(RequestsStopped, match="make a new template"):
        template.start()
    responder = ResponseTemplate(provider, TOPICS, echo)
    assert responder.stop()
    with pytest.raises(RequestsStopped, match="make a new one"):
        responder.start()
    with pytest.raises(RequestsStopped, match=r"call start\(\) first"):
        RequestTemplate(provider, TOPICS, "shop-2").send(b"").result(0)
