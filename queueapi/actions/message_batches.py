"""Publishing many messages at once: all are looked at before the first is sent, and waited for together."""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from queueapi.actions.messages import (
    MAX_PAYLOAD_BYTES,
    PublishedMessage,
    address_of,
    check_still_there,
    getting_queue,
    origin_headers_of,
    planned_address,
    planned_change,
    taking,
    waits,
)
from queueapi.addressing import addresses
from queueapi.admission import admission
from queueapi.backlog import check_backlog
from queueapi.change_plans import ChangePlan
from queueapi.models import Queue
from queueapi.queue_addresses import RoutedPosting
from queueapi.reporting import counted_producer
from queuecore.errors import ProviderUnavailable, QueueError, QueueOverloaded
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import QueueProducer
from queuecore.sending import Addressed
from queuecore.topics import TopicPartitionInfo

MAX_BATCH: Final = 500

_ACK_TIMEOUT_S: Final = 10
_NOWHERE: Final = Addressed(TopicPartitionInfo(""), QueueMessage(None, b""))


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """One message that was looked at already; see `check_outgoing`."""

    tenant: UUID
    entity: UUID
    data: bytes


def check_outgoing(queue: Queue, message: OutgoingMessage) -> str | None:
    """Why it cannot be published to this queue; None where it can."""
    if queue.only_tenant_id not in (None, message.tenant):
        return f"queue {queue.name} takes the messages of tenant {queue.only_tenant_id} alone; name that tenant"
    if len(message.data) > MAX_PAYLOAD_BYTES:
        return f"the payload has {len(message.data)} bytes; {MAX_PAYLOAD_BYTES} is the most"
    return None


def can_be_published(queue: Queue, tenants: Collection[UUID], messages: Iterable[OutgoingMessage]) -> bool:
    """Whether `check_outgoing` finds nothing wrong with any of these messages of these tenants."""
    is_taking = queue.only_tenant_id is None or set(tenants) == {queue.only_tenant_id}
    return is_taking and all(len(message.data) <= MAX_PAYLOAD_BYTES for message in messages)


def plan_batch(queue: Queue, messages: Sequence[OutgoingMessage]) -> ChangePlan:
    """What `publish_batch` would do now, one change for each message, in their order; sends nothing. What quotas would
    keep out is told there, and not here. QueueNotActive."""
    queue = taking(queue)
    getting = {tenant: getting_queue(queue, tenant) for tenant in {message.tenant for message in messages}}
    infos = [planned_address(getting[message.tenant], message.entity) for message in messages]
    changes = (
        planned_change(getting[message.tenant], info, message.entity, len(message.data))
        for info, message in zip(infos, messages, strict=True)
    )
    warnings = _waits(getting, messages, infos)
    summary = f"{len(messages)} message{'' if len(messages) == 1 else 's'} would be stored"
    return ChangePlan(summary, tuple(changes), tuple(warnings))


def publish_batch(queue: Queue, messages: Sequence[OutgoingMessage]) -> list[PublishedMessage | QueueError]:
    """What became of each, in their order. Messages of one entity are stored in it. What was refused does not keep
    others from being stored; where no answer came in time, a message may still be stored. QueueNotActive and
    QueueOverloaded as `publish_message`."""
    queue = taking(queue)
    of_tenants = [_TenantMessages(queue, messages, indexes) for indexes in _by_tenant(messages).values()]
    _check_backlogs(of_tenants)
    outgoing: list[Addressed] = [_NOWHERE] * len(messages)
    with addresses().posting() as posting:
        for each in of_tenants:
            each.address(posting, outgoing)
        answers = _Answers(len(messages))
        posting.sent(answers.complete)
        refusals = {index: refusal for each in of_tenants for index, refusal in each.refusals()}
        answers.send(counted_producer(), outgoing, refusals)
        found = answers.wait(_ACK_TIMEOUT_S)
    check_still_there(queue)
    outcomes = [_outcome(info, answer) for (info, _), answer in zip(outgoing, found, strict=True)]
    for each in of_tenants:
        each.count(outcomes)
    return outcomes


def _waits(
    getting: Mapping[UUID, Queue], messages: Sequence[OutgoingMessage], infos: Sequence[TopicPartitionInfo]
) -> Iterator[str]:
    """Why some would not be consumed at once, each reason once."""
    found: defaultdict[UUID, list[int]] = defaultdict(list)
    for index, message in enumerate(messages):
        found[getting[message.tenant].pk].append(index)
    told: dict[str, None] = {}
    for indexes in found.values():
        tenants = {messages[index].tenant for index in indexes}
        told |= dict.fromkeys(waits(getting[min(tenants)], tenants, {infos[index].partition for index in indexes}))
    return iter(told)


def _by_tenant(messages: Sequence[OutgoingMessage]) -> dict[UUID, list[int]]:
    """Which of them are whose."""
    found: defaultdict[UUID, list[int]] = defaultdict(list)
    for index, message in enumerate(messages):
        found[message.tenant].append(index)
    return found


def _check_backlogs(of_tenants: "Sequence[_TenantMessages]") -> None:
    """QueueOverloaded where the queues that would get these messages all have as many as they may. Else it is told of
    those alone that one of these would get."""
    full: dict[UUID, QueueOverloaded | None] = {}
    for each in of_tenants:
        if each.getting.pk not in full:
            full[each.getting.pk] = _overload(each.getting)
        each.overload = full[each.getting.pk]
    if (first := of_tenants[0].overload) is not None and all(full.values()):
        raise first


def _overload(queue: Queue) -> QueueOverloaded | None:
    try:
        check_backlog(queue)
    except QueueOverloaded as error:
        return error
    return None


class _TenantMessages:
    """Of a batch, one tenant's messages: what is asked of a tenant is asked once."""

    def __init__(self, queue: Queue, messages: Sequence[OutgoingMessage], indexes: Sequence[int]) -> None:
        """A queue that is in no routing version yet comes into one here, before that is chosen by which they are
        sent."""
        self._queue = queue
        self._indexes = indexes
        self._messages = [messages[index] for index in indexes]
        first = self._messages[0]
        self._tenant = first.tenant
        self._headers = origin_headers_of(first.tenant)
        self.getting = getting_queue(queue, first.tenant)
        # Why that takes no more.
        self.overload: QueueOverloaded | None = None
        self._first = Addressed(address_of(queue, first.entity), self._made(first))

    def address(self, posting: RoutedPosting, outgoing: list[Addressed]) -> None:
        """Each to where it goes by the version of this posting."""
        where = posting.chooser(self._first) or partial(address_of, self._queue)
        for index, message in zip(self._indexes, self._messages, strict=True):
            outgoing[index] = Addressed(where(message.entity), self._made(message))

    def refusals(self) -> Iterator[tuple[int, QueueError]]:
        """Those that the tenant's quotas keep out, and why. What passes is counted against them."""
        if self.overload is not None:
            return ((index, self.overload) for index in self._indexes)
        sizes = [len(message.data) for message in self._messages]
        found = admission().admit_each(self._tenant, sizes, to_own_queue=self._is_own)
        return ((index, error) for index, error in zip(self._indexes, found, strict=True) if error is not None)

    def count(self, outcomes: Sequence[PublishedMessage | QueueError]) -> None:
        """What of them was stored."""
        stored = [
            len(message.data)
            for index, message in zip(self._indexes, self._messages, strict=True)
            if isinstance(outcomes[index], PublishedMessage)
        ]
        admission().published(self._tenant, sum(stored), len(stored), to_own_queue=self._is_own)

    @property
    def _is_own(self) -> bool:
        """Whether a queue of the tenant's own gets them."""
        return self.getting.only_tenant_id is not None

    def _made(self, message: OutgoingMessage) -> QueueMessage:
        return QueueMessage(message.entity, message.data, self._headers)


class _Answers:
    """To all sends of a batch: one thing to wait for rather than a future for each."""

    def __init__(self, count: int) -> None:
        self._found: list[RecordMetadata | QueueError | None] = [None] * count
        self._last = count - 1
        # Counts without a lock, whoever answers: one step of the interpreter.
        self._settled = itertools.count()
        # Ends when the last one has come, whoever still waits for it.
        self.complete: Future[None] = Future()

    def send(self, producer: QueueProducer, outgoing: Sequence[Addressed], refusals: Mapping[int, QueueError]) -> None:
        """All but those that were refused already."""
        for index, (info, message) in enumerate(outgoing):
            try:
                if index in refusals:
                    raise refusals[index]
                producer.send(info, message, partial(self.settle, index))
            except QueueError as error:
                self.settle(index, None, error)

    def wait(self, timeout_s: float) -> list[RecordMetadata | QueueError | None]:
        """None for each that has not come in time."""
        with suppress(TimeoutError):
            self.complete.result(timeout_s)
        return list(self._found)

    def settle(self, index: int, metadata: RecordMetadata | None, error: QueueError | None) -> None:
        self._found[index] = metadata or error or QueueError("the provider gave neither metadata nor an error")
        if next(self._settled) == self._last:
            self.complete.set_result(None)


def _outcome(info: TopicPartitionInfo, answer: RecordMetadata | QueueError | None) -> PublishedMessage | QueueError:
    if answer is None:
        return ProviderUnavailable(
            f"{info} did not acknowledge the message within {_ACK_TIMEOUT_S} s; look at the provider, then send again"
        )
    if isinstance(answer, QueueError):
        return answer
    return PublishedMessage(answer.topic, info.partition or 0, answer.offset, answer.timestamp_ms)
