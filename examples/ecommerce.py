"""Orders of an online shop: a web API publishes them, a group of workers processes them.

    python examples/ecommerce.py
    python examples/ecommerce.py --provider kafka --servers localhost:9092

All orders of one customer go to the same partition, so they are processed in the order they were placed, whichever
worker does it. One order cannot be processed: it becomes a dead letter, and holds up nothing. It ends by itself.
"""

import argparse
import json
import sys
import tempfile
import threading
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from a checkout

from queuecore import DeliveryContext, MessageHandler, Queues, Record, open_queues, processing_strategy

QUEUE = "orders"
PARTITIONS = 10
WORKERS = 3
CUSTOMERS = 20
ORDERS_PER_CUSTOMER = 15
TWICE_MORE = processing_strategy("RETRY_FAILED", retries=2, pause_ms=10)


def web_api(queues: Queues) -> int:
    """Place orders; each is answered once it is stored."""
    answers = [
        queues.publish(QUEUE, f"customer-{customer}", json.dumps({"customer": customer, "number": number}).encode())
        for number in range(ORDERS_PER_CUSTOMER)
        for customer in range(CUSTOMERS)
    ]
    return len([answer.result(timeout=60) for answer in answers])


class Shop:
    """What the workers have in common; each runs its handler on threads of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.shipped: dict[int, list[int]] = defaultdict(list)

    def worker(self) -> MessageHandler:
        def process_order(record: Record, context: DeliveryContext) -> None:
            order = json.loads(record.data)
            if order == {"customer": 7, "number": 7}:
                raise ValueError("nobody lives at this address")
            if order["number"] == 0 and context.attempt == 1:
                raise ConnectionError("the payment service is busy")  # over when it is tried again
            with self._lock:
                # At least once: after a crash or a hand-over it may come a second time.
                if order["number"] not in self.shipped[order["customer"]]:
                    self.shipped[order["customer"]].append(order["number"])

        return process_order


def run(queues: Queues) -> None:
    queues.create(QUEUE, PARTITIONS)
    shop = Shop()
    with ExitStack() as workers:
        members = [
            workers.enter_context(
                queues.subscribe(QUEUE, shop.worker(), group="order-processors", processing=TWICE_MORE)
            )
            for _ in range(WORKERS)
        ]
        placed = web_api(queues)
        if not members[0].drain(timeout_s=120):
            sys.exit("the orders were not processed in time")
    letters = list(queues.dead_letters(QUEUE))
    shipped = sum(len(numbers) for numbers in shop.shipped.values())
    in_order = sum(numbers == sorted(numbers) for numbers in shop.shipped.values())
    print(f"{placed} orders placed, {shipped} shipped by a group of {WORKERS} workers, {len(letters)} put aside")
    print(f"{in_order} of {len(shop.shipped)} customers got theirs in order")
    for letter in letters:
        print(f"put aside: {letter.message.data.decode()}: {letter.story.exception_message}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Orders of an online shop.")
    parser.add_argument("--provider", choices=["in-memory", "log", "kafka"], default="log")
    parser.add_argument("--folder", help="where the log keeps its files; by default a temporary folder")
    parser.add_argument("--servers", help="Kafka's brokers, as host:port,host:port")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or temporary) if options.provider == "log" else None
        with open_queues(options.provider, folder=folder, servers=options.servers) as queues:
            run(queues)


if __name__ == "__main__":
    main()
