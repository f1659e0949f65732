"""A user asks a device something: through a queue to a rule engine, and by notifications from there on.

    python examples/rpc.py
    python examples/rpc.py --provider log --folder var/rpc
    python examples/rpc.py --provider kafka --servers localhost:9092

    core ──(queue tb_rule_engine)──> rule engine ──(tb_transport.notifications.transport-1)──> transport-1 ──> device
    core <──────────(tb_core.notifications.core-1)──────────────────────────────────────────── transport-1 <── device

Any rule engine may handle the request. But only one transport has the device's connection, and only one core knows who
asked. It ends by itself.
"""

import argparse
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from a checkout

from queuecore import DeliveryContext, Provider, Queues, QueueSettings, Record, ServiceType, open_provider
from queuecore.cluster.notifications import NotificationInbox, Notifier, notification
from queuecore.cluster.services import ServiceInfo, by_id
from queuecore.topics import with_prefix

QUEUE, GROUP = "tb_rule_engine", "tb_rule_engine_main-consumer"
CORES, ENGINES, TRANSPORTS = ("core-1", "core-2"), ("re-1", "re-2"), ("transport-1", "transport-2")
TYPES = {"core": ServiceType.TB_CORE, "re": ServiceType.TB_RULE_ENGINE, "transport": ServiceType.TB_TRANSPORT}
# Who is there. A service of a real cluster asks its store.
CLUSTER = by_id(ServiceInfo(name, (TYPES[name.partition("-")[0]],)) for name in (*CORES, *ENGINES, *TRANSPORTS))
DEVICES = 10
WAIT_S = 60.0


class Device:
    """What is at the other end of a connection."""

    def __init__(self, number: int) -> None:
        self.number = number

    def call(self, method: str) -> float:
        if method != "temperature":
            raise ValueError(f"a device does not know {method}")
        return 20.0 + self.number


class Node:
    """What every instance has: it is told things, and tells others."""

    def __init__(self, name: str, provider: Provider, settings: QueueSettings) -> None:
        self.name = name
        self.inbox = NotificationInbox(provider, CLUSTER[name], settings)
        self.notifier = Notifier(provider.producer(), lambda: CLUSTER, settings, producer_id=name)

    def tell(self, service_id: str, kind: str, body: Mapping[str, object]) -> None:
        """Returns once it is stored: whatever made us tell counts as done only then."""
        self.notifier.notify(service_id, notification(kind, json.dumps(body).encode())).result(WAIT_S)


class Core(Node):
    """Sends what its users ask, and waits for the results."""

    def __init__(self, name: str, provider: Provider, settings: QueueSettings) -> None:
        super().__init__(name, provider, settings)
        self.queue = with_prefix(settings.prefix, QUEUE)
        self.answers: dict[str, float] = {}
        self.is_complete = threading.Event()
        self.inbox.listen("rpc.result", self.take)

    def ask(self, queues: Queues, device: int) -> None:
        request = {"id": f"{self.name}/{device}", "core": self.name, "device": device, "method": "temperature"}
        queues.publish(self.queue, f"device-{device}", json.dumps(request).encode()).result(WAIT_S)

    def take(self, record: Record) -> None:
        result = json.loads(record.data)
        self.answers[result["id"]] = result["value"]
        if len(self.answers) == DEVICES:
            self.is_complete.set()


class RuleEngine(Node):
    """Knows where devices are connected."""

    def __init__(self, name: str, provider: Provider, settings: QueueSettings, sessions: Mapping[int, str]) -> None:
        super().__init__(name, provider, settings)
        self.sessions = sessions

    def process(self, record: Record, context: DeliveryContext) -> None:  # noqa: ARG002
        request = json.loads(record.data)
        self.tell(self.sessions[request["device"]], "rpc.request", request)


class Transport(Node):
    """Has the devices' connections."""

    def __init__(self, name: str, provider: Provider, settings: QueueSettings, sessions: dict[int, str]) -> None:
        super().__init__(name, provider, settings)
        self.sessions = sessions
        self.devices: dict[int, Device] = {}
        self.forwarded: Counter[int] = Counter()
        self.inbox.listen("rpc.request", self.forward)

    def connect(self, device: Device) -> None:
        self.devices[device.number] = device
        self.sessions[device.number] = self.name

    def forward(self, record: Record) -> None:
        request = json.loads(record.data)
        value = self.devices[request["device"]].call(request["method"])
        self.forwarded[request["device"]] += 1
        self.tell(request["core"], "rpc.result", {"id": request["id"], "value": value})


def run(provider: Provider, queues: Queues, settings: QueueSettings) -> None:
    queue, group = with_prefix(settings.prefix, QUEUE), with_prefix(settings.prefix, GROUP)
    queues.create(queue, partitions=4)
    sessions: dict[int, str] = {}
    cores = [Core(name, provider, settings) for name in CORES]
    engines = [RuleEngine(name, provider, settings, sessions) for name in ENGINES]
    transports = [Transport(name, provider, settings, sessions) for name in TRANSPORTS]
    for number in range(DEVICES):
        transports[number % 2].connect(Device(number))
    with ExitStack() as stopping:
        for node in (*cores, *transports):
            stopping.enter_context(node.inbox)
        for engine in engines:
            stopping.enter_context(queues.subscribe(queue, engine.process, group=group))
        for core in cores:
            for number in range(DEVICES):
                core.ask(queues, number)
        if not all(core.is_complete.wait(WAIT_S) for core in cores):
            sys.exit("not all answers came in time")
    for core in cores:
        own = sum(request.startswith(f"{core.name}/") for request in core.answers)
        print(f"{core.name}: {own} of its {DEVICES} requests answered, {len(core.answers) - own} of others")
    for transport in transports:
        asked = sorted(transport.forwarded)
        print(f"{transport.name}: forwarded to its devices {' '.join(map(str, asked))}")
    print(f"device 7 has {cores[0].answers['core-1/7']} degrees")


def main() -> None:
    parser = argparse.ArgumentParser(description="Users ask devices, through a cluster.")
    parser.add_argument("--provider", choices=["in-memory", "log", "kafka"], default="in-memory")
    parser.add_argument("--folder", help="where the log keeps its files; by default a temporary folder")
    parser.add_argument("--servers", help="Kafka's brokers, as host:port,host:port")
    parser.add_argument("--prefix", default="", help="what all topics begin with, where others are on the same Kafka")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or temporary) if options.provider == "log" else None
        provider = open_provider(options.provider, folder=folder, servers=options.servers)
        with Queues(provider) as queues:
            run(provider, queues, QueueSettings(prefix=options.prefix))


if __name__ == "__main__":
    main()
