"""`python -m tests.reliability.counter_to_kill PROVIDER WHERE QUEUE SUBMIT JOURNAL`: a consumer to be killed by a test.

Counts the messages of each entity, and all of a partition, in its state, and sends each entity's count on. Notes in the
journal whenever its handler runs. It ends well when its standard input does.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from queuecore import ConsumerOptions, DeliveryContext, Record, open_queues
from tests.reliability.consumer_to_kill import ROOT, kill

# Every message changes this one, whatever lane it is in.
TOTAL: Final = b"total"
GROUP: Final = "counters"


@contextmanager
def counter_to_kill(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Its process. Leaving the block ends it well, unless it has been killed."""
    program = [sys.executable, "-m", "tests.reliability.counter_to_kill", *arguments]
    process = subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE)
    try:
        yield process
        if process.returncode is None:
            process.communicate(timeout=120)
    finally:
        kill(process)


def main(arguments: list[str]) -> None:
    given = _parser().parse_args(arguments)
    # Written by the kernel when the call returns: a kill loses nothing of it.
    notes = os.open(given.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def count(record: Record, context: DeliveryContext) -> None:
        os.write(notes, b".")
        numbers = {key: int(context.state.get(key) or 0) + 1 for key in (record.key, TOTAL)}
        for key, number in numbers.items():
            context.state.put(key, b"%d" % number)
        context.send(f"{given.queue}-out", record.key, b"%d" % numbers[record.key])

    few = ConsumerOptions(max_poll_records=50, session_timeout_ms=given.session_ms)
    where = {"folder" if given.provider == "log" else "servers": given.where}
    options = {"group": GROUP, "submit": given.submit, "state_queue": f"{given.queue}-state"}
    with (
        open_queues(given.provider, consuming=few, **where) as queues,
        queues.subscribe(given.queue, count, delivery="exactly_once", **options),
    ):
        sys.stdin.read()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("provider", choices=["log", "kafka"])
    parser.add_argument("where", help="the folder, or the brokers")
    parser.add_argument("queue")
    parser.add_argument("submit")
    parser.add_argument("journal")
    parser.add_argument("--session-ms", type=int, default=ConsumerOptions().session_timeout_ms)
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
