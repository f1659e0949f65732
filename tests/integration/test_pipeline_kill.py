"""A worker that is killed outright, its Spark with it: every event is counted once, and kept once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.pipeline_events import ALWAYS, all_reporters, create_log, fill_log
from tests.integration.killed_pipeline import BEGUN, MOMENTS, NEVER, QUEUES, TOLD
from tests.reliability.fleet import SEED
from tests.services import require_or_skip
from workers.spark.session import missing_java

ROOT = Path(__file__).resolve().parents[2]
# A minute's events come before each run.
MINUTE_MS = 60_000
ANY = "any"
LONGEST_RUN_S = 300


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param([*MOMENTS, ANY], id="at the worst moments, and once"),
        pytest.param([*MOMENTS, *[ANY] * 20], marks=pytest.mark.full, id="at the worst moments, and often"),
    ],
)
def test_whenever_it_is_killed_nothing_is_lost_or_doubled(tmp_path: Path, moments: Sequence[str]) -> None:
    """Before its batch is committed, before Spark knows that it is done, before its files are published, and at any
    time."""
    if problem := missing_java():
        require_or_skip(problem)
    start_ms = time.time_ns() // 1_000_000 - (len(moments) + 1) * MINUTE_MS
    undisturbed = Installation(tmp_path / "undisturbed", start_ms)
    events = undisturbed.report(len(moments) + 1)
    assert undisturbed.run(NEVER) == 0
    wanted = undisturbed.told["stored"]
    assert wanted["events"] == sum(wanted["kept"].values()) == events

    delays = iter(_delays(undisturbed.told["seconds"], moments.count(ANY)))
    killed = Installation(tmp_path / "killed", start_ms)
    codes = []
    for moment in moments:
        killed.report(1)
        codes.append(killed.run(moment, next(delays) if moment == ANY else LONGEST_RUN_S))
    killed.report(1)
    assert killed.run(NEVER) == 0
    assert killed.told["stored"] == wanted
    # One that was quick may have been over before; none has failed of what the one before left behind.
    assert set(codes) <= {-signal.SIGKILL, 0}
    assert codes[: len(MOMENTS)] == [-signal.SIGKILL] * len(MOMENTS)
    assert codes.count(-signal.SIGKILL) > len(moments) // 2


def _delays(seconds: float, count: int) -> list[float]:
    """Each in another part of a run. That takes about as long whatever it has: most of it is Spark's start."""
    chance = random.Random(SEED)
    delays = [(part + chance.random()) * seconds / count for part in range(count)]
    return chance.sample(delays, count)


class Installation:
    def __init__(self, folder: Path, start_ms: int) -> None:
        self._folder = folder
        self._log = folder / "log"
        self._reporters = all_reporters(start_ms, ALWAYS, QUEUES)
        create_log(self._log)

    def report(self, minutes: int) -> int:
        return fill_log(self._log, self._reporters, minutes)

    @property
    def told(self) -> Any:
        return json.loads((self._folder / TOLD).read_text())

    def run(self, moment: str, kill_after_s: float = LONGEST_RUN_S) -> int:
        """The exit code of a process of its own for one run, which is killed after so long."""
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "console.settings",
            "SWITCHYARD_DATA_DIR": str(self._folder),
            "SPARK_MASTER": "local[1]",
        }
        command = [sys.executable, "-m", "tests.integration.killed_pipeline", moment]
        with (
            (self._folder / "errors").open("ab") as errors,
            subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            assert process.stdout is not None
            assert process.stdout.readline() == f"{BEGUN}\n", (self._folder / "errors").read_text()
            with suppress(subprocess.TimeoutExpired):
                process.wait(kill_after_s)
            process.kill()
            return process.wait()
