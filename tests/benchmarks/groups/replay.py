"""Replaying dead letters on the embedded stack: from starting a replay by a filter to all of them sent and noted."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from uuid import UUID

from queuecore.deadletter.envelope import PREFIX
from queuecore.messages import QueueMessage, Record
from tests.benchmarks.log_provider import opened, send_all
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.processes import run_together
from tests.benchmarks.workload import check_count, messages, rate

LETTERS = 100_000
LIMIT_PER_S = 500
LIMITED_LETTERS = 5_000

_PARTITIONS = 3
_GROUPS = 20
_INDEXED_AT_ONCE = 10_000
_FAILED_AT_MS = 1_767_225_600_000


@contextmanager
def benchmarks(_folder: Path) -> Iterator[Sequence[Benchmark]]:
    yield [
        Benchmark(
            subject=Measurement("replay, no limit", partial(_measure_replay, LETTERS, None)),
            peers=(Peer("sending the same messages, and nothing else", _measure_send),),
            unit="letters/s",
            goal=20_000,
        ),
        Benchmark(
            subject=Measurement(f"replay, {LIMIT_PER_S}/s allowed", _measure_limited),
            peers=(Peer("sleeping after each message", _measure_sleeping),),
            unit="% away from it",
            goal=5,
            better="lower",
        ),
    ]


def _measure_replay(letters: int, rate_per_s: float | None, folder: Path) -> float:
    [outcome] = run_together([partial(_replaying, folder, letters, rate_per_s)])
    check_count("replay", outcome.result, letters)
    return letters / (outcome.ended - outcome.started)


def _measure_limited(folder: Path) -> float:
    return _deviation(_measure_replay(LIMITED_LETTERS, LIMIT_PER_S, folder))


def _measure_send(folder: Path) -> float:
    sent = messages(LETTERS)
    with opened(folder, "all") as provider:
        return rate(LETTERS, lambda: send_all(provider, sent))


def _measure_sleeping(folder: Path) -> float:
    sent = messages(LIMITED_LETTERS)

    def work() -> None:
        for message in sent:
            send_all(provider, [message])
            time.sleep(1 / LIMIT_PER_S)

    with opened(folder, "all") as provider:
        return _deviation(rate(LIMITED_LETTERS, work))


def _deviation(per_s: float) -> float:
    return abs(per_s - LIMIT_PER_S) / LIMIT_PER_S * 100


@contextmanager
def _replaying(folder: Path, letters: int, rate_per_s: float | None) -> Iterator[Callable[[], int]]:
    """An installation in this folder, with so many open letters. The work is to replay them; how many arrived."""
    os.environ |= {"SWITCHYARD_DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "console.settings"}
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)

    from queueapi import runtime
    from queueapi.actions.actor import SYSTEM
    from queueapi.actions.letter_index import index_letters
    from queueapi.actions.queues import create_queue
    from queueapi.actions.replays import start_replay
    from queueapi.actions.tenants import ensure_system_tenant
    from queueapi.replaying import ReplaySettings
    from queueapi.selectors.letter_filter import LetterFilter
    from workers.operations.runner import run_operation

    told = {"name": "Telemetry", "topic": "telemetry", "handler": "log", "partitions": _PARTITIONS}
    queue = create_queue(SYSTEM, ensure_system_tenant(), **told)
    reader = runtime.provider().reader()
    for first in range(0, letters, _INDEXED_AT_ONCE):
        count = min(_INDEXED_AT_ONCE, letters - first)
        index_letters([_letter(queue.id, first + number) for number in range(count)], reader)

    def work() -> int:
        replay = start_replay(SYSTEM, LetterFilter(queue=queue.id), settings=ReplaySettings(rate_per_s))
        run_operation(replay.operation_id)
        replay.refresh_from_db()
        ends = runtime.provider().admin().end_offsets([info.place for info in queue.partition_infos()])
        check_count("replay, noted", replay.sent, sum(ends.values()))
        return replay.sent

    yield work
    runtime.close_provider()


def _letter(queue_id: UUID, number: int) -> Record:
    story = {
        "queue.id": str(queue_id),
        "exception.class": "ValueError",
        "fingerprint": f"{number % _GROUPS:016}",
        "failed.at.ms": str(_FAILED_AT_MS + number),
    }
    message: QueueMessage = messages(LETTERS)[number]
    headers = {f"{PREFIX}{name}": text.encode() for name, text in story.items()}
    headers |= {"producerId": b"sensor", "ts": number.to_bytes(8)}
    partition, offset = number % _PARTITIONS, number // _PARTITIONS
    return Record("telemetry.dlq", partition, offset, _FAILED_AT_MS, message.key, headers, message.data)
