"""Logs of many services in one place: each publishes its lines with headers, a central consumer indexes them.

    python examples/log_aggregation.py
    python examples/log_aggregation.py --provider kafka --servers localhost:9092

Lines belong to no entity, so they are spread evenly over the partitions. The index is `at_most_once`: should it crash,
a few lines are missing, and none is counted twice. It ends by itself.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from a checkout

from queuecore import DeliveryContext, Queues, Record, open_queues

QUEUE = "logs"
PARTITIONS = 4
SERVICES = ("api-gateway", "billing", "catalogue", "search")
LINES_PER_SERVICE = 250


def log_lines(service: str) -> Iterator[tuple[str, str]]:
    """What a service has to say: every tenth time, an error."""
    for number in range(LINES_PER_SERVICE):
        level = "ERROR" if number % 10 == 0 else "INFO"
        yield level, f"{service}: request {number} {'failed' if level == 'ERROR' else 'answered'}"


def service(queues: Queues, name: str) -> int:
    """One of many services, each on its own thread here."""
    for level, line in log_lines(name):
        queues.publish(QUEUE, None, line.encode(), {"service": name.encode(), "level": level.encode()})
    return LINES_PER_SERVICE


class Index:
    """The central consumer; only its own thread writes here."""

    def __init__(self) -> None:
        self.lines: Counter[tuple[str, str]] = Counter()
        self.by_partition: Counter[int] = Counter()

    def add(self, record: Record, context: DeliveryContext) -> None:
        self.lines[record.headers["service"].decode(), record.headers["level"].decode()] += 1
        self.by_partition[context.partition] += 1


def run(queues: Queues) -> None:
    queues.create(QUEUE, PARTITIONS)
    index = Index()
    with ThreadPoolExecutor(len(SERVICES)) as threads:
        published = sum(threads.map(lambda name: service(queues, name), SERVICES))
    queues.flush()
    with queues.subscribe(QUEUE, index.add, group="index", delivery="at_most_once") as subscription:
        if not subscription.drain(timeout_s=120):
            sys.exit("the lines were not indexed in time")
    print(f"{published} lines published by {len(SERVICES)} services, {index.lines.total()} indexed")
    for name in SERVICES:
        print(f"{name}: {index.lines[name, 'INFO']} INFO, {index.lines[name, 'ERROR']} ERROR")
    print("lines per partition:", " ".join(str(index.by_partition[number]) for number in range(PARTITIONS)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Logs of many services in one place.")
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
