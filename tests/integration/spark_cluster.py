"""A Spark cluster on loopback, of ordinary processes: a master and two workers, from PySpark's own jars."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pyspark

from queuecore.testing.services.ports import LOOPBACK, free_port
from queuecore.testing.waiting import wait_until

WORKERS = 2

_HOME = Path(pyspark.__file__).parent
_START_TIMEOUT_S = 120


@dataclass(frozen=True)
class SparkCluster:
    port: int
    page: int

    @property
    def master(self) -> str:
        return f"spark://{LOOPBACK}:{self.port}"

    def state(self) -> dict[str, object]:
        """As the master's page tells it; empty while that does not answer."""
        try:
            with urlopen(f"http://{LOOPBACK}:{self.page}/json/", timeout=10) as answer:
                state: dict[str, object] = json.load(answer)
                return state
        except (OSError, ValueError):
            return {}


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    cluster = SparkCluster(free_port(), free_port())
    master = ("master.Master", "--port", str(cluster.port), "--webui-port", str(cluster.page))
    worker = (
        "worker.Worker",
        "--webui-port",
        "0",
        "--cores",
        "1",
        "--memory",
        "1g",
        "--work-dir",
        str(folder / "work"),
    )
    with ExitStack() as processes:
        processes.enter_context(_process(folder / "master.log", *master))
        wait_until(lambda: bool(cluster.state()), _START_TIMEOUT_S)
        for number in range(WORKERS):
            processes.enter_context(_process(folder / f"worker{number}.log", *worker, cluster.master))
        wait_until(lambda: cluster.state().get("aliveworkers") == WORKERS, _START_TIMEOUT_S)
        yield cluster


@contextmanager
def _process(log: Path, name: str, *arguments: str) -> Iterator[None]:
    command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", LOOPBACK, *arguments]
    environment = os.environ | {
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        process.wait()
