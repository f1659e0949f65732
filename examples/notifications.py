"""Messages to one instance of a service: a cluster's cores, rule engines and a transport tell each other things.

    python examples/notifications.py
    python examples/notifications.py --provider log --folder var/notifications
    python examples/notifications.py --provider kafka --servers localhost:9092

A queue gives a message to whoever has its partition. Some messages are for one instance alone: the core that asked, the
transport that has the device's connection. Each has a notification topic, which it alone reads. It ends by itself.
"""

import argparse
import queue
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from a checkout

from queuecore import (
    Channel,
    Deployment,
    Provider,
    QueueMessage,
    Record,
    ServiceType,
    UnknownService,
    open_provider,
    queue_factory,
    send_and_wait,
)
from queuecore.cluster.notifications import NotificationInbox, Notifier, notification
from queuecore.cluster.services import ServiceInfo, by_id
from queuecore.providers.opening import ProviderName

CORE, ENGINE, TRANSPORT = ServiceType.TB_CORE, ServiceType.TB_RULE_ENGINE, ServiceType.TB_TRANSPORT
# Who is there. A service of a real cluster asks its store.
CLUSTER = by_id(
    [
        *(ServiceInfo("core-1", (CORE,)), ServiceInfo("core-2", (CORE,))),
        *(ServiceInfo("re-1", (ENGINE,)), ServiceInfo("re-2", (ENGINE,))),
        *(ServiceInfo("mqtt-1", (TRANSPORT,)), ServiceInfo("mqtt-2", (TRANSPORT,))),
    ]
)
WAIT_S = 60.0


class Service:
    """One instance. Its listeners run on the inbox's thread, and put what they hear where the program waits for it."""

    def __init__(self, provider: Provider, service: ServiceInfo) -> None:
        self.heard: queue.Queue[str] = queue.Queue()
        self.cache = {"profile-7": "sends every minute"}
        self.sessions = {"device-7": "open"}
        self.inbox = NotificationInbox(provider, service)
        self.inbox.listen("rpc.response", self.take_response)
        self.inbox.listen("cache.invalidate", self.forget)
        self.inbox.listen("session.closed", self.close_session)
        producer = provider.producer()
        self.notifier = Notifier(producer, lambda: CLUSTER, producer_id=service.service_id)

    def take_response(self, record: Record) -> None:
        self.heard.put(record.data.decode())

    def forget(self, record: Record) -> None:
        self.cache.pop(record.data.decode(), None)  # at least once: it may come again
        self.heard.put("forgot")

    def close_session(self, record: Record) -> None:
        self.sessions[record.data.decode()] = "closed"
        self.heard.put("closed")


Services = Mapping[str, Service]


@contextmanager
def started(provider: Provider) -> Iterator[Services]:
    services = {name: Service(provider, info) for name, info in CLUSTER.items()}
    with ExitStack() as stopping:
        for service in services.values():
            stopping.enter_context(service.inbox)
        yield services


def quiet(services: Services, *names: str) -> str:
    return f"{' and '.join(names)} heard {sum(services[name].heard.qsize() for name in names) or 'nothing'}"


def rpc_response(services: Services) -> None:
    """A rule engine answers to the core that asked: in tb_core.notifications.core-1."""
    stored = services["re-2"].notifier.notify("core-1", notification("rpc.response", b"21.5 degrees")).result(WAIT_S)
    answer = services["core-1"].heard.get(timeout=WAIT_S)
    print(f"{stored.topic}: core-1 got {answer}, {quiet(services, 'core-2')}")


def cache_invalidation(services: Services) -> None:
    """A core has every rule engine forget what it knew."""
    told = services["core-1"].notifier.notify_all(ENGINE, notification("cache.invalidate", b"profile-7"))
    for name, stored in told.items():
        services[name].heard.get(timeout=WAIT_S)
        print(f"{stored.result(WAIT_S).topic}: {name} knows {len(services[name].cache)} profiles")


def session_notification(services: Services) -> None:
    """A core tells the transport that has the device's connection."""
    stored = services["core-2"].notifier.notify("mqtt-1", notification("session.closed", b"device-7")).result(WAIT_S)
    services["mqtt-1"].heard.get(timeout=WAIT_S)
    sessions = ", ".join(f"{services[name].sessions['device-7']} at {name}" for name in ("mqtt-1", "mqtt-2"))
    print(f"{stored.topic}: the session is {sessions}")


def edge_sync(provider: Provider, name: ProviderName) -> None:
    """An edge is no service: the core that it is connected to reads its topic for it, whichever that is."""
    factory = queue_factory(Deployment.MONOLITH, ServiceType.TB_CORE, name, opened=provider)
    factory.create_topic(Channel.EDGE_EVENTS, "edge-1")
    address = factory.address(Channel.EDGE_EVENTS, "edge-1")
    producer = factory.edge_events_producer()
    for update in (b"asset added", b"rule chain changed"):
        send_and_wait(producer, address, QueueMessage(None, update), WAIT_S)
    consumer = factory.edge_events_consumer("edge-1")
    consumer.subscribe()
    synced: list[str] = []
    while len(synced) < 2:
        synced += [record.data.decode() for record in consumer.poll(100)]
        consumer.commit()
    consumer.stop()
    print(f"{address}: {', '.join(synced)}")


def nobody(services: Services) -> None:
    try:
        services["core-1"].notifier.notify("core-3", notification("rpc.response"))
    except UnknownService as error:
        print(f"{error.code}: {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Messages to one instance of a service.")
    parser.add_argument("--provider", choices=["in-memory", "log", "kafka"], default="in-memory")
    parser.add_argument("--folder", help="where the log keeps its files; by default a temporary folder")
    parser.add_argument("--servers", help="Kafka's brokers, as host:port,host:port")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or temporary) if options.provider == "log" else None
        with closing(open_provider(options.provider, folder=folder, servers=options.servers)) as provider:
            with started(provider) as services:
                rpc_response(services)
                cache_invalidation(services)
                session_notification(services)
                nobody(services)
            edge_sync(provider, options.provider)


if __name__ == "__main__":
    main()
