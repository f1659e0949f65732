"""`kill -9` of any child: it comes back, the console knows, and no accepted message is lost."""

import os
import re
import signal
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore.testing.waiting import wait_until
from queuecore.topics import SYSTEM_TENANT
from tests.system import RunningSystem

MESSAGES_PER_KILL = 12
CHILDREN = ("consumer", "web", "tasks", "beat", "spark", "core-api", "traffic")


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory):
    with RunningSystem(tmp_path_factory.mktemp("killed"), "--demo") as running:
        running.wait_for_demo()
        yield running


def publish(system: RunningSystem) -> str | None:
    """Publish one message that will become a dead letter; its entity where it was accepted."""
    entity = str(uuid4())
    reading = {"sensor": 1, "temperature": 20.0, "fault": "until_replayed"}
    body = {"tenant": str(SYSTEM_TENANT), "entity": entity, "payload": reading}
    try:
        system.request("POST", "queues/main/messages", body)
    except OSError:
        return None
    return entity


def letters(system: RunningSystem) -> set[str]:
    return {letter["key"] for letter in system.get_all("dead-letters?page_size=500")}


@pytest.mark.parametrize("child", CHILDREN)
def test_a_killed_child_comes_back_and_nothing_accepted_is_lost(system: RunningSystem, child: str) -> None:
    before = wait_until(lambda: system.pids().get(child))
    half = MESSAGES_PER_KILL // 2
    accepted = {publish(system) for _ in range(half)}
    os.kill(before, signal.SIGKILL)
    accepted |= {publish(system) for _ in range(half)}
    after = wait_until(lambda: (pid := system.pids().get(child)) and pid != before and pid)
    assert after != before
    wait_until(lambda: answers(system))
    accepted |= {publish(system) for _ in range(half)}
    accepted.discard(None)
    assert len(accepted) >= half
    wait_until(lambda: accepted <= letters(system))


def test_the_console_and_the_log_tell_about_it(system: RunningSystem) -> None:
    assert "ended by SIGKILL; starting it again in 1 s" in system.output()
    assert "ended by SIGKILL" in system.page("/")


def answered(system: RunningSystem) -> float:
    """How many requests of the transport have been answered since it was started."""
    try:
        found = re.search(r"^response_lag_seconds_count\{.*\} (\S+)$", system.metrics(), re.MULTILINE)
    except OSError:
        return 0.0
    return float(found[1]) if found else 0.0


def test_the_transport_has_answers_from_the_core_again(system: RunningSystem) -> None:
    before = answered(system)
    wait_until(lambda: answered(system) > before)


def answers(system: RunningSystem) -> bool:
    try:
        return bool(system.get_all("tenants"))
    except OSError:
        return False


def test_it_stops_cleanly_and_leaves_no_process(tmp_path) -> None:
    with RunningSystem(tmp_path / "data") as system:
        pids = wait_until(lambda: len(system.pids()) == 5 and system.pids())
        assert system.stop() == 0
    assert not [pid for pid in pids.values() if Path(f"/proc/{pid}").exists()]
    assert "Traceback" not in system.output()
