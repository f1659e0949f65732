"""`manage.py up`: what goes wrong is one clear line; what dies comes back."""

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queueapi.supervisor.child import Child, exit_reason
from queueapi.supervisor.children import ChildSpec, children
from queueapi.supervisor.output import Output
from queuecore.testing.clock import ManualClock
from queuecore.testing.services.ports import free_port
from queuecore.testing.waiting import wait_until
from tests.system import ROOT


def up(
    data_dir: Path, before: Callable[[], None] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=ROOT,
        env={**os.environ, "SWITCHYARD_DATA_DIR": str(data_dir), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=before,
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
        ("SWITCHYARD_WEB_PORT", "70000", "is above 65535"),
        ("SWITCHYARD_TRUSTED_ORIGINS", "foo", "must be scheme://host"),
        ("SWITCHYARD_DATABASE_URL", "postgresql://a:b/c@db/x", "cannot be read as an address"),
        ("SWITCHYARD_WEB_PROT", "80", "did you mean SWITCHYARD_WEB_PORT?"),
        ("SWITCHYARD_QUEUE_TYPE", "kafak", "is not one of log, kafka"),
        ("SWITCHYARD_DATABASE_URL", "mysql://localhost/x", "must start with postgresql://"),
        ("SWITCHYARD_METRICS_LISTEN", "9464", "use host:port"),
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


def no_room() -> None:
    """A full disk, as far as one process can have it to itself: files can be made but not be written."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_full_disk_at_the_first_start(tmp_path: Path) -> None:
    line = only_line(up(tmp_path, no_room))
    assert "SWITCHYARD_DATA_DIR" in line
    assert "secret-key" in line
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []


def test_a_full_disk_at_a_later_start(tmp_path: Path) -> None:
    (tmp_path / "secret-key").write_text("kept")
    line = only_line(up(tmp_path, no_room))
    assert "SWITCHYARD_DATA_DIR" in line
    assert "up.lock" in line


@pytest.mark.parametrize("name", ["secret-key", "admin-password", "up.lock", "static/", "celery/", "celery/messages/"])
def test_a_part_of_the_data_folder_that_cannot_be_used(tmp_path: Path, name: str) -> None:
    """A file where a folder should be, and the other way round: also root cannot write there."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("") if name.endswith("/") else path.mkdir()
    line = only_line(up(tmp_path, SWITCHYARD_WEB_PORT=str(free_port())))
    assert "SWITCHYARD_DATA_DIR" in line
    assert str(path) in line


def test_a_database_that_does_not_answer(tmp_path: Path) -> None:
    line = only_line(up(tmp_path, SWITCHYARD_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none"))
    assert "cannot prepare this installation" in line


def test_the_children_of_an_installation() -> None:
    assert [spec.name for spec in children()] == ["web", "consumer", "tasks", "spark", "beat"]
    assert [spec.name for spec in children(demo=True)] == [
        "web", "consumer", "consumer-2", "tasks", "spark", "beat", "core-api", "traffic"
    ]  # fmt: skip


def test_exit_reasons_are_for_people() -> None:
    assert exit_reason(-9) == "ended by SIGKILL"
    assert exit_reason(-34) == "ended by SIGRTMIN"
    assert exit_reason(-40) == "ended by signal 40"
    assert exit_reason(3) == "ended with exit code 3"


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    command = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")
    child = Child(ChildSpec("sleeper", command, patience_s=5), Output("sleeper"), tmp_path, {}, ManualClock())
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


FORKS = """
import os, signal, sys
child = os.fork()
if child:
    print(child, flush=True)
else:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pause()
"""


@pytest.fixture
def parent(tmp_path: Path, capfd) -> Iterator[tuple[Child, int]]:
    """A child with a child of its own, which does not want to stop, and the other's process id."""
    child = Child(ChildSpec("parent", (sys.executable, "-c", FORKS), patience_s=5), Output("parent"), tmp_path, {})
    child.start()
    said = ""

    def has_forked() -> bool:
        nonlocal said
        said += capfd.readouterr().out
        return said.endswith("\n")

    wait_until(has_forked)
    yield child, int(said.split("|")[1])
    child.terminate()
    child.wait(child._clock.monotonic())


def is_gone(pid: int) -> bool:
    """Ended, if perhaps not yet fetched by whoever inherited it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_what_a_killed_child_leaves_behind_is_ended(parent: tuple[Child, int]) -> None:
    child, orphan = parent
    assert not is_gone(orphan)
    kill(child)
    wait_until(lambda: is_gone(orphan))


def test_what_a_stopped_child_leaves_behind_is_ended(parent: tuple[Child, int]) -> None:
    child, orphan = parent
    child.terminate()
    child.wait(child._clock.monotonic())
    wait_until(lambda: is_gone(orphan))


def test_lines_nobody_reads_are_lost_and_pipes_are_still_emptied(monkeypatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    more_than_a_pipe_holds = [sys.executable, "-c", "for number in range(50_000): print(number)"]
    with (
        os.fdopen(writer, "w") as unread,
        subprocess.Popen(more_than_a_pipe_holds, stdout=subprocess.PIPE, text=True) as speaker,
    ):
        monkeypatch.setattr(sys, "stdout", unread)
        output = Output("speaker")
        output.say("is anybody there?")
        assert speaker.stdout is not None
        output.follow(speaker.stdout).join(60)
        assert speaker.wait(60) == 0
        monkeypatch.undo()


def test_a_full_disk_under_our_output_loses_lines_and_nothing_else(monkeypatch) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        Output("up").say("no room for this")
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
