"""A provider whose consumers write down what they are given and what they commit, under which epochs."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from queuecore.messages import Record
from queuecore.providers.base import AssignmentListener, Epochs, Provider, QueueConsumer, TransactionalProducer
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.reliability.cluster_handler import DESK
from tests.reliability.cluster_journal import What


class RecordedProvider:
    """Its consumers and transactions are the provider's own, with some of their methods replaced: a transaction asks
    for a consumer of its kind."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def consumer(self, *arguments: Any, **options: Any) -> QueueConsumer:
        consumer: Any = self._provider.consumer(*arguments, **options)
        _RecordedConsumer(consumer)
        return consumer  # type: ignore[no-any-return]

    def transactional_producer(self, *arguments: Any, **options: Any) -> TransactionalProducer:
        producer: Any = self._provider.transactional_producer(*arguments, **options)
        begin = producer.begin

        def begin_recorded() -> Any:
            transaction = begin()
            _RecordedTransaction(transaction)
            return transaction

        producer.begin = begin_recorded
        return producer  # type: ignore[no-any-return]


class _RecordedConsumer:
    def __init__(self, consumer: Any) -> None:
        self._subscribe, self._poll, self._commit = consumer.subscribe, consumer.poll, consumer.commit
        consumer.subscribe, consumer.poll, consumer.commit = self.subscribe, self.poll, self.commit
        consumer.recorded = self
        self.polled_at = 0.0
        self.wanted: dict[ProviderPartition, int] = {}
        # Under which epochs its partitions were given, which it commits under.
        self.given: dict[ProviderPartition, int] = {}

    def subscribe(
        self,
        partitions: Iterable[TopicPartitionInfo] | None = None,
        listener: AssignmentListener | None = None,
        epochs: Epochs | None = None,
    ) -> None:
        self._subscribe(partitions, _Listener(listener, self) if listener and epochs else listener, epochs)
        self.wanted = dict(epochs or {})

    def poll(self, duration_ms: int) -> list[Record]:
        self.polled_at = time.monotonic()
        return self._poll(duration_ms)  # type: ignore[no-any-return]

    def commit(self, offsets: Mapping[ProviderPartition, int] | None = None) -> None:
        with committing(self.under_epochs(offsets or {})):
            self._commit(offsets)

    def under_epochs(self, offsets: Mapping[ProviderPartition, int]) -> "Committed":
        return {place: (self.given.get(place, 0), offset) for place, offset in offsets.items() if place in self.given}


class _Listener:
    """Notes what is given before anything is made of it."""

    def __init__(self, listener: AssignmentListener, recorded: _RecordedConsumer) -> None:
        self._listener = listener
        self._recorded = recorded

    def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
        for place in sorted(partitions):
            epoch = self._recorded.wanted.get(place, 0)
            self._recorded.given[place] = DESK.epochs[place] = epoch
            DESK.journal.note(What.GIVEN, place=str(place), epoch=epoch, since=self._recorded.polled_at)
        self._listener.assigned(partitions)

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        self._listener.revoked(partitions)

    def lost(self, partitions: frozenset[ProviderPartition]) -> None:
        self._listener.lost(partitions)


class _RecordedTransaction:
    def __init__(self, transaction: Any) -> None:
        self._commit_offsets: Callable[..., None] = transaction.commit_offsets
        self._commit: Callable[[], None] = transaction.commit
        transaction.commit_offsets, transaction.commit = self.commit_offsets, self.commit
        self._offsets: Committed = {}

    def commit_offsets(self, consumer: Any, offsets: Mapping[ProviderPartition, int]) -> None:
        self._commit_offsets(consumer, offsets)
        self._offsets |= consumer.recorded.under_epochs(offsets)

    def commit(self) -> None:
        with committing(self._offsets):
            self._commit()


# The epoch and the offset of each.
Committed = dict[ProviderPartition, tuple[int, int]]


@contextmanager
def committing(offsets: Committed) -> Iterator[None]:
    """Write down that a commit is begun, and what became of it."""
    call = next(DESK.journal.calls)
    if offsets:
        DESK.stop_in_commit()
    _note(What.COMMITTING, offsets, call)
    try:
        yield
    except BaseException as error:
        _note(What.REFUSED, offsets, call, type(error).__name__)
        raise
    _note(What.COMMITTED, offsets, call)


def _note(what: What, offsets: Committed, call: int, why: str = "") -> None:
    at = time.monotonic()
    for place, (epoch, offset) in offsets.items():
        DESK.journal.note(what, at=at, place=str(place), epoch=epoch, offset=offset, call=call, why=why)
