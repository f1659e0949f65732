"""When handled messages count as done: one class for each delivery. For the thread that reads.

Whatever is raised here ends the membership, and the group gets again what is not committed: nothing has to be undone.
"""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import ClassVar, Final, Protocol

from queuecore.delivery import Delivery
from queuecore.errors import NotOwner, ProducerFenced, QueueError, TransactionAborted
from queuecore.messages import Record, RecordMetadata
from queuecore.providers.base import QueueConsumer, TransactionalProducer
from queuecore.queues.desk import Desk
from queuecore.queues.handled import Handled
from queuecore.queues.places import ends_of, place_of
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

# Another member has the partition: what this one did has no effect.
NOT_OURS: Final = (NotOwner, ProducerFenced)
_TRY_AGAIN_S: Final = 0.05


class Settling(Protocol):
    # Whether messages count as done before they are handled.
    commits_first: ClassVar[bool]

    def take(self, places: Collection[ProviderPartition]) -> None:
        """These partitions are ours now."""

    def begin(self, consumer: QueueConsumer, records: Sequence[Record]) -> None:
        """These are about to be handled."""

    def settle(self, consumer: QueueConsumer, handled: Sequence[Handled], deadline: float | None = None) -> None:
        """Store what these sent, and commit them. With a deadline the partitions are about to be given away, and the
        consumer cannot be polled; else it is kept alive where this takes long."""

    def settle_outside(self, handled: Sequence[Handled]) -> None:
        """Out of the group. What was committed before it was handled is settled all the same; the rest comes again."""

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None:
        """These partitions are not ours any longer; without any: none is."""


class AtMostOnce:
    commits_first: ClassVar[bool] = True

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def take(self, places: Collection[ProviderPartition]) -> None: ...

    def begin(self, consumer: QueueConsumer, records: Sequence[Record]) -> None:
        consumer.commit(ends_of(records))

    def settle(
        self,
        consumer: QueueConsumer,  # noqa: ARG002
        handled: Sequence[Handled],
        deadline: float | None = None,  # noqa: ARG002
    ) -> None:
        self.settle_outside(handled)

    def settle_outside(self, handled: Sequence[Handled]) -> None:
        """Raises nothing: nobody would get these again, so what cannot be stored is dropped, and counted."""
        done = list(handled)
        under_way: dict[int, list[Future[RecordMetadata]]] = {}
        for index, one in enumerate(handled):
            try:
                under_way[index] = self._desk.send(one)
            except QueueError as error:
                done[index] = _dropped(one, error)
        for index, stored in under_way.items():
            try:
                done[index] = self._desk.finish_sending(handled[index], stored)
            except QueueError as error:
                done[index] = _dropped(handled[index], error)
        self._desk.count(done)

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None: ...


class AtLeastOnce:
    commits_first: ClassVar[bool] = False

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def take(self, places: Collection[ProviderPartition]) -> None: ...

    def begin(self, consumer: QueueConsumer, records: Sequence[Record]) -> None: ...

    def settle(
        self,
        consumer: QueueConsumer,
        handled: Sequence[Handled],
        deadline: float | None = None,  # noqa: ARG002
    ) -> None:
        done = list(handled)
        for index, stored in self._desk.start_sending(handled):
            try:
                done[index] = self._desk.finish_sending(done[index], stored)
            except QueueError:
                # What comes before the one that cannot be settled need not be repeated.
                self._commit(consumer, done[:index])
                raise
        self._commit(consumer, done)

    def settle_outside(self, handled: Sequence[Handled]) -> None: ...

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None: ...

    def _commit(self, consumer: QueueConsumer, done: list[Handled]) -> None:
        consumer.commit(ends_of(one.record for one in done))
        self._desk.count(done)


class ExactlyOnce:
    """One transaction for all that is settled together.

    Each partition of the group has a transactional id. Who is given the partition opens it, which aborts what a killed
    member left open under it: otherwise whoever reads its messages, and this member for the offsets, would wait for a
    timeout. Messages are sent under the id of one of the partitions held, as a producer for each would cost threads and
    a commit of its own: that a member which was displaced cannot commit is the group's to see to.
    """

    commits_first: ClassVar[bool] = False

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._held: set[ProviderPartition] = set()
        # What was taken from us while something is settled: its messages are the next owner's, even if that is us.
        self._gone: set[ProviderPartition] = set()
        # The partition under whose id is sent.
        self._sender: ProviderPartition | None = None
        self._producer: TransactionalProducer | None = None

    def take(self, places: Collection[ProviderPartition]) -> None:
        for place in sorted(places):
            producer = self._open(place)
            self._held.add(place)
            if self._producer is None:
                self._sender, self._producer = place, producer
            else:
                producer.stop()

    def begin(self, consumer: QueueConsumer, records: Sequence[Record]) -> None: ...

    def settle(self, consumer: QueueConsumer, handled: Sequence[Handled], deadline: float | None = None) -> None:
        self._gone.clear()
        refusal = self._commit(consumer, handled)
        if refusal is None:
            return
        # A transaction that was refused is dear: nearly all that can be refused is found without another.
        storable = [self._storable(one) for one in handled]
        if any(new is not old for new, old in zip(storable, handled, strict=True)):
            refusal = self._commit(consumer, storable)
        if refusal is not None:
            self._settle_apart(consumer, storable, refusal, deadline)

    def settle_outside(self, handled: Sequence[Handled]) -> None: ...

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None:
        gone = self._held if places is None else set(places)
        self._gone |= gone
        self._held = self._held - gone
        if self._producer is not None and self._sender not in self._held:
            producer, self._producer = self._producer, None
            producer.stop()

    def _storable(self, one: Handled) -> Handled:
        """Itself, or its letter where what it sent can be seen to be refused."""
        while one.outgoing:
            try:
                for addressed in one.outgoing:
                    self._sending_producer().check(*addressed)
                break
            except QueueError as error:
                if error.retryable:
                    raise
                one = self._desk.refused(one, error)
        return one

    def _settle_apart(
        self, consumer: QueueConsumer, handled: Sequence[Handled], refusal: QueueError, deadline: float | None
    ) -> None:
        """One of them sent what only the provider can refuse: halve them until it is found."""
        self._take_time(consumer, deadline)
        if len(handled) == 1:
            parts: list[Sequence[Handled]] = [[self._desk.refused(handled[0], refusal)]]
        else:
            middle = len(handled) // 2
            parts = [handled[:middle], handled[middle:]]
        for part in parts:
            ours = [one for one in part if place_of(one.record) not in self._gone]
            if ours and (error := self._commit(consumer, ours)) is not None:
                self._settle_apart(consumer, ours, error, deadline)

    def _take_time(self, consumer: QueueConsumer, deadline: float | None) -> None:
        if deadline is None:
            consumer.keep_alive()
        elif time.monotonic() >= deadline:
            raise TransactionAborted(
                "there was no time left to find out which message sent what is refused; all that is not committed is "
                "handled again by the next owner of its partition"
            )

    def _commit(self, consumer: QueueConsumer, handled: Sequence[Handled]) -> QueueError | None:
        """Why something that was sent cannot be stored, if so. Tried again when it was undone for a reason that passes,
        as while the group divides its partitions anew."""
        deadline = time.monotonic() + self._desk.hand_over_s
        while True:
            try:
                self._try_to_commit(consumer, handled)
                return None
            except TransactionAborted:
                if time.monotonic() >= deadline:
                    raise
            except QueueError as error:
                if error.retryable or isinstance(error, NOT_OURS):
                    raise
                return error
            time.sleep(_TRY_AGAIN_S)

    def _try_to_commit(self, consumer: QueueConsumer, handled: Sequence[Handled]) -> None:
        with self._sending_producer().begin() as transaction:
            for one in handled:
                for addressed in one.outgoing:
                    transaction.send(*addressed)
            transaction.commit_offsets(consumer, ends_of(one.record for one in handled))
        self._desk.count(handled)

    def _sending_producer(self) -> TransactionalProducer:
        if self._producer is None:
            self._sender = min(self._held)
            self._producer = self._open(self._sender)
        return self._producer

    def _open(self, place: ProviderPartition) -> TransactionalProducer:
        # A group's name may hold anything, a topic's no slash: so no two ids are the same.
        transactional_id = f"{place.topic}/{place.partition}/{self._desk.group}"
        return self._desk.provider.transactional_producer(transactional_id)


def _dropped(one: Handled, error: QueueError) -> Handled:
    where = f"{one.record.topic}[{one.record.partition}]@{one.record.offset}"
    logger.error("%s is dropped: what it sent was not stored: %s", where, error)
    return replace(one, outcome="dropped")


_KINDS: Final[dict[Delivery, Callable[[Desk], Settling]]] = {
    Delivery.AT_MOST_ONCE: AtMostOnce,
    Delivery.AT_LEAST_ONCE: AtLeastOnce,
    Delivery.EXACTLY_ONCE: ExactlyOnce,
}


def settling(delivery: Delivery, desk: Desk) -> Settling:
    return _KINDS[delivery](desk)
