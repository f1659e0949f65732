"""The Spark pipeline on the embedded stack: a large backlog in one pass, and what a minute brings."""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event
from queuecore.providers.log import LogProvider
from queuecore.topics import ProviderPartition
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.pipeline_events import ALWAYS, QUEUES, all_reporters, create_log, fill_large_log, fill_log
from tests.benchmarks.processes import run_together, took_s
from tests.benchmarks.workload import check_count

EVENTS: Final = int(os.environ.get("BENCH_PIPELINE_EVENTS", 10_000_000))

_MINUTE_MS: Final = 60_000
# What a run of a minute is judged with, in the pieces that the runs before it took: the window, which is ten minutes.
_BEFORE: Final = (9, 1)
# A pass takes about a minute, and as long to start and to clean up: fifteen minutes have to do for all of it.
_PASSES: Final = 2
_MINUTES: Final = 3


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    now_ms = time.time_ns() // 1_000_000
    all_of_it, a_tenth, installed = folder / "all", folder / "tenth", folder / "installed"
    run_together([partial(_installing, installed)])
    events = fill_large_log(all_of_it, EVENTS, now_ms)
    tenth = fill_large_log(a_tenth, EVENTS // 10, now_ms)
    yield [
        Benchmark(
            subject=Measurement(
                f"one pass over {events:,} events", partial(_measure_pass, installed, all_of_it, events)
            ),
            peers=(
                Peer("a tenth of them", partial(_measure_pass, installed, a_tenth, tenth), 1.0),
                Peer(
                    "a tenth, decoded and counted in plain Python, two processes",
                    partial(_measure_plain, a_tenth, tenth),
                ),
            ),
            unit="events/s",
            goal=200_000,
            most_rounds=_PASSES,
        ),
        Benchmark(
            subject=Measurement("a minute's events of 1,000 partitions, warm", partial(_measure_minute, installed)),
            peers=(Peer("decoded and counted in plain Python", _measure_plain_minute),),
            unit="s",
            goal=10,
            better="lower",
            most_rounds=_MINUTES,
        ),
    ]


def _measure_pass(installed: Path, log: Path, events: int, folder: Path) -> float:
    shutil.copytree(installed, folder, dirs_exist_ok=True)
    return events / took_s(run_together([partial(_pass, log, events, folder)]))


def _measure_minute(installed: Path, folder: Path) -> float:
    shutil.copytree(installed, folder, dirs_exist_ok=True)
    return took_s(run_together([partial(_minute, folder)]))


def _measure_plain(log: Path, events: int, _folder: Path) -> float:
    halves = [range(number, METRICS_PARTITIONS, 2) for number in range(2)]
    outcomes = run_together([partial(_plain, log, half) for half in halves])
    check_count("plain Python", sum(outcome.result for outcome in outcomes), events)
    return events / took_s(outcomes)


def _measure_plain_minute(folder: Path) -> float:
    create_log(folder / "log")
    fill_log(folder / "log", all_reporters(time.time_ns() // 1_000_000, ALWAYS), 1)
    return took_s(run_together([partial(_plain, folder / "log", range(METRICS_PARTITIONS))]))


@contextmanager
def _pass(log: Path, events: int, folder: Path) -> Iterator[Callable[[], int]]:
    """The work is one run over all of the log, on a session that has started."""
    (folder / "log").symlink_to(log.resolve())
    _open(folder)
    from workers.spark.pipeline import run_pipeline
    from workers.spark.session import spark_session

    spark_session()

    def work() -> int:
        done = run_pipeline()
        check_count("the pipeline", done.events, events)
        return done.rows

    yield work


@contextmanager
def _minute(folder: Path) -> Iterator[Callable[[], int]]:
    """The work is a run over the events of one minute, after those of the window before it."""
    _open(folder)
    from workers.spark.pipeline import run_pipeline

    log = folder / "log"
    create_log(log)
    start_ms = time.time_ns() // 1_000_000 - (sum(_BEFORE) + 1) * _MINUTE_MS
    reporters = all_reporters(start_ms, ALWAYS)
    for minutes in _BEFORE:
        fill_log(log, reporters, minutes)
        run_pipeline()
    events = fill_log(log, reporters, 1)

    def work() -> int:
        done = run_pipeline()
        check_count("the pipeline", done.events, events)
        return done.rows

    yield work


@contextmanager
def _plain(log: Path, partitions: range) -> Iterator[Callable[[], int]]:
    """The work is what a loop would do: the newest sample of each partition, and nothing stored."""

    def work() -> int:
        newest: dict[tuple[str, int], int] = {}
        return sum(_count(log, partition, newest) for partition in partitions)

    yield work


def _count(log: Path, partition: int, newest: dict[tuple[str, int], int]) -> int:
    place, position = ProviderPartition(METRICS_TOPIC, partition), 0
    with closing(LogProvider(log)) as provider, closing(provider.reader()) as reader:
        while records := reader.read(place, position, 10_000):
            for record in records:
                event = Event.FromString(record.data)
                if event.WhichOneof("body") == "offset_sample":
                    sample = event.offset_sample
                    newest[sample.queue_id, sample.partition] = sample.end_offset - sample.committed_offset
            position = records[-1].offset + 1
    return position


def _open(folder: Path) -> None:
    """This process is the installation's that has its data there."""
    os.environ |= {
        "SWITCHYARD_DATA_DIR": str(folder),
        "SWITCHYARD_PIPELINE_TIMEOUT_S": "3600",
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "SPARK_MASTER": "local[2]",
    }
    import django

    django.setup()


@contextmanager
def _installing(folder: Path) -> Iterator[Callable[[], None]]:
    """Made once and copied: to make all tables takes as long as a run."""
    folder.mkdir(parents=True)
    _open(folder)
    yield _install


def _install() -> None:
    from django.core.management import call_command

    from tests.benchmarks.pipeline_queues import create_queues

    call_command("migrate", verbosity=0)
    create_queues(QUEUES)
