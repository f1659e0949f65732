"""When handled messages count as done: one class for each delivery. For the thread that reads.

Whatever is raised here ends the membership, and the group gets again what is not committed: nothing has to be undone.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import ClassVar, Final, Protocol

from queuecore.delivery import Delivery
from queuecore.errors import NotOwner, ProducerFenced, QueueError
from queuecore.messages import Record
from queuecore.providers.base import QueueConsumer, TransactionalProducer
from queuecore.queues.desk import Desk
from queuecore.queues.handling import Handled
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

# Another member has the partition: what this one did has no effect.
NOT_OURS: Final = (NotOwner, ProducerFenced)


class Settling(Protocol):
    # Whether messages count as done before they are handled.
    commits_first: ClassVar[bool]

    def begin(self, consumer: QueueConsumer, records: Sequence[Record]) -> None:
        """These are about to be handled."""

    def settle(self, consumer: QueueConsumer, handled: Sequence[Handled]) -> None:
        """Store what these sent, and commit them."""

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None:
        """These partitions are not ours any longer; without any: none is."""


class AtMostOnce:
    commits_first: ClassVar[bool] = True

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def begin(self, consumer: QueueConsumer, records: Sequence[Record]) -> None:
        consumer.commit(_ends(records))

    def settle(self, consumer: QueueConsumer, handled: Sequence[Handled]) -> None:  # noqa: ARG002
        for one, stored in self._desk.start_sending(handled):
            try:
                self._desk.count([self._desk.finish_sending(one, stored)])
            except QueueError as error:
                logger.error("%s@%d is dropped: what it sent was not stored: %s", one.info, one.record.offset, error)
                self._desk.counter.add(dropped=1)

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None: ...


class AtLeastOnce:
    commits_first: ClassVar[bool] = False

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def begin(self, consumer: QueueConsumer, records: Sequence[Record]) -> None: ...

    def settle(self, consumer: QueueConsumer, handled: Sequence[Handled]) -> None:
        done: list[Handled] = []
        try:
            for one, stored in self._desk.start_sending(handled):
                done.append(self._desk.finish_sending(one, stored))
        except QueueError:
            # What comes before the one that cannot be settled need not be repeated.
            self._commit(consumer, done)
            raise
        self._commit(consumer, done)

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None: ...

    def _commit(self, consumer: QueueConsumer, done: list[Handled]) -> None:
        consumer.commit(_ends(one.record for one in done))
        self._desk.count(done)


class ExactlyOnce:
    """A transactional id for each partition of the group: whoever takes the partition over aborts at once what a killed
    predecessor left open, so that nobody who reads its messages has to wait for a timeout."""

    commits_first: ClassVar[bool] = False

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._producers: dict[ProviderPartition, TransactionalProducer] = {}

    def begin(self, consumer: QueueConsumer, records: Sequence[Record]) -> None:  # noqa: ARG002
        for place in _ends(records):
            if place not in self._producers:
                # A group's name may hold anything, a topic's no slash: so no two ids are the same.
                transactional_id = f"{place.topic}/{place.partition}/{self._desk.group}"
                self._producers[place] = self._desk.provider.transactional_producer(transactional_id)

    def settle(self, consumer: QueueConsumer, handled: Sequence[Handled]) -> None:
        by_place: dict[ProviderPartition, list[Handled]] = defaultdict(list)
        for one in handled:
            by_place[one.place].append(one)
        for place, ones in by_place.items():
            self._settle_partition(consumer, place, ones)

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None:
        for place in list(self._producers if places is None else self._producers.keys() & set(places)):
            self._producers.pop(place).stop()

    def _settle_partition(self, consumer: QueueConsumer, place: ProviderPartition, ones: list[Handled]) -> None:
        try:
            self._commit(consumer, place, ones)
        except QueueError as error:
            if error.retryable or isinstance(error, NOT_OURS):
                raise
            # One of them sent what cannot be stored. Alone, each shows whether it did.
            if len(ones) == 1:
                self._settle_partition(consumer, place, [self._desk.refused(ones[0], error)])
            else:
                for one in ones:
                    self._settle_partition(consumer, place, [one])

    def _commit(self, consumer: QueueConsumer, place: ProviderPartition, ones: list[Handled]) -> None:
        with self._producers[place].begin() as transaction:
            for one in ones:
                for addressed in one.outgoing:
                    transaction.send(*addressed)
            transaction.commit_offsets(consumer, {place: ones[-1].record.offset + 1})
        self._desk.count(ones)


_KINDS: Final[dict[Delivery, Callable[[Desk], Settling]]] = {
    Delivery.AT_MOST_ONCE: AtMostOnce,
    Delivery.AT_LEAST_ONCE: AtLeastOnce,
    Delivery.EXACTLY_ONCE: ExactlyOnce,
}


def settling(delivery: Delivery, desk: Desk) -> Settling:
    return _KINDS[delivery](desk)


def _ends(records: Iterable[Record]) -> dict[ProviderPartition, int]:
    """The offset behind the last of each partition."""
    return {ProviderPartition(record.topic, record.partition): record.offset + 1 for record in records}
