"""Processes: a service that runs until it is stopped, and a tool that runs to its end."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from queuecore.testing.services.accounts import Account
from queuecore.testing.services.errors import ServiceFailed

GUARD = Path(__file__).with_name("guard.py")
GRACE_S = 20.0
TOOL_TIMEOUT_S = 120.0
TAIL_LINES = 12


def tail(path: Path, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log, indented to stand under a message; empty when there is none."""
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])


def clean_environment() -> dict[str, str]:
    """The little a server needs: no PG*, JAVA_* or LC_* of the caller's shell changes how it behaves."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {"LC_ALL": "C", **inherited}


def run_tool(command: Sequence[str], *, cwd: Path, account: Account | None = None, stdin: str = "") -> None:
    """Run a short command to its end, as `account` if given; raises `ServiceFailed` with its last words."""
    tool = Path(command[0]).name
    try:
        result = subprocess.run(
            command,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=cwd,
            env=clean_environment(),
            timeout=TOOL_TIMEOUT_S,
            check=False,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
    except subprocess.TimeoutExpired:
        raise ServiceFailed(f"{tool} did not end within {TOOL_TIMEOUT_S:.0f} s; is the machine busy?") from None
    if result.returncode != 0:
        words = "\n".join(f"    {line}" for line in result.stdout.splitlines()[-TAIL_LINES:])
        raise ServiceFailed(f"{tool} failed with exit code {result.returncode}:\n{words}")


@dataclass(frozen=True, slots=True)
class Launch:
    """How to run a service: its command, and how to end it."""

    command: tuple[str, ...]
    cwd: Path
    log: Path
    lock_fd: int
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM

    def guarded_command(self) -> list[str]:
        """The command under its guard; isolated from the caller's site-packages, so it starts in a blink."""
        user = [f"--uid={self.account.uid}", f"--gid={self.account.gid}"] if self.account else []
        return [
            *(sys.executable, "-I", "-S", str(GUARD)),
            f"--parent={os.getpid()}",
            f"--stop-signal={self.stop_signal.value}",
            f"--grace-s={GRACE_S}",
            f"--keep-fd={self.lock_fd}",
            *user,
            "--",
            *self.command,
        ]


class GuardedProcess:
    """A running service under its guard, which stops it should this process die first."""

    def __init__(self, launch: Launch) -> None:
        """Start it; its output goes to the end of the launch's log."""
        with launch.log.open("ab") as log:
            self._guard = subprocess.Popen(
                launch.guarded_command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=launch.cwd,
                env=clean_environment(),
                pass_fds=[launch.lock_fd],
                # Ctrl-C in a terminal goes to the foreground group: the runner shall get it, and stop us.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The guard's process id; it leads the process group of the service."""
        return self._guard.pid

    def exit_code(self) -> int | None:
        """Return the service's exit code, or None while it runs."""
        return self._guard.poll()

    def stop(self) -> None:
        """Ask the service to end, wait, and kill what is left after the grace period; safe to repeat."""
        if self._guard.poll() is None:
            self._guard.terminate()
            try:
                self._guard.wait(GRACE_S + 5)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Kill the service and its guard outright; safe to repeat. The service may take a moment longer to be gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._guard.pid, signal.SIGKILL)
        self._guard.wait()
