"""A worker that is killed outright at the worst moments: every event is counted once, and kept once."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.killed_pipeline import EVENTS, MOMENTS
from tests.services import require_or_skip
from workers.spark.session import missing_java

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.full
def test_whenever_it_is_killed_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """Before its batch is committed, before its files are published, and before Spark knows that it is done."""
    if problem := missing_java():
        require_or_skip(problem)
    done = [_run(moment, tmp_path) for moment in MOMENTS]
    assert [process.returncode for process in done] == [-signal.SIGKILL] * 3 + [0]
    told = json.loads(done[-1].stdout.splitlines()[-1])
    everything = len(MOMENTS) * EVENTS
    assert (told["counted"], told["kept"]) == (everything, everything)


def _run(moment: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "SWITCHYARD_DATA_DIR": str(folder),
        "SPARK_MASTER": "local[1]",
    }
    command = [sys.executable, "-m", "tests.integration.killed_pipeline", moment]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
