"""`python -m queuecore.testing.services`: Kafka, PostgreSQL and Redis on loopback until Ctrl-C.

Exit code 0 after Ctrl-C or SIGTERM; 1 when nothing could start, when one that was asked for by name did not,
or when one died; 2 for wrong usage.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import FrameType

from queuecore.testing.services import SERVICES
from queuecore.testing.services.runner import Runner, complain, say

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopAsked(BaseException):
    """Somebody wants us to stop; not an `Exception`, so that nothing on the way takes it for a failure."""


def on_stop_signals(action: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Let `action` answer every signal that means stop."""
    for number in STOP_SIGNALS:
        signal.signal(number, action)


def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
    """Leave whatever is being done; once, as the stop itself is bounded and shall not be cut short."""
    on_stop_signals(signal.SIG_IGN)
    raise StopAsked


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m queuecore.testing.services",
        description="Run real services on loopback until Ctrl-C, and print how to point Switchyard at them.",
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=Path("var/services"),
        help="where their data is kept from run to run (default: %(default)s)",
    )
    parser.add_argument(
        "services", nargs="*", metavar="service", help=f"which to run: {', '.join(SERVICES)} (default: all)"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.services) - SERVICES.keys():
        parser.error(f"unknown service {', '.join(sorted(unknown))}; known are {', '.join(SERVICES)}")
    return options


def run(runner: Runner, asked_for: Collection[str]) -> int:
    """Start, watch, and return the exit code; the caller stops what runs."""
    missing: list[str] = []
    try:
        on_stop_signals(ask_to_stop)
        missing = [name for name in runner.start() if name in asked_for]
        if runner.started:
            runner.watch()
        else:
            complain("No service could be started.")
    except StopAsked:
        say("\nStopping ...")
        return 1 if missing else 0
    return 1


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = parse(arguments)
    data_dir: Path = options.data_dir
    services = [SERVICES[name](data_dir / name) for name in dict.fromkeys(options.services or SERVICES)]
    runner = Runner(services, data_dir.resolve() / "services.env")
    try:
        return run(runner, asked_for=options.services)
    finally:
        on_stop_signals(signal.SIG_IGN)
        runner.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
