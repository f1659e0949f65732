"""The pipeline end to end: a real log, a real Spark, a real database."""

import fcntl
import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from django.utils import timezone
from pyspark.sql import SparkSession
from pytest_django.fixtures import Settings

from queueapi.actions.actor import SYSTEM
from queueapi.actions.pipeline import start_backfill
from queueapi.config import config
from queueapi.models import (
    DeadLetterTrend,
    LagCurrent,
    LagDay,
    LagHour,
    LagMinute,
    PartitionHeat,
    PipelineRun,
    PipelineStanding,
    ProcessingDay,
    ProcessingHour,
    ProcessingMinute,
    Queue,
    QueueSkew,
    RequestCurrent,
    RequestDay,
    RequestHour,
    RequestStats,
    Tenant,
    TenantUsageDay,
)
from queueapi.runtime import open_provider
from queuecore.config.provider_settings import KafkaSettings
from queuecore.config.queue_tree import QueueSettings
from queuecore.messages import QueueMessage
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC, PROCESSING_BOUNDS_MS
from queuecore.proto.events_pb2 import (
    ConsumedSample,
    EntityShare,
    Event,
    LetterShare,
    OffsetSample,
    RequestSample,
    SentSample,
    TenantShare,
)
from queuecore.providers.base import Provider, TopicSpec
from queuecore.requests import LAG_BOUNDS_MS
from queuecore.sending import send
from queuecore.testing.services import KafkaService
from queuecore.testing.services.kafka_secured import SASL, SecuredKafka
from queuecore.testing.services.ports import free_port
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.benchmarks.pipeline_events import ALWAYS, all_reporters, fill_log
from tests.integration.spark_cluster import WORKERS, spark_cluster
from tests.services import require_or_skip, running
from workers.operations.runner import run_operation
from workers.spark import backfill, pipeline, session, waiting
from workers.spark.backfill import backfill_day
from workers.spark.errors import PipelineBusy, PipelineFailed, SparkUnavailable
from workers.spark.pipeline import checkpoint_dir, event_store, run_pipeline
from workers.spark.session import missing_java, spark_session, spark_settings
from workers.spark.source import SMALLEST_TASK
from workers.spark.store import EventStore
from workers.spark.summaries import make_all
from workers.spark.tasks import run_pipeline_task
from workers.spark.waiting import ALONE_S, NoExecutors, executors

# Spark stores a batch on a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

NOW_MS = time.time_ns() // 1_000_000
ROOT = Path(__file__).resolve().parents[2]
NO_WORKER = r"^Spark at \S+ has had no worker for this run for 60 s, and the run was ended; start the cluster's workers"


class Metrics:
    """The metrics topic, and a queue whose samples are sent there."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        tenant = Tenant.objects.create(name="Acme")
        self.queue = Queue.objects.create(tenant=tenant, name="Main", topic="tb_main", handler="count", partitions=2)
        self._sent = 0

    def create_topic(self) -> None:
        self.provider.admin().create_topics([TopicSpec(METRICS_TOPIC, METRICS_PARTITIONS)])

    def sample(self, second: float, end: int, committed: int | None = None) -> None:
        """One sample of each of the queue's partitions, `second` seconds after the start."""
        for partition in range(self.queue.partitions):
            body = OffsetSample(
                queue_id=str(self.queue.id),
                partition=partition,
                topic=f"tb_main.{partition}",
                group=f"main-consumer-{partition}",
                end_offset=end,
                committed_offset=committed,
            )
            at_ms = NOW_MS - 60_000 + int(second * 1000)
            self.send(Event(version=1, at_ms=at_ms, service_id="test", offset_sample=body).SerializeToString())

    def send(self, data: bytes) -> None:
        """To the partitions by turns, as the sampler does."""
        self._sent += 1
        info = TopicPartitionInfo(METRICS_TOPIC, self._sent % METRICS_PARTITIONS, use_internal_partition=True)
        send(self.provider.producer(), info, QueueMessage(None, data)).result(30)


@pytest.fixture(autouse=True)
def _data_folder(settings: Settings, tmp_path: Path) -> None:
    if problem := missing_java():
        require_or_skip(problem)
    spark_session()  # started once, with the folder of the whole run
    settings.SWITCHYARD = replace(config(), data_dir=tmp_path)


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    provider = open_provider(config())
    yield Metrics(provider)
    provider.close()


def lag(*fields: str) -> list[Any]:
    return list(LagCurrent.objects.values_list("partition", *fields).order_by("partition"))


def stored_samples(kind: str = "offset_samples") -> int:
    """How many are in Parquet."""
    store = event_store(config())
    files = [file.path for one, day in store.days() if one == kind for file in store.files(kind, day)]
    return sum(pq.read_metadata(path).num_rows for path in files)


def test_each_run_takes_just_what_is_new(metrics: Metrics) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100, committed=20)
    first = run_pipeline()
    assert (first.batches, first.events) == (1, 2)
    assert lag("lag_messages", "produced_per_s") == [(0, 80, None), (1, 80, None)]

    metrics.sample(5, end=150, committed=70)
    metrics.sample(10, end=200, committed=120)
    second = run_pipeline()
    assert (second.batches, second.events) == (1, 4)
    assert lag("lag_messages", "produced_per_s", "consumed_per_s") == [(0, 80, 10.0, 10.0), (1, 80, 10.0, 10.0)]

    assert run_pipeline().batches == 0
    runs = PipelineRun.objects.order_by("batch_id").values_list("batch_id", "events")
    assert list(runs) == [(0, 2), (1, 4)]


def test_before_the_first_event_a_run_finds_nothing(metrics: Metrics) -> None:
    assert run_pipeline().events == 0
    metrics.create_topic()
    metrics.sample(0, end=3)
    assert run_pipeline().events == 2
    assert lag("lag_messages") == [(0, 3), (1, 3)]


def test_a_repeated_batch_has_no_effect(metrics: Metrics) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    run_pipeline()
    LagCurrent.objects.update(lag_messages=7)
    for name in ("0", ".0.crc"):  # as if the worker died right after the database had it
        (checkpoint_dir(config()) / "commits" / name).unlink()

    assert run_pipeline().batches == 0
    assert lag("lag_messages") == [(0, 7), (1, 7)]
    metrics.sample(5, end=110)
    assert run_pipeline().events == 2
    assert lag("lag_messages") == [(0, 110), (1, 110)]


def test_a_batch_that_could_not_be_stored_is_stored_by_the_next_run(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "store_batch", _refuse)
        with pytest.raises(PipelineFailed, match=r"^the run ended early: no space left$"):
            run_pipeline()
    metrics.sample(5, end=200)
    assert (run_pipeline().events, PipelineRun.objects.count()) == (4, 2)
    assert lag("lag_messages") == [(0, 200), (1, 200)]


def _refuse(*_: object) -> bool:
    raise OSError("no space left")


def test_a_batch_that_was_committed_and_not_published_is_published_by_the_next_run(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    with monkeypatch.context() as patched:
        patched.setattr(EventStore, "publish", _refuse)
        with pytest.raises(PipelineFailed):
            run_pipeline()
    assert (stored_samples(), lag("lag_messages")) == (0, [(0, 100), (1, 100)])
    assert (run_pipeline().batches, stored_samples()) == (0, 2)
    metrics.sample(5, end=150)
    assert (run_pipeline().events, stored_samples()) == (2, 4)


def test_one_process_runs_it_at_a_time(metrics: Metrics) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    with (config().folder("spark") / "lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(PipelineBusy, match="another process runs the pipeline"):
            run_pipeline()
        run_pipeline_task()
        assert not PipelineStanding.objects.exists()
    run_pipeline_task()
    standing = PipelineStanding.objects.get()
    assert (standing.failed_runs, standing.error, standing.backlog_events) == (0, "", 0)


def test_a_run_that_hangs_is_ended_and_says_so(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    monkeypatch.setattr(pipeline, "is_over", lambda *_: False)
    with (
        _session_is_ended(monkeypatch),
        pytest.raises(PipelineFailed, match=r"^the run was not over after 900 s .* has workers that are free"),
    ):
        run_pipeline()


def test_a_run_that_nobody_works_for_is_ended_and_says_so(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)

    def wait_in_vain(*_: object) -> bool:
        raise NoExecutors

    monkeypatch.setattr(pipeline, "is_over", wait_in_vain)
    with _session_is_ended(monkeypatch), pytest.raises(SparkUnavailable, match=NO_WORKER):
        run_pipeline()
    assert not PipelineRun.objects.exists()


@contextmanager
def _session_is_ended(monkeypatch: pytest.MonkeyPatch, by: ModuleType = pipeline) -> Iterator[None]:
    """Once. Its queries are, and the session is left to other tests."""
    ended = []

    def stop_queries() -> None:
        ended.append(True)
        for query in spark_session().streams.active:
            query.stop()

    monkeypatch.setattr(by, "stop_session", stop_queries)
    yield
    assert ended == [True]


@pytest.mark.parametrize(
    ("spark_has", "alone_s", "in_time_s", "error", "why"),
    [
        pytest.param(1, ALONE_S, 0, PipelineFailed, r"not over after 0 s .* has workers that are free", id="it hangs"),
        pytest.param(0, 0.0, 900, SparkUnavailable, "had no worker .* start the cluster's workers", id="for nobody"),
    ],
)
def test_a_back_fill_that_does_not_end_is_ended_and_says_so(
    spark_has: int, alone_s: float, in_time_s: int, error: type[Exception], why: str,
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch, settings: Settings,
) -> None:  # fmt: skip
    """And whoever waits for the lock gets it."""
    settings.SWITCHYARD = replace(config(), pipeline_timeout_s=in_time_s)
    with monkeypatch.context() as patched:
        patched.setattr(backfill, "executors", lambda _: spark_has)
        patched.setattr(waiting, "ALONE_S", alone_s)
        patched.setattr(backfill, "make_all", _make_nothing_for_long)
        with _session_is_ended(monkeypatch, backfill), pytest.raises(error, match=why):
            backfill_day(_minute().date(), lambda: pytest.fail("nothing was made"))
    metrics.create_topic()
    metrics.sample(0, end=100)
    settings.SWITCHYARD = replace(config(), pipeline_timeout_s=900)
    assert run_pipeline().events == 2


def _make_nothing_for_long(*_: object) -> Iterator[Any]:
    """A task that is cancelled goes on for a while where its session does."""
    spark_session().range(1).selectExpr("java_method('java.lang.Thread', 'sleep', id + 30000)").toArrow()
    yield from ()


def test_what_outlives_its_run_stores_nothing(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run takes the same events: each is counted, and kept, once."""
    metrics.create_topic()
    metrics.sample(0, end=100)
    is_under_way, may_go_on = threading.Event(), threading.Event()

    def make_slowly(*arguments: Any) -> Iterator[Any]:
        is_under_way.set()
        may_go_on.wait(60)
        return make_all(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "make_all", make_slowly)
        patched.setattr(pipeline, "is_over", lambda *_: not is_under_way.wait(60))
        patched.setattr(pipeline, "stop_session", lambda: None)
        with pytest.raises(PipelineFailed, match="not over after"):
            run_pipeline()
        may_go_on.set()
        wait_until(lambda: not spark_session().streams.active)
    assert not PipelineRun.objects.exists()
    assert (run_pipeline().events, stored_samples()) == (2, 2)


def test_checkpoints_do_not_pile_up(metrics: Metrics, request: pytest.FixtureRequest) -> None:
    metrics.create_topic()
    name, kept = "spark.sql.streaming.minBatchesToRetain", 2
    request.addfinalizer(partial(spark_session().conf.set, name, spark_settings(config())[name]))
    spark_session().conf.set(name, kept)
    for second in range(kept + 2):
        metrics.sample(second, end=100 + second)
        run_pipeline()
    for folder in ("offsets", "commits"):
        names = [path.name for path in (checkpoint_dir(config()) / folder).iterdir() if path.name.isdigit()]
        assert len(names) <= kept + 1


def test_every_table_is_filled_of_what_processes_report(metrics: Metrics) -> None:
    tenant, entity = metrics.queue.tenant_id, UUID("784f394c-42b6-435a-983c-b7beff2784f9")
    share = TenantShare(tenant_id=str(tenant), messages=30, bytes=300, errors=2, dead_letters=1)
    consumed = ConsumedSample(
        queue_id=str(metrics.queue.id), partition=0, topic="tb_main.0", group="main-consumer-0", interval_ms=10_000,
        polled=30, polled_bytes=300, packs=3, commits=3, succeeded=29, failed=2, retried=1, handled=29, dead_lettered=1,
        processing_bounds_ms=PROCESSING_BOUNDS_MS, processing_buckets=[3] + [0] * len(PROCESSING_BOUNDS_MS),
        processing_total_ms=1.5, tenants=[share],
        entities=[EntityShare(key=entity.bytes, is_uuid=True, tenant_id=str(tenant), messages=30)],
        letters=[LetterShare(fingerprint="abc", tenant_id=str(tenant), letters=1)],
    )  # fmt: skip
    stored = SentSample(topic="tb_main.0", interval_ms=10_000, sent=40, sent_bytes=400, tenants=[share])
    letter = SentSample(topic="tb_main.dlq", interval_ms=10_000, sent=1, sent_bytes=99, tenants=[share])
    asked = RequestSample(
        request_topic="prices", interval_ms=10_000, pending=3, pending_limit=10, sent=5, answered=4, timed_out=1,
        lag_bounds_ms=LAG_BOUNDS_MS, lag_buckets=[4] + [0] * len(LAG_BOUNDS_MS),
        age_buckets=[0] * len(LAG_BOUNDS_MS) + [3],
    )  # fmt: skip
    metrics.create_topic()
    metrics.sample(1, end=100, committed=70)
    for body in (
        {"consumed_sample": consumed},
        {"sent_sample": stored},
        {"sent_sample": letter},
        {"request_sample": asked},
    ):
        metrics.send(Event(version=1, at_ms=NOW_MS - 59_000, service_id="test", **body).SerializeToString())
    run_pipeline()

    for model in (ProcessingMinute, ProcessingHour, ProcessingDay):
        processed = model.objects.get()
        assert (processed.handled, processed.failed, processed.dead_lettered) == (29, 2, 1)
        assert 0 < processed.p50_ms <= processed.p99_ms <= PROCESSING_BOUNDS_MS[0]
    assert DeadLetterTrend.objects.get().letters == 1
    used = TenantUsageDay.objects.get()
    assert (used.tenant_id, used.handled, used.sent, used.errors) == (tenant, 30, 30, 2)
    assert PartitionHeat.objects.get().entities[0]["key"] == str(entity)
    assert QueueSkew.objects.get().skew == 2.0
    waiting = RequestCurrent.objects.get()
    assert (waiting.pending, waiting.timed_out, waiting.age_buckets[-1]) == (3, 1, 3)
    assert 0 < waiting.lag_p50_ms <= LAG_BOUNDS_MS[0]
    assert [model.objects.get().answered for model in (RequestStats, RequestHour, RequestDay)] == [4] * 3
    assert [model.objects.get().lag_messages for model in (LagMinute, LagHour, LagDay)] == [60] * 3

    before = _histories()
    _make_anew()
    assert _histories() == before


def test_what_is_delivered_twice_is_charged_once(metrics: Metrics) -> None:
    """In one batch or in two: what is added up is not made anew of what there is."""
    tenant = str(metrics.queue.tenant_id)
    share = TenantShare(tenant_id=tenant, messages=30, bytes=300)
    consumed = ConsumedSample(
        queue_id=str(metrics.queue.id), topic="tb_main.0", group="main-consumer-0", polled=30, handled=30,
        tenants=[share], letters=[LetterShare(fingerprint="abc", tenant_id=tenant, letters=2)],
    )  # fmt: skip
    stored = SentSample(topic="tb_main.0", sent=30, tenants=[share])
    first, second = (
        [
            Event(version=1, at_ms=NOW_MS - before_ms, service_id="test", **body).SerializeToString()
            for body in ({"consumed_sample": consumed}, {"sent_sample": stored})
        ]
        for before_ms in (59_000, 58_000)
    )
    metrics.create_topic()
    for batch in ([*first, *first], [*first, *second], [*second, *first]):
        for event in batch:
            metrics.send(event)
        run_pipeline()
    assert PipelineRun.objects.count() == 3
    assert sum(used.handled for used in TenantUsageDay.objects.all()) == 60
    assert sum(used.sent for used in TenantUsageDay.objects.all()) == 60
    assert sum(trend.letters for trend in DeadLetterTrend.objects.all()) == 4
    assert sum(minute.handled for minute in ProcessingMinute.objects.all()) == 60
    # Files have each as often as it came.
    before = _histories()
    _make_anew()
    assert _histories() == before


def _make_anew() -> None:
    """Around midnight, events are of two days."""
    for day in {_minute().date(), datetime.fromtimestamp(NOW_MS / 1000, UTC).date()}:
        backfill_day(day, lambda: None)


def _histories() -> dict[str, list[str]]:
    """Whatever is of a stretch of time, without the rows' own numbers."""
    tables = (
        TenantUsageDay, DeadLetterTrend, ProcessingMinute, ProcessingHour, ProcessingDay,
        RequestStats, RequestHour, RequestDay, LagMinute, LagHour, LagDay,
    )  # fmt: skip
    rows = {table.__name__: [row | {"id": None} for row in table.objects.values()] for table in tables}
    return {name: sorted(map(str, found)) for name, found in rows.items()}


def test_a_day_is_made_anew_of_its_events(metrics: Metrics) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    metrics.sample(1, end=120)
    run_pipeline()
    minutes, hours = (list(model.objects.values("at", "lag_messages", "samples")) for model in (LagMinute, LagHour))
    assert [row["samples"] for row in (*minutes, *hours)] == [4, 4]
    LagMinute.objects.update(lag_messages=7)
    LagHour.objects.all().delete()
    # No sample is of that minute: a transform that was mended since may have made it.
    elsewhen = _minute().replace(hour=(_minute().hour + 12) % 24)
    LagMinute.objects.create(queue_id=LagMinute.objects.get().queue_id, at=elsewhen, lag_messages=1)
    # Around midnight, the samples are of the day before.
    operation = start_backfill(SYSTEM, _minute().date(), timezone.now().date())
    run_operation(operation.id)
    operation.refresh_from_db()
    assert (operation.state, operation.done, operation.error) == ("succeeded", operation.total, "")
    assert operation.result["message"].startswith(f"the summaries of {operation.total} day")
    assert list(LagMinute.objects.values("at", "lag_messages", "samples")) == minutes
    assert list(LagHour.objects.values("at", "lag_messages", "samples")) == hours


def _minute() -> datetime:
    return datetime.fromtimestamp((NOW_MS - 60_000) // 60_000 * 60, UTC)


def test_a_lost_checkpoint_loses_and_doubles_nothing(metrics: Metrics) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    run_pipeline()
    shutil.rmtree(checkpoint_dir(config()))
    metrics.sample(5, end=150)

    assert run_pipeline().events == 2
    assert lag("end_offset", "produced_per_s") == [(0, 150, 10.0), (1, 150, 10.0)]
    assert PipelineRun.objects.values("query").distinct().count() == 2
    assert stored_samples() == 4


def test_what_retention_removed_between_runs_is_passed_over(metrics: Metrics) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    run_pipeline()
    metrics.sample(5, end=150)
    admin = metrics.provider.admin()
    places = [ProviderPartition(METRICS_TOPIC, number) for number in range(METRICS_PARTITIONS)]
    admin.delete_records(admin.end_offsets(places))
    assert run_pipeline().events == 0

    metrics.sample(10, end=300)
    assert run_pipeline().events == 2
    assert lag("end_offset") == [(0, 300), (1, 300)]


def test_a_log_made_anew_is_read_from_its_beginning(metrics: Metrics) -> None:
    metrics.create_topic()
    for second in range(4):
        metrics.sample(second, end=100)
    run_pipeline()
    metrics.provider.close()
    shutil.rmtree(config().data / "log")
    metrics.provider = open_provider(config())
    metrics.create_topic()
    metrics.sample(5, end=1)
    assert run_pipeline().events == 2
    assert lag("end_offset", "produced_per_s") == [(0, 1, None), (1, 1, None)]
    metrics.provider.close()


def test_an_unusable_event_is_counted_and_holds_nothing_up(metrics: Metrics, caplog: pytest.LogCaptureFixture) -> None:
    metrics.create_topic()
    metrics.send(b"\xff\xff")
    metrics.sample(0, end=100)
    assert (run_pipeline().events, lag("lag_messages")) == (3, [(0, 100), (1, 100)])
    assert PipelineRun.objects.values_list("events", "unusable").get() == (3, 1)
    assert [record.getMessage() for record in caplog.records] == [
        "1 unusable events: not a protobuf event; the first at queue.metrics[1] offset 0"
    ]


def test_samples_of_requests_are_stored_beside_those_of_offsets(metrics: Metrics) -> None:
    metrics.create_topic()
    requests = RequestSample(request_topic="tb_transport.api.requests", interval_ms=10_000, sent=150, answered=149)
    event = Event(version=1, at_ms=NOW_MS, service_id="transport-1", request_sample=requests).SerializeToString()
    for _ in range(METRICS_PARTITIONS):
        metrics.send(event)
    metrics.sample(0, end=100, committed=40)
    assert run_pipeline().events == METRICS_PARTITIONS + 2
    assert lag("lag_messages") == [(0, 60), (1, 60)]
    assert (stored_samples("request_samples"), stored_samples()) == (METRICS_PARTITIONS, 2)


def test_a_queue_that_was_deleted_holds_nothing_up(metrics: Metrics) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    metrics.queue.delete()
    assert run_pipeline().events == 2
    assert lag() == []


def test_events_on_kafka_are_read_too(kafka_service: KafkaService, settings: Settings, tmp_path: Path) -> None:
    kafka = KafkaSettings(bootstrap_servers=kafka_service.bootstrap_servers)
    settings.SWITCHYARD = replace(config(), queue=QueueSettings(type="kafka", kafka=kafka))
    provider = open_provider(config())
    metrics = Metrics(provider)
    metrics.create_topic()
    metrics.sample(0, end=100, committed=40)
    run_pipeline()
    assert lag("lag_messages") == [(0, 60), (1, 60)]
    metrics.sample(5, end=200, committed=40)
    assert run_pipeline().events == 2
    assert lag("lag_messages", "produced_per_s") == [(0, 160, 20.0), (1, 160, 20.0)]
    provider.close()


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[SecuredKafka]:
    yield from running(SecuredKafka(tmp_path / "kafka", users={"spark": "hunter2"}, administrators=["spark"]))


@pytest.mark.full
def test_secrets_for_kafka_are_those_of_spark_s_own_environment(
    secured: SecuredKafka, settings: Settings, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    kafka = KafkaSettings(
        bootstrap_servers=secured.servers(SASL),
        ssl_enabled=True,
        ssl_ca_location=str(secured.authority.own.certificate),
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="spark",
        sasl_password="hunter2",
    )
    settings.SWITCHYARD = replace(config(), queue=QueueSettings(type="kafka", kafka=kafka))
    with closing(open_provider(config())) as provider:
        metrics = Metrics(provider)
        metrics.create_topic()
        metrics.sample(0, end=100, committed=40)
        with pytest.raises(PipelineFailed, match=r"SWITCHYARD_QUEUE_KAFKA_SASL_PASSWORD.*not for this worker"):
            run_pipeline()
        # Spark's processes inherit the environment in which it was started.
        monkeypatch.setenv("SWITCHYARD_QUEUE_KAFKA_SASL_PASSWORD", "hunter2")
        request.addfinalizer(session.stop_session)
        session.stop_session()
        assert run_pipeline().events == 2


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_after_spark_died_the_next_run_starts_it_again(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)

    def die(*_: object) -> bool:
        assert session._open is not None
        session._open.gateway.proc.kill()
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "store_batch", die)
        with pytest.raises(PipelineFailed):
            run_pipeline()
    assert run_pipeline().events == 2
    assert lag("end_offset") == [(0, 100), (1, 100)]
    gc.collect()  # Py4J leaves the sockets open with which it tried to reach the dead JVM: here, not in another test


@pytest.mark.full
def test_the_same_run_on_a_cluster(
    metrics: Metrics, settings: Settings, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    run_pipeline()
    request.addfinalizer(session.stop_session)
    session.stop_session()
    with spark_cluster(tmp_path) as cluster:
        settings.SWITCHYARD = replace(config(), spark_master=cluster.master)
        spark = spark_session()
        wait_until(lambda: executors(spark) == WORKERS)
        metrics.sample(10, end=200, committed=40)
        # So many that one task alone does not read them.
        more = fill_log(tmp_path / "log", all_reporters(NOW_MS - 5 * 60_000, ALWAYS), 5)
        assert more > 2 * SMALLEST_TASK
        assert run_pipeline().events == 2 + more
        assert lag("lag_messages", "produced_per_s") == [(0, 160, 10.0), (1, 160, 10.0)]
        assert cluster.state()["activeapps"]
        done = _tasks_done(spark)
        assert len(done) == WORKERS
        assert all(done.values()), done
        session.stop_session()


def _tasks_done(spark: SparkSession) -> dict[str, int]:
    """By each executor, of those that are no drivers."""
    found = spark._jsc.sc().statusStore().executorList(True)
    each = (found.apply(index) for index in range(found.size()))
    return {one.id(): one.completedTasks() for one in each if one.id() != "driver"}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_that_is_away_is_a_clear_standing(
    metrics: Metrics, settings: Settings, request: pytest.FixtureRequest
) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    request.addfinalizer(session.stop_session)
    session.stop_session()
    settings.SWITCHYARD = replace(config(), spark_master=f"spark://127.0.0.1:{free_port()}")
    run_pipeline_task()
    standing = PipelineStanding.objects.get()
    assert (standing.code, standing.failed_runs) == ("spark_unavailable", 1)
    assert "look whether a cluster's master runs there" in standing.error
    assert "check SPARK_MASTER" in standing.error
    assert "install Java" not in standing.error
    assert lag() == []
    gc.collect()  # what Py4J leaves open: here, not in another test


@pytest.mark.full
def test_spark_ends_with_a_worker_that_is_killed_outright(tmp_path: Path) -> None:
    program = (
        "import django; django.setup()\n"
        "from workers.spark import session\n"
        "session.spark_session(); print(session._open.gateway.proc.pid, flush=True); input()"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "console.settings", "SWITCHYARD_DATA_DIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as worker:
        assert worker.stdout is not None
        jvm = int(worker.stdout.readline())
        assert not _is_gone(jvm)
        worker.send_signal(signal.SIGKILL)
    wait_until(lambda: _is_gone(jvm))


def _is_gone(pid: int) -> bool:
    """No such process, or one that only waits to be reaped."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
