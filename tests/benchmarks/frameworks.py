"""Frameworks that read Kafka, and ours, each in a process of its own: see `peers.kafka`."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.kafka.settings import consumer_settings
from queuecore.providers.options import DEFAULT_CONSUMING, DEFAULT_KAFKA
from queuecore.queues import open_queues
from queuecore.topics import ProviderPartition
from tests.benchmarks.kafka_broker import LARGE_BATCHES, KafkaBroker, kafka_messages
from tests.benchmarks.measuring import NotAvailable
from tests.benchmarks.peers.bare_kafka import ErrorOnly, send_all
from tests.benchmarks.peers.kafka.work import Task
from tests.benchmarks.workload import check_count

_ROOT: Final = Path(__file__).parents[2]
_ENVIRONMENTS: Final = _ROOT / "var" / "peers"
_WITHIN_S: Final = 300


def process_rate(broker: KafkaBroker, name: str, messages: int) -> Callable[[Path], float]:
    """Messages per second that the framework hands to its handler, and commits."""

    def measure(folder: Path) -> float:
        python = _python_of(name)
        queue = broker.new_name()
        with open_queues("kafka", servers=broker.servers) as queues:
            queues.create(queue)
            try:
                topic = f"{queue}.0"
                send_all(broker.servers, LARGE_BATCHES, topic, kafka_messages(messages), ErrorOnly())
                read = queue if name == "ours" else topic
                task = Task(broker.servers, read, f"{name}-{queue}", messages, fetching())
                told = _run(python, name, task, folder)
                _check(broker.servers, told, task, ProviderPartition(topic, 0))
            finally:
                queues.provider.admin().delete_topics([topic, f"{queue}.dlq"])
        return messages / float(told["seconds"])

    return measure


def fetching() -> dict[str, Any]:
    """How a consumer of ours has librdkafka fetch. With its defaults it stops for a second whenever enough is queued,
    and a peer starves."""
    ours = consumer_settings(DEFAULT_CONSUMING, DEFAULT_KAFKA, grows=False)
    told = {name: value for name, value in ours.items() if "fetch" in name or name.startswith("queued.")}
    # librdkafka's default, with which ours is content; a peer has one of its own.
    return {"queued.min.messages": 100_000} | told


def _python_of(name: str) -> str:
    """NotAvailable where the peer's environment is not complete."""
    if name == "ours":
        return sys.executable
    environment = _ENVIRONMENTS / name
    if not (environment / ".complete").exists():
        raise NotAvailable(f"it is not installed in {environment.relative_to(_ROOT)}; run `make bench NAME=kafka`")
    return str(environment / "bin" / "python")


def _run(python: str, name: str, task: Task, folder: Path) -> dict[str, Any]:
    """In this folder: some leave files where they are started."""
    command = [python, "-m", f"tests.benchmarks.peers.kafka.{name}", json.dumps(asdict(task))]
    environ = os.environ | {"PYTHONPATH": str(_ROOT)}
    ended = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=_WITHIN_S, check=False
    )
    answers = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode or len(answers) != 1:
        raise RuntimeError(f"{name} ended with {ended.returncode} and {len(answers)} answers:\n{ended.stderr}")
    told: dict[str, Any] = json.loads(answers[0])
    return told


def _check(servers: str, told: dict[str, Any], task: Task, place: ProviderPartition) -> None:
    """Every message was handled once, and the brokers know it."""
    check_count(task.group, told["count"], task.messages)
    check_count(f"{task.group}, sum", told["total"], sum(range(task.messages)))
    with closing(KafkaProvider(servers)) as provider:
        committed = provider.admin().committed_offsets({task.group: [place]})[task.group]
    check_count(f"{task.group}, committed", committed.get(place, 0), task.messages)
