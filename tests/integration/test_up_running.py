"""`manage.py up` as operators treat it: started from anywhere, through a pipe, with children that are killed."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuecore.testing.services.ports import free_port
from queuecore.testing.waiting import wait_until
from tests.system import ROOT

WHERE = "relative-data"


class Started:
    """The system in `folder`, its data folder given relative to it, two web workers, and its output in a pipe."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / WHERE
        self.port = free_port()
        variables = {"DATA_DIR": WHERE, "WEB_PORT": str(self.port), "WEB_WORKERS": "2"}
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "up"],
            cwd=folder,
            env={**os.environ, **{f"SWITCHYARD_{name}": value for name, value in variables.items()}},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def answers(self) -> bool:
        assert self.process.poll() is None
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/login/", timeout=5).status == 200
        except OSError:
            return False

    def has_beat(self) -> bool:
        """The last child to start has used the data folder."""
        return any((self.data / "celery").glob("beat-schedule*"))

    def web(self) -> set[int]:
        """Process ids of web, its workers and their helpers: they are those whose group web leads."""
        [leader] = [pid for pid in running() if b"manage.py\0web" in command(pid) and parent(pid) == self.process.pid]
        return {pid for pid in running() if group(pid) == leader}


def running() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if group(int(path.name))]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def group(pid: int) -> int | None:
    return _stat(pid, 2)


def parent(pid: int) -> int | None:
    return _stat(pid, 1)


def _stat(pid: int, field: int) -> int | None:
    """A field behind the name and the state; None for a process that has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == "Z" else int(fields[field - 1])


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    system = Started(tmp_path_factory.mktemp("elsewhere"))
    assert system.process.stdout is not None
    try:
        for line in system.process.stdout:
            if "Switchyard is ready" in line:
                break
        # Nobody reads on: from here the whole system has a broken pipe for its output.
        system.process.stdout.close()
        wait_until(system.answers)
        yield system
    finally:
        system.process.send_signal(signal.SIGINT)
        assert system.process.wait(60) == 0


def test_all_data_is_where_the_operator_said(started: Started) -> None:
    wait_until(started.has_beat)
    assert not (ROOT / WHERE).exists()


def test_data_is_for_its_owner_alone(started: Started) -> None:
    wait_until(started.has_beat)
    modes = {path: path.stat().st_mode & 0o077 for path in (started.data, *started.data.iterdir())}
    assert {path.name for path, mode in modes.items() if mode} == set()


def test_an_empty_message_stops_no_worker(started: Started) -> None:
    messages = started.data / "celery" / "messages"
    (messages / "0-empty.tasks.msg").touch()
    wait_until((messages / "taken" / "0-empty.tasks.msg").exists)
    (messages / "1-next.tasks.msg").touch()
    wait_until((messages / "taken" / "1-next.tasks.msg").exists)


def test_web_comes_back_when_killed_although_it_had_workers(started: Started) -> None:
    before = wait_until(started.web)
    leader = min(before, key=lambda pid: pid != group(pid))
    assert len(before) > 2
    os.kill(leader, signal.SIGKILL)
    wait_until(lambda: not before & set(running()))
    wait_until(started.answers)


def test_nothing_is_left_after_a_stop(started: Started) -> None:
    web = wait_until(started.web)
    started.process.send_signal(signal.SIGINT)
    assert started.process.wait(60) == 0
    assert not web & set(running())
