"""An entity query service: it is told of every change of an entity, and answers which entities are as somebody wants.

    python examples/entity_queries.py
    python examples/entity_queries.py --provider log --folder var/entities
    python examples/entity_queries.py --provider kafka --servers localhost:9092

    core ──(edqs.events)────> service ──(edqs.state)──> the service, after a restart
    core ──(edqs.requests)──> service ──(edqs.responses.core-1)──> core

Everything of a tenant is in the partition of the same number, in all three topics: the number is made of the tenant's
id. So who has a partition knows all entities of its tenants, and answers alone. Each service is given its partitions;
two services together have all of them here.

Inside of a partition, events and state have the entity's id as key. The state keeps the last of each entity for ever,
as it is compacted, and events go after a day. An event counts as done once its state is stored; one that comes again
after a crash changes nothing. It ends by itself.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from a checkout

from examples.entity_selection import Entity, InvalidQuery, Query
from queuecore import (
    Channel,
    Provider,
    ProviderPartition,
    QueueMessage,
    QueueSettings,
    Record,
    TopicPartitionInfo,
    open_provider,
    send,
)
from queuecore.errors import RequestFailed
from queuecore.hashing import partition_of
from queuecore.messages import TOMBSTONE
from queuecore.requests import Request, RequestTemplate, RequestTopics, ResponseTemplate
from queuecore.topics import with_prefix

TENANTS = ("acme", "globex", "initech")
GROUP = "edqs_events-consumer"
DEVICES = 30
WAIT_S = 60.0
# A header of requests: how many events of the tenant's partition must be known, so that who asks sees its own changes.
CHANGES = "changes"


class Partitions:
    """Where everything of a tenant is."""

    def __init__(self, settings: QueueSettings) -> None:
        self.settings = settings
        self.requests = RequestTopics.of(Channel.EDQS_REQUESTS, settings)
        self.group = with_prefix(settings.prefix, GROUP)
        self.count = len(self.requests.requests)

    def number(self, tenant: str) -> int:
        return partition_of(tenant.encode(), self.count)

    def info(self, channel: Channel, number: int) -> TopicPartitionInfo:
        routed = channel.entry(self.settings).routed(self.settings)
        return TopicPartitionInfo(routed.topic, number, use_internal_partition=routed.use_internal_partition)

    def create(self, provider: Provider) -> None:
        for channel in (Channel.EDQS_EVENTS, Channel.EDQS_STATE):
            provider.admin().create_topics(channel.entry(self.settings).specs(self.settings))


class EntityService:
    """Knows the entities of its partitions' tenants. One thread takes in events, queries come on others. Leaving its
    `with` block stops it."""

    def __init__(self, provider: Provider, partitions: Partitions, numbers: Sequence[int]) -> None:
        self.provider = provider
        self.partitions = partitions
        self.events = {partitions.info(Channel.EDQS_EVENTS, number): number for number in numbers}
        self.changed = threading.Condition()
        # With the condition: by tenant and key, and how many events of each partition are known.
        self.entities: defaultdict[str, dict[bytes, Entity]] = defaultdict(dict)
        self.known = dict.fromkeys(numbers, 0)
        self.taken = 0
        self.is_stopping = threading.Event()
        self.thread = threading.Thread(target=self.follow, name="entity-events")
        own = tuple(partitions.requests.requests[number] for number in numbers)
        self.responses = ResponseTemplate(provider, replace(partitions.requests, requests=own), self.answer)

    def answer(self, request: Request) -> bytes:
        """For the tenant that the request has as its key. RequestFailed `invalid_query`, or `not_up_to_date` where the
        changes do not come in time."""
        tenant = cast(bytes, request.key).decode()
        try:
            query = Query.read(request.data)
        except InvalidQuery as error:
            raise RequestFailed(str(error), error_code="invalid_query") from None
        changes = int(request.headers.get(CHANGES, b"0"))
        number = self.partitions.number(tenant)
        with self.changed:
            # Half of the time, so that the answer comes while somebody waits for it.
            if not self.changed.wait_for(lambda: self.known[number] >= changes, request.remaining_s / 2):
                raise RequestFailed(f"{changes} changes are not known yet", error_code="not_up_to_date")
            entities = list(self.entities[tenant].values())
        return json.dumps(query.select(entities)).encode()

    def restore(self) -> None:
        """What the state says, and how many events it is made of."""
        admin = self.provider.admin()
        committed = admin.committed_offsets({self.partitions.group: [info.place for info in self.events]})
        with closing(self.provider.reader()) as reader:
            for info, number in self.events.items():
                place = self.partitions.info(Channel.EDQS_STATE, number).place
                position, end = admin.beginning_offsets([place])[place], admin.end_offsets([place])[place]
                while position < end:
                    self.apply(reader.read(place, position, 1_000))
                    position = reader.position(place)
                self.known[number] = committed[self.partitions.group].get(info.place, 0)

    def follow(self) -> None:
        """Until it is stopped: store the state that events make, then show it, then commit."""
        numbers = {info.place: number for info, number in self.events.items()}
        producer = self.provider.producer()
        consumer = self.provider.consumer(self.partitions.group)
        consumer.subscribe(self.events)
        while not self.is_stopping.is_set():
            if not (records := consumer.poll(25)):
                continue
            places = [numbers[ProviderPartition(one.topic, one.partition)] for one in records]
            stored = [
                send(producer, self.partitions.info(Channel.EDQS_STATE, number), as_message(record))
                for number, record in zip(places, records, strict=True)
            ]
            for one in stored:
                one.result(WAIT_S)
            with self.changed:
                self.apply(records)
                self.known.update({number: one.offset + 1 for number, one in zip(places, records, strict=True)})
                self.changed.notify_all()
            consumer.commit()
            self.taken += len(records)
        consumer.unsubscribe()
        consumer.stop()
        producer.stop()

    def apply(self, records: Iterable[Record]) -> None:
        """The last that is said of an entity holds."""
        for record in records:
            key = cast(bytes, record.key)
            tenant = key.decode().partition("/")[0]
            if TOMBSTONE in record.headers:
                self.entities[tenant].pop(key, None)
            else:
                self.entities[tenant][key] = json.loads(record.data)

    def __enter__(self) -> Self:
        self.restore()
        self.thread.start()
        self.responses.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.responses.stop()
        self.is_stopping.set()
        self.thread.join()


def as_message(record: Record) -> QueueMessage:
    return QueueMessage(record.key, record.data, record.headers)


class Core:
    """Tells of changes, and asks; the answers know of all that it told before."""

    def __init__(self, provider: Provider, partitions: Partitions, template: RequestTemplate) -> None:
        self.partitions = partitions
        self.template = template
        self.producer = provider.producer()
        # By tenant, how many events its partition had with the last change from here.
        self.changes: dict[str, int] = {}

    def publish(self, tenant: str, entities: Iterable[Entity]) -> None:
        self._tell(tenant, [QueueMessage(self._key(tenant, one), json.dumps(one).encode()) for one in entities])

    def delete(self, tenant: str, entity: Entity) -> None:
        self._tell(tenant, [QueueMessage.tombstone(self._key(tenant, entity))])

    async def ask(self, tenant: str, query: Query) -> dict[str, Any]:
        """The page and the total. RequestFailed, RequestTimeout."""
        headers = {CHANGES: str(self.changes.get(tenant, 0)).encode()}
        answer = await self.template.send(QueueMessage(tenant.encode(), json.dumps(asdict(query)).encode(), headers))
        return cast(dict[str, Any], json.loads(answer.data))

    def _key(self, tenant: str, entity: Entity) -> bytes:
        return f"{tenant}/{entity['id']}".encode()

    def _tell(self, tenant: str, messages: Sequence[QueueMessage]) -> None:
        info = self.partitions.info(Channel.EDQS_EVENTS, self.partitions.number(tenant))
        stored = [send(self.producer, info, message) for message in messages]
        self.changes[tenant] = max(one.result(WAIT_S).offset for one in stored) + 1


def devices(number: int) -> list[Entity]:
    """Each tenant's are a degree warmer than those of the one before."""
    return [
        {"id": f"device-{one:02}", "type": "device", "degrees": one + number, "room": "hall" if one % 2 else "attic"}
        for one in range(DEVICES)
    ]


WARM = Query("device", where=[("degrees", ">", 20), ("room", "=", "hall")], sort="degrees", descending=True, size=3)


async def ask_all(core: Core) -> None:
    answers = await asyncio.gather(*(core.ask(tenant, WARM) for tenant in TENANTS))
    for tenant, answer in zip(TENANTS, answers, strict=True):
        warm = ", ".join(f"{one['id']} {one['degrees']}" for one in answer["entities"])
        print(f"{tenant}: {answer['total']} warm devices in the hall, the warmest are {warm}")


def tell_and_ask(core: Core) -> None:
    for number, tenant in enumerate(TENANTS):
        core.publish(tenant, [*devices(number), {"id": "hall", "type": "asset"}])
    asyncio.run(ask_all(core))
    last = asyncio.run(core.ask("acme", Query("device", size=20, page=1)))
    print(f"acme's second page has {len(last['entities'])} of {last['total']} devices")
    try:
        asyncio.run(core.ask("acme", Query("device", where=[("degrees", "~", 20)])))
    except RequestFailed as error:
        print(f"{error.error_code}: {error.message}")
    core.delete("acme", {"id": "device-29"})
    core.publish("acme", [{"id": "device-01", "type": "device", "degrees": 99, "room": "hall"}])


def run(provider: Provider, settings: QueueSettings) -> None:
    partitions = Partitions(settings)
    partitions.create(provider)
    middle = partitions.count // 2
    shares = (range(middle), range(middle, partitions.count))
    with RequestTemplate(provider, partitions.requests, "core-1") as template:
        core = Core(provider, partitions, template)
        with EntityService(provider, partitions, shares[0]), EntityService(provider, partitions, shares[1]):
            tell_and_ask(core)
        print("both services are started again")
        with EntityService(provider, partitions, shares[0]), EntityService(provider, partitions, shares[1]):
            asyncio.run(ask_all(core))


def main() -> None:
    parser = argparse.ArgumentParser(description="A service that answers queries for entities.")
    parser.add_argument("--provider", choices=["in-memory", "log", "kafka"], default="in-memory")
    parser.add_argument("--folder", help="where the log keeps its files; by default a temporary folder")
    parser.add_argument("--servers", help="Kafka's brokers, as host:port,host:port")
    parser.add_argument("--prefix", default="", help="what all topics begin with, where others are on the same Kafka")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or temporary) if options.provider == "log" else None
        with closing(open_provider(options.provider, folder=folder, servers=options.servers)) as provider:
            run(provider, QueueSettings(prefix=options.prefix))


if __name__ == "__main__":
    main()
