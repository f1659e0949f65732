"""Calculated fields: the running average of each device's temperature, kept by a consumer that may crash at any time.

    python examples/calculated_fields.py
    python examples/calculated_fields.py --provider kafka --servers localhost:9092

What the consumer remembers of a device is in a compacted queue, which whoever gets the partition next reads first. With
`exactly_once` each reading counts once: a reading, the new average and what is remembered are one transaction. It ends
by itself.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from a checkout

from queuecore import DeliveryContext, Queues, Record, open_queues

READINGS, AVERAGES, STATE = "readings", "averages", "averages-state"
PARTITIONS = 4
DEVICES = 10
READINGS_PER_DEVICE = 50


def devices(queues: Queues) -> int:
    """Each measures 0, 1, 2, … degrees above its own number."""
    sent = [
        queues.publish(
            READINGS, f"device-{device}", json.dumps({"device": device, "degrees": device + number}).encode()
        )
        for number in range(READINGS_PER_DEVICE)
        for device in range(DEVICES)
    ]
    return len([one.result(timeout=60) for one in sent])


def average(record: Record, context: DeliveryContext) -> None:
    reading = json.loads(record.data)
    known = json.loads(context.state.get(record.key) or b'{"count": 0, "sum": 0}')
    known = {"count": known["count"] + 1, "sum": known["sum"] + reading["degrees"]}
    context.state.put(record.key, json.dumps(known).encode())
    result = {"device": reading["device"], "degrees": known["sum"] / known["count"]}
    context.send(AVERAGES, record.key, json.dumps(result).encode())


def calculate(queues: Queues) -> int:
    """One run of the consumer; how many devices it knows at its end."""
    with queues.subscribe(
        READINGS,
        average,
        group="averages",
        delivery="exactly_once",
        submit="SEQUENTIAL_BY_ORIGINATOR",
        state_queue=STATE,
    ) as subscription:
        if not subscription.drain(timeout_s=120):
            sys.exit("the averages were not calculated in time")
        return subscription.state_entries


def last_averages(queues: Queues) -> dict[int, float]:
    """What somebody sees who reads the averages."""
    seen: dict[int, float] = {}

    def note(record: Record, context: DeliveryContext) -> None:  # noqa: ARG001
        result = json.loads(record.data)
        seen[result["device"]] = result["degrees"]

    with queues.subscribe(AVERAGES, note, group="display") as display:
        if not display.drain(timeout_s=120):
            sys.exit("the averages were not read in time")
    return seen


def run(queues: Queues) -> None:
    queues.create(READINGS, PARTITIONS)
    queues.create(AVERAGES, PARTITIONS)
    queues.create(STATE, PARTITIONS, cleanup="compact")
    for number in (1, 2):
        published = devices(queues)
        known = calculate(queues)
        print(f"run {number}: {published} readings of {known} devices")
    averages = last_averages(queues)
    for device in range(3):
        print(f"device {device}: {averages[device]} degrees on average")


def main() -> None:
    parser = argparse.ArgumentParser(description="The running average of each device's temperature.")
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
