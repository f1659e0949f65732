"""Publishing many messages at once: all are looked at before the first is sent, and waited for together."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from queueapi import runtime
from queueapi.actions.messages import (
    MAX_PAYLOAD_BYTES,
    PublishedMessage,
    address_of,
    check_still_there,
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
from queuecore.errors import ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import QueueProducer
from queuecore.sending import Addressed
from queuecore.topics import TopicPartitionInfo

MAX_BATCH: Final = 500

_ACK_TIMEOUT_S: Final = 10


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


def plan_batch(queue: Queue, messages: Sequence[OutgoingMessage]) -> ChangePlan:
    """What `publish_batch` would do now, one change for each message, in their order; sends nothing. What quotas would
    keep out is told there, and not here."""
    infos = [planned_address(queue, message.entity) for message in messages]
    changes = (
        planned_change(queue, info, message.entity, len(message.data))
        for info, message in zip(infos, messages, strict=True)
    )
    warnings = waits(queue, {message.tenant for message in messages}, {info.partition for info in infos})
    summary = f"{len(messages)} message{'' if len(messages) == 1 else 's'} would be stored"
    return ChangePlan(summary, tuple(changes), tuple(warnings))


def publish_batch(queue: Queue, messages: Sequence[OutgoingMessage]) -> list[PublishedMessage | QueueError]:
    """What became of each, in their order. Messages of one entity are stored in it. What was refused does not keep
    others from being stored; where no answer came in time, a message may still be stored. QueueNotActive and
    QueueOverloaded as `publish_message`."""
    queue = taking(queue)
    check_backlog(queue)
    planned = _addressed(queue, messages)
    with addresses().posting() as posting:
        outgoing = [posting.where(addressed) for addressed in planned]
        answers = _Answers(len(messages))
        posting.sent(answers.complete)
        _send(queue, messages, outgoing, answers)
        found = answers.wait(_ACK_TIMEOUT_S)
    check_still_there(queue)
    outcomes = [_outcome(info, answer) for (info, _), answer in zip(outgoing, found, strict=True)]
    for message, outcome in zip(messages, outcomes, strict=True):
        if isinstance(outcome, PublishedMessage):
            admission().published(message.tenant, len(message.data))
    return outcomes


def _addressed(queue: Queue, messages: Sequence[OutgoingMessage]) -> list[Addressed]:
    headers = {tenant: origin_headers_of(tenant) for tenant in {message.tenant for message in messages}}
    return [
        Addressed(address_of(queue, one.entity), QueueMessage(one.entity, one.data, headers[one.tenant]))
        for one in messages
    ]


def _send(
    queue: Queue, messages: Sequence[OutgoingMessage], outgoing: Sequence[Addressed], answers: "_Answers"
) -> None:
    """Those that their tenants' quotas let pass; the others are told why not."""
    producer, is_own = runtime.provider().producer(), queue.only_tenant_id is not None
    for index, (message, addressed) in enumerate(zip(messages, outgoing, strict=True)):
        try:
            admission().admit(message.tenant, len(message.data), to_own_queue=is_own)
        except QueueError as error:
            answers.settle(index, None, error)
        else:
            answers.send(producer, index, addressed)


class _Answers:
    """To all sends of a batch: one thing to wait for rather than a future for each."""

    def __init__(self, count: int) -> None:
        self._found: list[RecordMetadata | QueueError | None] = [None] * count
        self._missing = count
        self._changing = threading.Lock()
        # Ends when the last one has come, whoever still waits for it.
        self.complete: Future[None] = Future()

    def send(self, producer: QueueProducer, index: int, addressed: Addressed) -> None:
        try:
            producer.send(addressed.info, addressed.message, partial(self.settle, index))
        except QueueError as error:
            self.settle(index, None, error)

    def wait(self, timeout_s: float) -> list[RecordMetadata | QueueError | None]:
        """None for each that has not come in time."""
        wait([self.complete], timeout_s)
        return list(self._found)

    def settle(self, index: int, metadata: RecordMetadata | None, error: QueueError | None) -> None:
        self._found[index] = metadata or error or QueueError("the provider gave neither metadata nor an error")
        with self._changing:
            self._missing -= 1
            is_complete = not self._missing
        if is_complete:
            self.complete.set_result(None)


def _outcome(info: TopicPartitionInfo, answer: RecordMetadata | QueueError | None) -> PublishedMessage | QueueError:
    if answer is None:
        return ProviderUnavailable(
            f"{info} did not acknowledge the message within {_ACK_TIMEOUT_S} s; look at the provider, then send again"
        )
    if isinstance(answer, QueueError):
        return answer
    return PublishedMessage(answer.topic, info.partition or 0, answer.offset, answer.timestamp_ms)
