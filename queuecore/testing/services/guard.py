"""Stand between the runner and one service: stop the service when asked, or when the runner is gone.

Run as a script (`process.py` does), with the standard library alone. A process of its own, because it must
outlive a runner that was killed outright, and because `PR_SET_PDEATHSIG` alone would not do: it fires when
the starting *thread* ends, sends a single signal, and exists on Linux only. Here it is the second line: this
process has one thread, and should it be killed too, the kernel signals the service.
"""

import argparse
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import FrameType

POLL_S = 0.25
PR_SET_PDEATHSIG = 1


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line: who to watch, how to stop, what to run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True, help="stop when this process is gone")
    parser.add_argument("--stop-signal", type=int, default=signal.SIGTERM)
    parser.add_argument("--grace-s", type=float, default=20.0, help="then SIGKILL")
    parser.add_argument("--keep-fd", type=int, required=True, help="the data directory's lock")
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("command", nargs="+")
    return parser.parse_args(arguments)


def die_with_guard(stop_signal: int) -> Callable[[], None]:
    """Return what the child runs before it becomes the service; after the change of user, which resets it."""
    guard = os.getpid()
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def bind() -> None:
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, stop_signal, 0, 0, 0)
        if os.getppid() != guard:
            os._exit(1)

    return bind


def start(options: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Start the service, as the asked user, with the lock on its directory."""
    return subprocess.Popen(
        options.command,
        stdin=subprocess.DEVNULL,
        user=options.uid,
        group=options.gid,
        extra_groups=None if options.uid is None else [],
        pass_fds=[options.keep_fd],
        preexec_fn=die_with_guard(options.stop_signal),
    )


def exited_within(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait up to `seconds` for the child; say whether it is gone."""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def main(arguments: list[str]) -> int:
    """Run the service to its end and return its exit code (128 + n after signal n, as a shell does)."""
    options = parse(arguments)
    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    signal.signal(signal.SIGTERM, ask)
    child = start(options)
    while not exited_within(child, POLL_S):
        if asked or os.getppid() != options.parent:
            child.send_signal(options.stop_signal)
            if not exited_within(child, options.grace_s):
                child.kill()
                child.wait()
            break
    code = child.returncode
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
