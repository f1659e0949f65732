"""What every Celery process of an installation agrees on, web and workers alike."""

from typing import Any

from queueapi.config import Config
from queueapi.file_transport import SCHEME, TAKEN

TASKS_QUEUE = "tasks"
SPARK_QUEUE = "spark"
CONSUMERS_QUEUE = "consumers"

RUN_OPERATION = "workers.run_operation"
SWEEP_OPERATIONS = "workers.sweep_operations"
PUBLISH_ROUTING = "workers.publish_routing"
SAMPLE_OFFSETS = "workers.sample_offsets"
RUN_PIPELINE = "workers.run_pipeline"
KEEP_UP_STORE = "workers.keep_up_store"
RECORD_STORAGE = "workers.record_storage"
PURGE_SUMMARIES = "workers.purge_summaries"
PURGE_LETTERS = "workers.purge_letters"
PURGE_KEYS = "workers.purge_idempotency_keys"
EVALUATE_ALERTS = "workers.evaluate_alerts"
DELIVER_ALERTS = "workers.deliver_alerts"
PURGE_ALERTS = "workers.purge_alerts"

HOUR_S = 3600


def celery_settings(config: Config) -> dict[str, Any]:
    return {
        **_broker(config),
        "task_default_queue": TASKS_QUEUE,
        "task_routes": {name: {"queue": SPARK_QUEUE} for name in (RUN_PIPELINE, KEEP_UP_STORE)},
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "broker_connection_retry_on_startup": True,
        "worker_enable_remote_control": False,
        "worker_hijack_root_logger": False,
        "worker_prefetch_multiplier": 1,
        "timezone": "UTC",
        "beat_schedule": _schedule(config),
        "beat_schedule_filename": str(config.folder("celery") / "beat-schedule"),
    }


def _broker(config: Config) -> dict[str, Any]:
    """Redis where it is set; else files, which need nothing to be installed."""
    if config.broker_url:
        return {"broker_url": config.broker_url}
    messages = config.folder("celery", "messages")
    config.folder("celery", "messages", TAKEN)
    return {
        "broker_url": f"{SCHEME}://localhost",
        "broker_transport_options": {"folder": str(messages), "polling_interval": 0.2},
    }


def _schedule(config: Config) -> dict[str, Any]:
    """Each entry expires before its next turn, so nothing piles up while a worker is away."""
    return {
        name: {"task": name, "schedule": seconds, "options": {"expires": seconds}}
        for name, seconds in (
            (SAMPLE_OFFSETS, config.sample_interval_s),
            (RUN_PIPELINE, config.pipeline_interval_s),
            (SWEEP_OPERATIONS, 10),
            (PUBLISH_ROUTING, 10),
            (KEEP_UP_STORE, HOUR_S),
            (RECORD_STORAGE, HOUR_S // 4),
            (PURGE_SUMMARIES, HOUR_S),
            (PURGE_LETTERS, HOUR_S),
            (PURGE_KEYS, HOUR_S),
            (EVALUATE_ALERTS, config.alert_interval_s),
            (DELIVER_ALERTS, 10),
            (PURGE_ALERTS, HOUR_S),
        )
    }
