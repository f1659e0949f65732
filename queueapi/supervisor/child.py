"""One child process: started, watched, started again."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from queueapi.supervisor.children import ChildSpec
from queueapi.supervisor.output import Output
from queuecore.clock import SYSTEM_CLOCK, Clock

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 30.0
STEADY_AFTER_S = 60.0

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class Child:
    """A process that should run. Only the supervisor's main thread touches it."""

    def __init__(
        self,
        spec: ChildSpec,
        output: Output,
        folder: Path,
        environment: Mapping[str, str],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.spec = spec
        self.restarts = 0
        self.last_exit = ""
        self._output = output
        self._folder = folder
        self._environment = {**os.environ, **environment, "PYTHONUNBUFFERED": "1"}
        self._clock = clock
        self._process: subprocess.Popen[str] | None = None
        self._started_at = 0.0
        self._start_at: float | None = None
        self._backoff_s = FIRST_BACKOFF_S

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self.spec.command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # Ctrl-C goes to the terminal's foreground group: the supervisor shall get it, and stop us in order.
            # And what a child started can be found, and ended, after the child is gone.
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
        self._started_at = self._clock.monotonic()
        self._start_at = None
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for above
        self._output.follow(self._process.stdout)

    def has_died(self) -> bool:
        """True once per death, which also sets when to start again."""
        if self._process is None or (code := self._process.poll()) is None:
            return False
        if self._clock.monotonic() - self._started_at > STEADY_AFTER_S:
            self._backoff_s = FIRST_BACKOFF_S
        kill_group(self._process.pid)
        self._process = None
        self.restarts += 1
        self.last_exit = exit_reason(code)
        self._start_at = self._clock.monotonic() + self._backoff_s
        self._output.say(f"{self.last_exit}; starting it again in {self._backoff_s:g} s")
        self._backoff_s = min(LONGEST_BACKOFF_S, self._backoff_s * 2)
        return True

    def is_due(self) -> bool:
        return self._start_at is not None and self._clock.monotonic() >= self._start_at

    def terminate(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait(self, since: float) -> None:
        """Wait for the end, until its patience is over; what is left of its process group then is killed."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, since + self.spec.patience_s - self._clock.monotonic()))
        except subprocess.TimeoutExpired:
            self._output.say(f"still busy after {self.spec.patience_s:g} s; killed")
        kill_group(self._process.pid)
        self._process.wait()


def kill_group(leader: int) -> None:
    """What a dead child leaves behind, such as web's workers, would keep its port from the next one."""
    with suppress(ProcessLookupError, PermissionError):  # nobody left; macOS says so with the second
        os.killpg(leader, signal.SIGKILL)


def exit_reason(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:  # real-time signals have numbers only
        return f"ended by signal {-code}"


def die_with_parent() -> Callable[[], None] | None:
    """For the child between fork and exec: should the supervisor be killed, its children stop as well."""
    if _libc is None:
        return None
    libc = _libc

    def ask_kernel() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    return ask_kernel
