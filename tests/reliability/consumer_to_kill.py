"""`python -m tests.reliability.consumer_to_kill FOLDER DELIVERY JOURNAL [NUMBER]`: a consumer to be killed by a test.

Notes in the journal which messages its handler was given, and sends each on to the queue `out`. In the middle of the
message with that number it waits to be killed. It ends well when its standard input does.
"""

import os
import sys
import threading

from queuecore import ConsumerOptions, DeliveryContext, Record, open_queues


def main(folder: str, delivery: str, journal: str, deadly: str = "") -> None:
    # Written by the kernel when the call returns: a kill loses nothing of it.
    notes = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def handle(record: Record, context: DeliveryContext) -> None:
        os.write(notes, record.data + b"\n")
        context.send("out", record.key, record.data)
        if record.data.decode() == deadly:
            threading.Event().wait()

    few = ConsumerOptions(max_poll_records=50)
    with (
        open_queues("log", folder=folder, consuming=few) as queues,
        queues.subscribe("in", handle, group="g", delivery=delivery),
    ):
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
