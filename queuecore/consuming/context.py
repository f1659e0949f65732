"""What a handler is given besides its message."""

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from google.protobuf.message import Message

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.places import place_of
from queuecore.errors import QueueError
from queuecore.hashing import Entity
from queuecore.messages import NO_HEADERS, REPLAY_LETTER, TENANT_ID, Headers, Key, Record, text_header
from queuecore.sending import Addressed
from queuecore.topics import ProviderPartition, TopicPartitionInfo

Payload = bytes | Message


class Composer(Protocol):
    """Addresses what handlers send. Safe from any thread."""

    def compose(self, queue: str, entity: Entity | None, payload: Payload, headers: Headers = NO_HEADERS) -> Addressed:
        """UnknownQueue where there is none of that name, InvalidMessage for what cannot be sent."""


class NoComposer:
    """For a consumption whose handlers send nothing."""

    def compose(self, queue: str, entity: Entity | None, payload: Payload, headers: Headers = NO_HEADERS) -> Addressed:  # noqa: ARG002
        raise QueueError(f"this handler cannot send to {queue!r}: its consumption was given no composer")


class KeyedState(Protocol):
    """What a stateful queue's handlers remember, under keys of one partition: UUIDs, or bytes that are not empty.
    InvalidMessage for any other."""

    def get(self, key: Key) -> bytes | None:
        """As the delivery left it, or else as it was when first asked for."""

    def put(self, key: Key, value: bytes) -> None: ...

    def delete(self, key: Key) -> None: ...

    def forget(self) -> None:
        """Leave everything as it was before this delivery."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """What all deliveries of one consumption have in common."""

    queue: str
    infos: Mapping[ProviderPartition, TopicPartitionInfo]
    composer: Composer
    timeout_s: float | None = None
    clock: Clock = SYSTEM_CLOCK
    # Where the queue keeps state: the view of it that one delivery has.
    state_of: "Callable[[DeliveryContext], KeyedState] | None" = None


class _Seldom:
    """What few deliveries have."""

    __slots__ = ("postponed_s", "state")

    def __init__(self) -> None:
        self.postponed_s: float | None = None
        self.state: KeyedState | None = None


class DeliveryContext:
    """What a handler may know about the delivery of its message, and its way to send others because of it."""

    # One is made for every message: what few handlers ask for is looked up when they do.
    __slots__ = ("_attempt", "_is_cancelled", "_outbox", "_record", "_seldom", "_started_at", "_workplace")

    def __init__(self, workplace: Workplace, record: Record, attempt: int, started_at: float = 0.0) -> None:
        self._workplace = workplace
        self._record = record
        self._attempt = attempt
        self._started_at = started_at
        # A list once something was sent; None once the handler has returned.
        self._outbox: list[Addressed] | tuple[()] | None = ()
        self._is_cancelled = False
        self._seldom: _Seldom | None = None

    @property
    def record(self) -> Record:
        """The message as it is stored."""
        return self._record

    @property
    def queue(self) -> str:
        """Where the message comes from."""
        return self._workplace.queue

    @property
    def partition(self) -> int:
        """Which of the queue's partitions."""
        return self._workplace.infos[place_of(self._record)].partition or 0

    @property
    def attempt(self) -> int:
        """Counts from 1."""
        return self._attempt

    @property
    def deadline(self) -> float | None:
        """When the time for this attempt is up, in seconds of `time.monotonic`; None: never."""
        return None if self._workplace.timeout_s is None else self._started_at + self._workplace.timeout_s

    @property
    def remaining_s(self) -> float | None:
        """How much of that time is left; 0 when it is up."""
        deadline = self.deadline
        return None if deadline is None else max(0.0, deadline - self._workplace.clock.monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants this attempt's outcome any more: its time is up, or its partition was given away. A
        handler that takes long looks at this now and then, and returns."""
        return self._is_cancelled

    @property
    def tenant_id(self) -> str | None:
        """The header `tenantId`, where there is one."""
        return text_header(self._record.headers, TENANT_ID)

    @property
    def replayed_letter(self) -> str | None:
        """The dead letter that was sent again as this message."""
        return text_header(self._record.headers, REPLAY_LETTER)

    @property
    def state(self) -> KeyedState:
        """What this queue's handlers remember: only for a queue with a state topic. Changes take effect when the
        handler has returned without an error, together with what it sent."""
        seldom = self._rest()
        if seldom.state is None:
            if self._workplace.state_of is None:
                raise QueueError(f"queue {self.queue} keeps no state; give it a state topic")
            seldom.state = self._workplace.state_of(self)
        return seldom.state

    def send(self, queue: str, entity: Entity | None, payload: Payload, headers: Headers = NO_HEADERS) -> None:
        """Send a message as part of handling this one: like `Queues.publish`, but only once the handler has returned
        without an error, and before this message counts as done. With `exactly_once` both happen together or not
        at all. It is of the same tenant, unless its headers say otherwise. UnknownQueue and InvalidMessage as there."""
        tenant = self._record.headers.get(TENANT_ID)
        if tenant is not None and TENANT_ID not in headers:
            headers = {TENANT_ID: tenant, **headers}
        self._post(self._workplace.composer.compose(queue, entity, payload, headers))

    def postpone(self, seconds: float) -> None:
        """Have this message delivered again after that time, instead of counting it as done: it has not failed, and
        loses no retry. It holds back what is in sequence with it. What was sent is not sent."""
        self._check_open()
        if not math.isfinite(seconds):
            raise QueueError(f"a message cannot be postponed by {seconds} s; name a number of seconds")
        self._rest().postponed_s = max(0.0, seconds)

    def unsend(self) -> None:
        """Forget what was sent and remembered so far: for a handler that recovers from another one's failure."""
        self._check_open()
        self._outbox = ()
        if self._seldom is not None and self._seldom.state is not None:
            self._seldom.state.forget()

    def _post(self, addressed: Addressed) -> None:
        self._check_open()
        if not isinstance(self._outbox, list):
            self._outbox = []
        self._outbox.append(addressed)

    def _check_open(self) -> None:
        if self._outbox is None:
            raise QueueError("this message's handler has returned; send before it does, or use `publish`")

    def _rest(self) -> "_Seldom":
        if self._seldom is None:
            self._seldom = _Seldom()
        return self._seldom

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.queue!r}, partition={self.partition}, attempt={self.attempt})"


class OpenDelivery(DeliveryContext):
    """A context as its consumption has it: what is sent goes out only if the attempt succeeds."""

    __slots__ = ()

    @property
    def postponed_s(self) -> float | None:
        return None if self._seldom is None else self._seldom.postponed_s

    @property
    def state_in_use(self) -> KeyedState | None:
        """What the handler has asked for as `state`, if it has."""
        return None if self._seldom is None else self._seldom.state

    def cancel(self) -> None:
        """From any thread."""
        self._is_cancelled = True

    def close(self) -> tuple[Addressed, ...]:
        """No more; what was sent."""
        outbox, self._outbox = self._outbox, None
        return tuple(outbox) if outbox else ()


class MessageHandler(Protocol):
    """User code for one message: a function, or an `async def`."""

    def __call__(self, record: Record, context: DeliveryContext, /) -> Awaitable[None] | None:
        """Returning means done; raising means failed."""
