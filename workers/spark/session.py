"""The process's one Spark session.

Spark is a Java process (the driver JVM) that this process starts and talks to. Its life hangs on a pipe: when
this process ends, however it ends, the JVM reads the end of its standard input and leaves. It runs in a session
of its own, so that a Ctrl-C or a signal for our process group reaches us alone, and we end the JVM in order.
"""

import atexit
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from queueapi.config import Config, config
from workers.spark.errors import SparkUnavailable, essence

JAVA_REMEDY = "install Java 17 or newer (such as the package openjdk-17-jre-headless) or set JAVA_HOME to one"

# Spark 4.3 leaves three file descriptors open for each query over a Python source. A new JVM every few hours keeps
# them well below the usual limits.
USES_PER_JVM = 1000

# Events of one batch.
MUCH = 500_000

_PROJECT_ROOT = Path(__file__).resolve().parents[2]
_LOG4J = Path(__file__).with_name("log4j2.properties")
_EXIT_GRACE_S = 10

# What fails on the way to Java and back is raised here too, and reported where it is handled.
logging.getLogger("py4j").setLevel(logging.CRITICAL)

_lock = threading.Lock()
_open: "_Driver | None" = None


@dataclass(slots=True)
class _Driver:
    session: SparkSession
    gateway: JavaGateway
    uses: int = 0

    @property
    def usable(self) -> bool:
        return self.uses < USES_PER_JVM and self.is_alive()

    def is_alive(self) -> bool:
        """False where the JVM is gone, or has stopped its Spark context over a failure of its own."""
        if self.gateway.proc.poll() is not None:
            return False
        try:
            return not self.session._jsc.sc().isStopped()  # noqa: SLF001 - PySpark has no public question for it
        except (Py4JError, OSError):
            return False


def spark_session() -> SparkSession:
    """The session, for one run. Started on first use, and again after its JVM died. Safe from any thread.

    SparkUnavailable, with the remedy, where it cannot start."""
    global _open
    with _lock:
        if _open is not None and not _open.usable:
            _stop(_open)
            _open = None
        if _open is None:
            _open = _start(config())
        _open.uses += 1
        return _open.session


def suit(spark: SparkSession, events: int) -> None:
    """Set the session up for so many events: a few want few tasks; of many, each task has so few that they fit into
    memory."""
    spark.conf.set("spark.sql.shuffle.partitions", 8 if events >= MUCH else 2)


def stop_session() -> None:
    """End the session and its JVM; the next `spark_session` starts anew."""
    global _open
    with _lock:
        if _open is not None:
            _stop(_open)
        _open = None


atexit.register(stop_session)


def missing_java() -> str | None:
    """Why Spark cannot run here, with the remedy; None where a Java is found."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which(str(Path(home, "bin", "java")) if home else "java"):
        return None
    where = f"under JAVA_HOME ({home})" if home else "in PATH"
    return f"Spark needs Java, and there is none {where}; {JAVA_REMEDY}"


def spark_settings(installation: Config) -> dict[str, str]:
    """One small driver that writes under the data folder alone."""
    folder = installation.data / "spark"
    return {
        **_network(installation.spark_master),
        "spark.app.name": "switchyard",
        "spark.master": installation.spark_master,
        "spark.driver.memory": "768m",
        # Runs last a second or two and the worker is not alone on its machine: start fast, stay small.
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={_LOG4J.as_uri()} -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        ),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.adaptive.enabled": "false",
        # What is many is summed up before it comes to Spark: the rest is done before code for it would be compiled.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # The store's files are listed here: a job of Spark's to look at a hundred names takes longer than they do.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark's Python processes import this tree; a cluster's machines must see it under the same path.
        "spark.executorEnv.PYTHONPATH": str(_PROJECT_ROOT),
    }


def _is_here(master: str) -> bool:
    return master.startswith(("local", "spark://localhost:", "spark://127.0.0.1:"))


def _network(master: str) -> dict[str, str]:
    """Loopback alone, unless the executors are elsewhere and have to reach the driver."""
    if not _is_here(master):
        return {}
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _process_environment(master: str) -> dict[str, str]:
    """Spark's Python processes run the interpreter that runs us; its Java keeps to loopback where it can."""
    # With a Java thread pinned to each Python thread, every query would leave behind a connection and its thread.
    variables = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_PIN_THREAD": "false"}
    return variables | {"SPARK_LOCAL_IP": "127.0.0.1"} if _is_here(master) else variables


def _start(installation: Config) -> _Driver:
    if problem := missing_java():
        raise SparkUnavailable(problem)
    conf = SparkConf(loadDefaults=False).setAll(list(spark_settings(installation).items()))
    (installation.data / "spark" / "local").mkdir(parents=True, exist_ok=True)
    gateway: JavaGateway | None = None
    try:
        with _environment(_process_environment(installation.spark_master)), _interrupt_handler_kept():
            gateway = launch_gateway(conf, {"start_new_session": True})  # type: ignore[no-untyped-call]
            return _Driver(SparkSession(SparkContext(conf=conf, gateway=gateway)), gateway)
    except (PySparkException, Py4JError, OSError) as error:
        if gateway is not None:
            _end(gateway)
        raise SparkUnavailable(
            f"Spark did not start with master {installation.spark_master}: {essence(error)}; "
            f"{_remedy(installation.spark_master)}"
        ) from error


def _remedy(master: str) -> str:
    """Java is there. One that finds nobody at a cluster's address ends by itself, and has not said why."""
    if master.startswith("local"):
        return f"{JAVA_REMEDY}, and check SPARK_MASTER"
    return "look whether a cluster's master runs there and takes applications, and check SPARK_MASTER"


def _stop(driver: _Driver) -> None:
    """Politely where the JVM still answers: asking a dead one leaves sockets open behind."""
    if driver.is_alive():
        with suppress(Py4JError, OSError):
            driver.session.stop()
    else:
        driver.gateway.proc.kill()
    _end(driver.gateway)


def _end(gateway: JavaGateway) -> None:
    """See that the JVM is gone, and that PySpark, which keeps it in class attributes, forgets it."""
    jvm: subprocess.Popen[bytes] = gateway.proc
    gateway.shutdown_callback_server()
    with suppress(OSError):
        if jvm.stdin is not None:
            jvm.stdin.close()
    try:
        jvm.wait(_EXIT_GRACE_S)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()
    gateway._gateway_client.close()  # noqa: SLF001 - its public way asks the JVM, which is gone
    if (context := SparkContext._active_spark_context) is not None:  # noqa: SLF001
        context._jsc = None  # noqa: SLF001
        context.stop()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Add the variables for as long as the JVM is started. What the operator has set stays."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@contextmanager
def _interrupt_handler_kept() -> Iterator[None]:
    """Spark puts in a Ctrl-C handler of its own, which would take the worker's orderly stop from it."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)
