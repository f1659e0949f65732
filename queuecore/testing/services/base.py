"""What every service is: found or missing, started on a data directory, asked for its address, stopped."""

import shutil
import signal
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from queuecore.testing.services.accounts import Account
from queuecore.testing.services.errors import ServiceFailed, ServiceMissing
from queuecore.testing.services.locking import FileLock
from queuecore.testing.services.ports import LOOPBACK, remembered_port
from queuecore.testing.services.process import GRACE_S, GuardedProcess, Launch, tail

START_TIMEOUT_S = 120.0
POLL_S = 0.05


class Service(ABC):
    """A server on loopback with all its data under one directory; one per directory, for one thread.

    Restarted on the same directory it keeps its data and, while its port is free, its address.
    `ephemeral` trades durability for speed: right for tests, wrong for anything to be kept.
    As a context manager it starts on entry and stops on exit.
    """

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    account: Account | None = None

    def __init__(self, data_dir: Path, *, ephemeral: bool = False) -> None:
        self.data_dir = data_dir.resolve()
        self.ephemeral = ephemeral
        self.port = 0
        self._lock = FileLock(self.data_dir / "lock")
        self._process: GuardedProcess | None = None

    @abstractmethod
    def missing(self) -> str | None:
        """Say in one line what is missing on this machine and how to get it; None when nothing is."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """The variables that point Switchyard at this service; it must have been started."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make the data directory usable: a new one is set up, one from an earlier run is taken over.

        Runs with the directory locked and `port` chosen; nothing else uses the directory.
        """

    @abstractmethod
    def _command(self) -> tuple[str, ...]:
        """The command that runs the server in the foreground."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the server answers a real request; may raise `OSError` while it does not."""

    @property
    def address(self) -> str:
        """Host and port, once started."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def log(self) -> Path:
        """Where the server's output goes."""
        return self.data_dir / f"{self.name}.log"

    @property
    def home(self) -> Path:
        """Where the server's data really is; the data directory, unless the server cannot enter it."""
        return self.data_dir

    @property
    def pid(self) -> int | None:
        """The id of the process group the server runs in; None while it is stopped."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the server and return once it answers; does nothing when it runs.

        Raises `ServiceMissing` when it cannot be had here, and `ServiceFailed` with the end of its log
        when it does not come up. Whatever is raised, no process is left.
        """
        if self._process is not None:
            return
        if reason := self.missing():
            raise ServiceMissing(reason)
        self.data_dir.mkdir(parents=True, exist_ok=True)
        # What a killed runner left behind may still be shutting down: that is worth waiting for.
        self._lock.acquire(timeout_s=0 if self._lock.holder_lives() else GRACE_S + 10)
        try:
            self.port = remembered_port(self.data_dir / "port")
            self._prepare()
            self._process = GuardedProcess(self._launch())
            self._wait_until_it_answers(self._process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server cleanly, or by force after the grace period; safe to repeat."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        self._lock.release()

    def kill(self) -> None:
        """Kill the server outright, as a crash would; `start` takes over what it left. Safe to repeat."""
        if self._process is None:
            return
        self._process.kill()
        self._process = None
        self._lock.release()
        # The server shares the lock until it is gone.
        self._lock.acquire(timeout_s=GRACE_S)
        self._lock.release()

    def erase(self) -> None:
        """Stop the server and delete all it wrote."""
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.rmtree(self.data_dir, ignore_errors=True)

    def exit_code(self) -> int | None:
        """Return the exit code of a server that died by itself; None while it runs or was stopped."""
        return self._process.exit_code() if self._process else None

    def obituary(self) -> str:
        """Say that the server is gone, with its exit code and the end of its log."""
        return f"{self.name} ended with exit code {self.exit_code()}; the end of {self.log}:\n{tail(self.log)}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self) -> Launch:
        return Launch(
            command=self._command(),
            cwd=self.home,
            log=self.log,
            lock_fd=self._lock.fd,
            account=self.account,
            stop_signal=self.stop_signal,
        )

    def _wait_until_it_answers(self, process: GuardedProcess) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_answering():
            if process.exit_code() is not None:
                raise ServiceFailed(self.obituary())
            if time.monotonic() >= deadline:
                raise ServiceFailed(
                    f"{self.name} does not answer on {self.address} after {START_TIMEOUT_S:.0f} s; "
                    f"the end of {self.log}:\n{tail(self.log)}"
                )
            time.sleep(POLL_S)

    def _is_answering(self) -> bool:
        try:
            return self._answers()
        except OSError:
            return False
