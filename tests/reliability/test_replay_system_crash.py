"""`kill -9` of the web server and of the workers while letters are replayed: the ledger, the letters and the queue that
they were sent to agree exactly."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from queuecore.testing.waiting import wait_until
from tests.system import ROOT, RunningSystem

PATIENCE_S = 300
KILLED = ("web", "tasks", "consumer")
# How many letters, and at which parts of them somebody dies.
FEW = (300, (0.3,))
MANY = pytest.param(10_000, (0.1, 0.3, 0.5, 0.8), marks=pytest.mark.full)


def asked(system: RunningSystem, *command: str) -> Any:
    """What another process of the same installation says."""
    environment = {**os.environ, "SWITCHYARD_DATA_DIR": str(system.data_dir)}
    asking = [sys.executable, "-m", "tests.reliability.replayed_letters", *command]
    said = subprocess.run(asking, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return json.loads(said.stdout.splitlines()[-1])


def replay_now(system: RunningSystem, replay: str) -> dict[str, Any]:
    """Empty while the web server is away."""
    try:
        found: dict[str, Any] = system.request("GET", f"replays/{replay}")
    except OSError:
        return {}
    return found


def kill_all(system: RunningSystem) -> None:
    """At once, and until others are there in their place."""
    before = wait_until(lambda: (pids := system.pids()).keys() >= set(KILLED) and pids)
    for name in KILLED:
        os.kill(before[name], signal.SIGKILL)
    for name in KILLED:
        wait_until(lambda name=name: system.pids().get(name, before[name]) != before[name])


@pytest.mark.parametrize(("letters", "deaths"), [FEW, MANY])
def test_ledger_letters_and_queue_agree_whoever_dies(tmp_path, letters: int, deaths: tuple[float, ...]) -> None:
    with RunningSystem(tmp_path / "data") as system:
        made = asked(system, "make", str(letters))
        # Slow enough to die in the middle of it.
        body = {"filter": {"queue": made["queue"], "state": "open"}, "rate_per_s": letters / 10, "ramp": []}
        replay = system.request("POST", "replays", body)["id"]
        for part in deaths:
            wait_until(lambda part=part: replay_now(system, replay).get("sent", 0) >= part * letters, PATIENCE_S)
            kill_all(system)
        wait_until(lambda: replay_now(system, replay).get("succeeded") == letters, PATIENCE_S)
        wait_until(lambda: replay_now(system, replay)["state"] == "succeeded", PATIENCE_S)
        told = asked(system, "tell", replay)
    assert sorted(told["sent"]) == sorted(made["letters"])
    assert told["letters"] == dict.fromkeys(made["letters"], "replayed")
    assert told["ledger"] == [["replay", letters]]
    assert told["counted"] == [letters, letters, 0, 0]
