"""A process that runs the pipeline once, and may be killed: by itself at a moment that it is told, or by who started
it. Started by `test_pipeline_kill.py`.

It has an installation of its own in `SWITCHYARD_DATA_DIR`, whose log has the events of the pipeline's benchmark. It
says when the run begins, and leaves in the file `TOLD` of that folder how long it took, and what is stored then.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import django

# What is left unpublished is published when the next run begins, which would then be killed for that: it comes last.
MOMENTS: Final = ("staged", "published", "committed")
NEVER: Final = "never"
QUEUES: Final = 2
BEGUN: Final = "begun"
TOLD: Final = "told.json"


def main(moment: str) -> None:
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    _create_queues()
    _arm(moment)
    from workers.spark.pipeline import run_pipeline
    from workers.spark.session import spark_session, stop_session

    spark_session()
    print(BEGUN, flush=True)
    told = {"seconds": run_pipeline().seconds, "stored": _stored()}
    Path(os.environ["SWITCHYARD_DATA_DIR"], TOLD).write_text(json.dumps(told, default=str))
    stop_session()


def _create_queues() -> None:
    from django.db import transaction

    from queueapi.models import Queue
    from tests.benchmarks.pipeline_queues import create_queues

    with transaction.atomic():
        if not Queue.objects.exists():
            create_queues(QUEUES)


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


def _stored() -> dict[str, Any]:
    """What is counted, by table, and how many events of each kind are kept."""
    from queueapi.models import DeadLetterTrend, LagMinute, PipelineRun, ProcessingMinute, RequestStats, TenantUsageDay

    counted: dict[Any, tuple[str, ...]] = {
        TenantUsageDay: ("tenant_id", "day", "sent", "sent_bytes", "handled", "handled_bytes", "errors"),
        LagMinute: ("queue_id", "at", "samples", "produced", "consumed", "lag_messages"),
        ProcessingMinute: ("queue_id", "at", "polled", "handled", "failed", "dead_lettered", "buckets"),
        RequestStats: ("service_id", "request_topic", "at", "answered", "timed_out"),
        DeadLetterTrend: ("queue_id", "fingerprint", "at", "letters"),
    }
    tables = {
        model.__name__: list(model.objects.order_by(*names[:3]).values_list(*names)) for model, names in counted.items()
    }
    events = sum(PipelineRun.objects.values_list("events", flat=True))
    return {"events": events, "kept": _kept(), **tables}


def _kept() -> dict[str, int]:
    import pyarrow.parquet as pq

    from queueapi.config import config
    from workers.spark.pipeline import event_store
    from workers.spark.schemas import KINDS_BY_NAME

    store = event_store(config())
    kept = dict.fromkeys(KINDS_BY_NAME, 0)
    for kind, day in store.days():
        kept[kind] += sum(pq.read_metadata(file.path).num_rows for file in store.files(kind, day))
    return kept


if __name__ == "__main__":
    main(sys.argv[1])
