"""`python -m queuecore.testing.services`, run as a user runs it: a process, its output, and signals."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from confluent_kafka.admin import AdminClient

from queuecore.testing.services import RedisService, ports
from queuecore.testing.waiting import wait_until
from tests.services import require_or_skip

ROOT = Path(__file__).parents[2]
DEADLINE_S = 120.0


def descendants(pid: int) -> set[int]:
    """The processes below this one."""
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    parents = {int(child): int(parent) for child, parent in map(str.split, listing.stdout.splitlines())}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def is_gone(pid: int) -> bool:
    """Whether the process has ended; one that nobody has reaped yet has."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip()[:1] in {"", "Z"}


class Run:
    """A running command with its data directory and what it printed so far."""

    def __init__(self, process: subprocess.Popen[bytes], data_dir: Path, output: Path) -> None:
        self.process = process
        self.data_dir = data_dir
        self._output = output

    @property
    def output(self) -> str:
        return self._output.read_text()

    def environment(self) -> dict[str, str]:
        """The variables a shell has after reading the file the command wrote."""
        lines = (self.data_dir / "services.env").read_text().splitlines()
        return dict(line.removeprefix("export ").split("=", 1) for line in lines)

    def wait_until_started(self) -> None:
        wait_until(lambda: "Stop with Ctrl-C" in self.output or self.process.poll() is not None, DEADLINE_S)
        if "not available" in self.output:
            require_or_skip(self.output)

    def finish(self) -> int:
        return self.process.wait(DEADLINE_S)


@contextmanager
def services(*names: str, **environment: str) -> Iterator[Run]:
    """Run the command; whatever the test does to it, it and its data are gone afterwards."""
    with tempfile.TemporaryDirectory() as directory, run_in(Path(directory), names, environment) as run:
        yield run


@contextmanager
def run_in(directory: Path, names: Sequence[str], environment: Mapping[str, str]) -> Iterator[Run]:
    """Run the command with its data in `directory`, which PostgreSQL's user can enter unlike pytest's own."""
    directory.chmod(0o755)
    output = directory / "output"
    data_dir = directory / "data"
    command = [sys.executable, "-m", "queuecore.testing.services", "--data-dir", str(data_dir), *names]
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, env=os.environ | environment
        )
    try:
        yield Run(process, data_dir, output)
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def broker_port(run: Run) -> int:
    return int(run.environment()["SWITCHYARD_BROKER_URL"].split(":")[2].removesuffix("/0"))


def test_all_three_run_until_ctrl_c() -> None:
    with services() as run:
        run.wait_until_started()
        variables = run.environment()
        assert all(f"export {name}={value}" in run.output for name, value in variables.items())
        assert variables["SWITCHYARD_QUEUE_TYPE"] == "kafka"
        assert AdminClient({"bootstrap.servers": variables["SWITCHYARD_QUEUE_KAFKA_BOOTSTRAP_SERVERS"]}).list_topics(
            timeout=DEADLINE_S
        )
        with psycopg.connect(variables["SWITCHYARD_DATABASE_URL"]) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
        with redis.Redis.from_url(variables["SWITCHYARD_BROKER_URL"]) as client:
            assert client.ping()
        children = descendants(run.process.pid)
        run.process.send_signal(signal.SIGINT)
        assert run.finish() == 0
        assert children
        assert all(is_gone(child) for child in children)
        assert not (run.data_dir / "services.env").exists()


def test_a_killed_runner_takes_its_services_along() -> None:
    with services("redis") as run:
        run.wait_until_started()
        children = descendants(run.process.pid)
        run.process.kill()
        wait_until(lambda: all(is_gone(child) for child in children), DEADLINE_S)
        assert ports.is_free(broker_port(run))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel signals the orphan on Linux only")
def test_a_killed_guard_takes_its_service_along() -> None:
    with services("redis") as run:
        run.wait_until_started()
        children = descendants(run.process.pid)
        (guard,) = (child for child in children if descendants(child))
        os.kill(guard, signal.SIGKILL)
        assert run.finish() == 1
        wait_until(lambda: all(is_gone(child) for child in children), DEADLINE_S)


def test_a_service_that_dies_stops_the_rest() -> None:
    with services("postgres", "redis") as run:
        run.wait_until_started()
        children = descendants(run.process.pid)
        with redis.Redis.from_url(run.environment()["SWITCHYARD_BROKER_URL"]) as client:
            os.kill(client.info("server")["process_id"], signal.SIGKILL)
        assert run.finish() == 1
        assert "redis ended with exit code 137; the end of" in run.output
        assert all(is_gone(child) for child in children)


def test_the_others_start_when_one_asked_for_is_missing(tmp_path: Path) -> None:
    if reason := RedisService(tmp_path).missing():
        require_or_skip(reason)
    with services("kafka", "redis", JAVA_HOME="/nowhere") as run:
        wait_until(lambda: "Stop with Ctrl-C" in run.output or run.process.poll() is not None, DEADLINE_S)
        assert "kafka is not available: Java is not installed" in run.output
        with redis.Redis.from_url(run.environment()["SWITCHYARD_BROKER_URL"]) as client:
            assert client.ping()
        run.process.send_signal(signal.SIGTERM)
        assert run.finish() == 1


def test_nothing_to_start_is_an_error() -> None:
    with services("kafka", JAVA_HOME="/nowhere") as run:
        assert run.finish() == 1
        assert "No service could be started" in run.output


def test_an_unknown_service_is_refused() -> None:
    with services("rabbit") as run:
        assert run.finish() == 2
        assert "unknown service rabbit; known are kafka, postgres, redis" in run.output
