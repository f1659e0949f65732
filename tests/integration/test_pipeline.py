"""The pipeline end to end: a real log, a real Spark, a real database."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from queueapi.config import config
from queueapi.models import Queue, Tenant
from queueapi.models.summary import LagCurrent, PipelineRun
from queueapi.runtime import open_provider
from queuecore.config.provider_settings import KafkaSettings
from queuecore.config.queue_tree import QueueSettings
from queuecore.messages import QueueMessage
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event, OffsetSample, RequestSample
from queuecore.providers.base import Provider, TopicSpec
from queuecore.sending import send
from queuecore.testing.services import KafkaService
from queuecore.testing.services.kafka_secured import SASL, SecuredKafka
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.services import require_or_skip, running
from workers.spark import pipeline, session
from workers.spark.errors import PipelineFailed
from workers.spark.pipeline import checkpoint_dir, run_pipeline
from workers.spark.session import missing_java, spark_session

# Spark stores a batch on a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

NOW_MS = time.time_ns() // 1_000_000
ROOT = Path(__file__).resolve().parents[2]


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


def test_a_lost_checkpoint_costs_nothing_but_reading_again(metrics: Metrics) -> None:
    metrics.create_topic()
    metrics.sample(0, end=100)
    run_pipeline()
    shutil.rmtree(checkpoint_dir(config()))
    metrics.sample(5, end=150)

    assert run_pipeline().events == 4
    assert lag("end_offset", "produced_per_s") == [(0, 150, 10.0), (1, 150, 10.0)]
    assert PipelineRun.objects.values("query").distinct().count() == 2


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


def test_an_unusable_event_is_skipped(metrics: Metrics) -> None:
    metrics.create_topic()
    metrics.send(b"\xff\xff")
    metrics.sample(0, end=100)
    assert run_pipeline().events == 2


def test_samples_of_requests_hold_nothing_up(metrics: Metrics) -> None:
    metrics.create_topic()
    requests = RequestSample(request_topic="tb_transport.api.requests", interval_ms=10_000, sent=150, answered=149)
    event = Event(version=1, at_ms=NOW_MS, service_id="transport-1", request_sample=requests).SerializeToString()
    for _ in range(METRICS_PARTITIONS):
        metrics.send(event)
    assert run_pipeline().events == 0
    metrics.send(event)
    metrics.sample(0, end=100, committed=40)
    assert run_pipeline().events == 2
    assert lag("lag_messages") == [(0, 60), (1, 60)]


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
