"""Queues by name, as routing tables have them: where messages go, and until when a table is in use."""

import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from queuecore.cluster.under_way import Sending, UnderWay
from queuecore.errors import UnknownQueue
from queuecore.hashing import Entity, hash_function
from queuecore.messages import TENANT_ID, QueueMessage, RecordMetadata, text_header
from queuecore.providers.base import QueueProducer
from queuecore.routing import QueueKey, RoutedQueue, RoutingTable
from queuecore.sending import Addressed, send, wait_for
from queuecore.topics import SYSTEM_TENANT, TopicPartitionInfo, check_topic

_NOTIFICATIONS: Final = re.compile(r"[^.]+(\.[^.]+)*\.notifications\.[^.]+(\.[^.]+)*")
NOTHING: Final = RoutingTable(0, {})

Partitions = tuple[TopicPartitionInfo, ...]


class _Known:
    """One table's queues, by name. Only what is asked for is made: of thousands of queues few are sent to."""

    def __init__(self, table: RoutingTable, before: "_Known | None" = None) -> None:
        self.version = table.version
        self.hash = hash_function(table.hash_name)
        self._queues = {(key.tenant.int, key.queue.lower()): (key, queue) for key, queue in table.queues.items()}
        # Those that have gone as well: what was addressed to them is sent where their names lead now.
        self.names_of_topics: dict[tuple[int, str], str] = {} if before is None else {**before.names_of_topics}
        self.names_of_topics |= {(key.tenant.int, one.topic): key.queue.lower() for key, one in table.queues.items()}
        self._made: dict[tuple[int, str], Partitions] = {}

    def find(self, owners: Iterable[UUID], name: str) -> Partitions | None:
        """Those of the first of these tenants' queue of that name, whatever its case."""
        lower = name.lower()
        for owner in owners:
            place = (owner.int, lower)
            if made := self._made.get(place):
                return made
            if found := self._queues.get(place):
                made = self._made[place] = _infos(*found)
                return made
        return None

    def choices(self, addressed: Addressed) -> Partitions:
        """The partitions among which the message belongs, by the queue that it is addressed to: those of an isolated
        tenant's own, else those that the queue has now. None at all where it is addressed to no queue."""
        info, message = addressed
        owner = info.tenant_id or SYSTEM_TENANT
        if (name := self.names_of_topics.get((owner.int, info.topic))) is None:
            return ()
        owners = (owner, SYSTEM_TENANT) if owner != SYSTEM_TENANT else (*_tenant_of(message), SYSTEM_TENANT)
        infos = self.find(owners, name) or ()
        # Topics of other layouts, as those of letters, are no queue's.
        return infos if infos and infos[0].use_internal_partition == info.use_internal_partition else ()

    def names(self, owners: Iterable[UUID]) -> list[str]:
        seen = {owner.int for owner in owners}
        return sorted({name for owner, name in self._queues if owner in seen})


class QueueAddresses:
    """The queues there are, by name, as one table has them after the other. Safe from any thread; what is asked
    meanwhile is answered by the last one. `renew` fetches a newer one, for names that are in none yet."""

    def __init__(self, table: RoutingTable = NOTHING, renew: Callable[[], None] = lambda: None) -> None:
        self._under_way = UnderWay(table.version, _Known(table))
        self._renew = renew
        self._turns = itertools.count()

    def use(self, table: RoutingTable) -> None:
        """Answer by this one from now on."""
        self._under_way.follow(table.version, _Known(table, self._known))

    def is_over(self, version: int) -> bool:
        """Whether nothing that was addressed by another version is under way."""
        return self._under_way.is_over(version)

    @contextmanager
    def posting(self) -> "Iterator[RoutedPosting]":
        """Messages that are sent by one version: it counts as in use until all of them are answered."""
        with self._under_way.begin() as sending:
            yield RoutedPosting(sending, self._choose)

    def store(
        self, producer: QueueProducer, tenant_id: UUID, queue: str, message: QueueMessage, timeout_s: float
    ) -> tuple[TopicPartitionInfo, RecordMetadata]:
        """Send it to that tenant's own queue, to the partition of its key, and wait until it is stored: where. The
        version by which it is addressed counts as in use until the provider has answered, whoever waits for that.
        UnknownQueue, StoreUnavailable, and what the provider refuses it with."""
        # Where the queue is in no table yet, a newer one is fetched: by that one it is sent, or by one after it.
        addressed = Addressed(self.resolve_exactly(tenant_id, queue, message.key), message)
        with self.posting() as posting:
            info, _ = posting.where(addressed)
            stored = send(producer, info, message)
            posting.sent(stored)
            return info, wait_for(stored, info, timeout_s)

    @property
    def version(self) -> int:
        return self._known.version

    @property
    def _known(self) -> _Known:
        return self._under_way.guide

    def seen_by(self, tenant_id: UUID) -> "TenantAddresses":
        return TenantAddresses(self, tenant_id)

    def resolve(self, tenant_id: UUID, queue: str, entity: Entity | None) -> TopicPartitionInfo:
        """As `TenantAddresses`."""
        owners = (tenant_id, SYSTEM_TENANT)
        if _is_notifications(queue) and self._known.find(owners, queue) is None:
            # The topic that one service instance reads alone, which is no queue.
            return TopicPartitionInfo(check_topic(queue))
        return self._resolve(owners, queue, entity)

    def resolve_exactly(self, tenant_id: UUID, queue: str, entity: Entity | None) -> TopicPartitionInfo:
        """The partition in that tenant's own queue, whatever else it sees. UnknownQueue, StoreUnavailable."""
        return self._resolve((tenant_id,), queue, entity)

    def is_own(self, tenant_id: UUID, queue: str) -> bool:
        """Whether what the tenant has for a queue of that name goes to one of its own. UnknownQueue,
        StoreUnavailable."""
        return self._find((tenant_id, SYSTEM_TENANT), queue)[1][0].tenant_id == tenant_id

    def partitions(self, tenant_id: UUID, queue: str) -> Partitions:
        """All of that tenant's own queue, in order. UnknownQueue, StoreUnavailable."""
        return self._find((tenant_id,), queue)[1]

    def hash(self, entity: Entity) -> int:
        """By which partitions are chosen."""
        return self._known.hash(entity)

    def _resolve(self, owners: tuple[UUID, ...], queue: str, entity: Entity | None) -> TopicPartitionInfo:
        known, infos = self._find(owners, queue)
        return self._choose(known, infos, entity)

    def _choose(self, known: _Known, infos: Partitions, entity: Entity | None) -> TopicPartitionInfo:
        number = next(self._turns) if entity is None else abs(known.hash(entity))
        return infos[number % len(infos)]

    def _find(self, owners: tuple[UUID, ...], queue: str) -> tuple[_Known, Partitions]:
        known = self._known
        if (infos := known.find(owners, queue)) is None:
            self._renew()
            known = self._known
            if (infos := known.find(owners, queue)) is None:
                raise _unknown(queue, known.names(owners))
        return known, infos


class RoutedPosting:
    """As `Posting`."""

    def __init__(
        self, sending: Sending[_Known], choose: Callable[[_Known, Partitions, Entity | None], TopicPartitionInfo]
    ) -> None:
        self._sending = sending
        self._choose = choose

    def where(self, addressed: Addressed) -> Addressed:
        known, key = self._sending.guide, addressed.message.key
        infos = known.choices(addressed)
        if not infos or (key is None and addressed.info in infos):
            return addressed
        return addressed._replace(info=self._choose(known, infos, key))

    def chooser(self, addressed: Addressed) -> Callable[[Entity], TopicPartitionInfo] | None:
        """For many messages as this one, of its queue and its tenant: where each key's goes. None where they go where
        they are addressed to."""
        known = self._sending.guide
        infos = known.choices(addressed)
        if not infos:
            return None
        count, hash_of = len(infos), known.hash
        return lambda key: infos[abs(hash_of(key)) % count]

    def sent(self, stored: "Future[Any]") -> None:
        self._sending.sent(stored)


class TenantAddresses:
    """The queues as one tenant sees them: its own, then the system's. A name such as `tb_core.notifications.core-1` is
    the topic of one service instance. Safe from any thread."""

    def __init__(self, addresses: QueueAddresses, tenant_id: UUID) -> None:
        self._addresses = addresses
        self._tenant_id = tenant_id

    def resolve(self, queue: str, entity: Entity | None) -> TopicPartitionInfo:
        """The partition of the entity's messages; without an entity, each in turn. UnknownQueue where there is none of
        that name, whatever its case. StoreUnavailable where that cannot be known now."""
        return self._addresses.resolve(self._tenant_id, queue, entity)


def _is_notifications(name: str) -> bool:
    # Every message passes here: the expression is for what it may fit.
    return ".notifications." in name and _NOTIFICATIONS.fullmatch(name) is not None


def _tenant_of(message: QueueMessage) -> tuple[UUID, ...]:
    """Whose message it is, if it says so."""
    text = text_header(message.headers, TENANT_ID)
    try:
        return (UUID(text),) if text else ()
    except ValueError:
        return ()


def _infos(key: QueueKey, queue: RoutedQueue) -> Partitions:
    inside = queue.use_internal_partition
    return tuple(TopicPartitionInfo(queue.topic, one, key.tenant, inside) for one in queue.numbers)


def _unknown(queue: str, names: list[str]) -> UnknownQueue:
    close = difflib.get_close_matches(queue.lower(), names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
    return UnknownQueue(f"there is no queue {queue!r}; {hint}", queue=queue)
