"""`manage.py up`: what goes wrong is one clear line; what dies comes back."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queueapi.supervisor.child import Child, exit_reason
from queueapi.supervisor.children import ChildSpec, children
from queueapi.supervisor.output import Output
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import wait_until
from tests.system import ROOT


def up(data_dir: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=ROOT,
        env={**os.environ, "SWITCHYARD_DATA_DIR": str(data_dir), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def only_line(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode != 0
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    return line


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        line = only_line(up(tmp_path, SWITCHYARD_WEB_PORT=port))
    assert f"port {port}" in line
    assert "SWITCHYARD_WEB_PORT" in line


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("SWITCHYARD_WEB_PORT", "eighty", "is not a whole number"),
        ("SWITCHYARD_WEB_PROT", "80", "did you mean SWITCHYARD_WEB_PORT?"),
        ("SWITCHYARD_QUEUE_TYPE", "kafak", "is not one of log, kafka"),
        ("SWITCHYARD_DATABASE_URL", "mysql://localhost/x", "must start with postgresql://"),
        ("SWITCHYARD_MODE", "production", "SWITCHYARD_ALLOWED_HOSTS"),
    ],
)
def test_a_broken_setting(tmp_path: Path, variable: str, value: str, remedy: str) -> None:
    line = only_line(up(tmp_path, **{variable: value}))
    assert variable in line
    assert remedy in line


def test_a_data_folder_that_cannot_be_one(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    assert "SWITCHYARD_DATA_DIR" in only_line(up(occupied))


def test_a_database_that_does_not_answer(tmp_path: Path) -> None:
    line = only_line(up(tmp_path, SWITCHYARD_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none"))
    assert "cannot prepare this installation" in line


def test_the_children_of_an_installation() -> None:
    assert [spec.name for spec in children()] == ["web", "consumer", "tasks", "spark", "beat"]
    assert [spec.name for spec in children(demo=True)][-1] == "traffic"


def test_exit_reasons_are_for_people() -> None:
    assert exit_reason(-9) == "ended by SIGKILL"
    assert exit_reason(3) == "ended with exit code 3"


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    command = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")
    child = Child(ChildSpec("sleeper", command, patience_s=5), Output("sleeper"), tmp_path, ManualClock())
    child.start()
    yield child
    child.terminate()
    child.wait(child._clock.monotonic())


def kill(child: Child) -> None:
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    wait_until(child.has_died)


def test_a_dead_child_is_due_again_after_a_pause_that_doubles(child: Child, capfd) -> None:
    clock = child._clock
    assert isinstance(clock, ManualClock)
    for pause_s in (1, 2, 4):
        kill(child)
        clock.advance(pause_s - 0.1)
        assert not child.is_due()
        clock.advance(0.2)
        assert child.is_due()
        child.start()
        assert not child.is_due()
    assert child.restarts == 3
    assert "sleeper  | ended by SIGKILL; starting it again in 4 s" in capfd.readouterr().out


def test_a_child_that_ran_steadily_starts_again_at_once(child: Child) -> None:
    clock = child._clock
    assert isinstance(clock, ManualClock)
    for _ in range(3):
        kill(child)
        clock.advance(30)
        child.start()
    clock.advance(61)
    kill(child)
    clock.advance(1)
    assert child.is_due()
