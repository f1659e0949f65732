"""`python -m tests.reliability.consumer_to_kill PROVIDER WHERE DELIVERY JOURNAL`: a consumer to be killed by a test.

Notes in the journal which messages its handler was given, and sends each on to another queue. In the middle of the
deadly message it waits to be killed. It ends well when its standard input does.
"""

import argparse
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from queuecore import ConsumerOptions, DeliveryContext, Queues, Record, open_queues
from queuecore.testing.waiting import DEADLINE_S

ROOT = Path(__file__).parents[2]


@contextmanager
def consumer_to_kill(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Its process. Leaving the block ends it well, unless it has been killed."""
    program = [sys.executable, "-m", "tests.reliability.consumer_to_kill", *arguments]
    process = subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE)
    try:
        yield process
        if process.returncode is None:
            process.communicate(timeout=DEADLINE_S)
    finally:
        kill(process)


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate(timeout=DEADLINE_S)


def main(arguments: list[str]) -> None:
    given = _parser().parse_args(arguments)
    # Written by the kernel when the call returns: a kill loses nothing of it.
    notes = os.open(given.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def handle(record: Record, context: DeliveryContext) -> None:
        os.write(notes, record.data + b"\n")
        context.send(given.target, record.key, record.data)
        if record.data.decode() == given.deadly:
            threading.Event().wait()

    with (
        _open(given.provider, given.where, given.session_ms) as queues,
        queues.subscribe(given.source, handle, group=given.group, delivery=given.delivery),
    ):
        sys.stdin.read()


def _open(provider: str, where: str, session_ms: int) -> Queues:
    few = ConsumerOptions(max_poll_records=50, session_timeout_ms=session_ms)
    if provider == "log":
        return open_queues("log", folder=where, consuming=few)
    return open_queues("kafka", servers=where, consuming=few)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("provider", choices=["log", "kafka"])
    parser.add_argument("where", help="the folder, or the brokers")
    parser.add_argument("delivery")
    parser.add_argument("journal")
    parser.add_argument("--source", default="in")
    parser.add_argument("--target", default="out")
    parser.add_argument("--group", default="g")
    parser.add_argument("--session-ms", type=int, default=ConsumerOptions().session_timeout_ms)
    parser.add_argument("--deadly", default="")
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
