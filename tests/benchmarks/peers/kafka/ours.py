"""Switchyard: a subscription as anybody makes one."""

import threading
import time

from queuecore.messages import Record
from queuecore.queues import DeliveryContext, open_queues
from tests.benchmarks.peers.kafka.work import Task, Work

_LOOK_EVERY_S = 0.001


def main(task: Task) -> None:
    work, is_handled = Work(task.messages), threading.Event()

    def handle(record: Record, _context: DeliveryContext) -> None:
        work.handle(record.data)
        if work.is_done:
            is_handled.set()

    with (
        open_queues("kafka", servers=task.servers) as queues,
        queues.subscribe(task.topic, handle, group=task.group) as subscription,
    ):
        is_handled.wait()
        # Counted once it is committed.
        while subscription.counts.handled < task.messages:
            time.sleep(_LOOK_EVERY_S)
        work.report()


if __name__ == "__main__":
    main(Task.of_arguments())
