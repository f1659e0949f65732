"""A process that runs the pipeline, and may be killed at a moment that it is told. Started by `test_pipeline_kill.py`.

It has an installation of its own in `SWITCHYARD_DATA_DIR`, where every process adds so many events before it runs.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import django

MOMENTS = ("staged", "committed", "published", "never")
EVENTS = 8


def main(moment: str) -> None:
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    _send_events()
    _arm(moment)
    from workers.spark.pipeline import run_pipeline
    from workers.spark.session import stop_session

    run_pipeline()
    print(json.dumps(_stored()), flush=True)
    stop_session()


def _send_events() -> None:
    from queueapi.config import config
    from queueapi.runtime import open_provider
    from queuecore.messages import QueueMessage
    from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
    from queuecore.proto.events_pb2 import Event, SentSample
    from queuecore.providers.base import TopicSpec
    from queuecore.sending import send
    from queuecore.topics import TopicPartitionInfo

    now_ms = time.time_ns() // 1_000_000
    event = Event(version=1, at_ms=now_ms, service_id="s", sent_sample=SentSample(topic="t", sent=1))
    with closing(open_provider(config())) as provider:
        provider.admin().create_topics([TopicSpec(METRICS_TOPIC, METRICS_PARTITIONS)])
        for number in range(EVENTS):
            place = TopicPartitionInfo(METRICS_TOPIC, number % METRICS_PARTITIONS, use_internal_partition=True)
            send(provider.producer(), place, QueueMessage(None, event.SerializeToString())).result(30)


def _arm(moment: str) -> None:
    from workers.spark import pipeline
    from workers.spark.store import EventStore

    if moment == "staged":
        pipeline.store_batch = _kill  # type: ignore[assignment]
    elif moment == "committed":
        EventStore.publish = _kill  # type: ignore[assignment, method-assign]
    elif moment == "published":
        EventStore.publish = _then_kill(EventStore.publish)  # type: ignore[method-assign]


def _kill(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _then_kill(done: Callable[..., None]) -> Callable[..., None]:
    def publish(*arguments: Any) -> None:
        done(*arguments)
        _kill()

    return publish


def _stored() -> dict[str, int]:
    import pyarrow.parquet as pq

    from queueapi.config import config
    from queueapi.models import PipelineRun
    from workers.spark.pipeline import event_store

    store = event_store(config())
    files = [file.path for kind, day in store.days() for file in store.files(kind, day)]
    return {
        "counted": sum(PipelineRun.objects.values_list("events", flat=True)),
        "kept": sum(pq.read_metadata(path).num_rows for path in files),
        "batches": PipelineRun.objects.count(),
    }


if __name__ == "__main__":
    main(sys.argv[1])
