"""When messages count as done: one class for each delivery. For the thread that reads.

Whatever is raised here ends the stay in the group, and the group gets again what is not committed: nothing has to be
undone.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final, Protocol

from queuecore.consuming.desk import Desk, Finished
from queuecore.consuming.partition import PartitionWork
from queuecore.consuming.work import Work
from queuecore.delivery import Delivery
from queuecore.errors import NotOwner, ProducerFenced, QueueError, TransactionAborted
from queuecore.providers.base import QueueConsumer, TransactionalProducer
from queuecore.sending import Addressed
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

# Another member has the partition: what this one did has no effect.
NOT_OURS: Final = (NotOwner, ProducerFenced)
_TRY_AGAIN_S: Final = 0.05


class Settling(Protocol):
    # Whether messages count as done before they are handled.
    commits_first: ClassVar[bool]

    def expect(self, places: Collection[ProviderPartition]) -> None:
        """These partitions are asked for under epochs, and not ours yet."""

    def take(self, places: Collection[ProviderPartition]) -> None:
        """These partitions are ours now."""

    def begin(self, consumer: QueueConsumer, part: PartitionWork, works: Sequence[Work]) -> None:
        """These are about to be handled for the first time."""

    def settle(self, consumer: QueueConsumer, finished: Sequence[Finished], deadline: float | None = None) -> None:
        """Store what these sent, and commit them. With a deadline the partitions are about to be given away, and the
        consumer cannot be polled; else it is kept alive where this takes long."""

    def settle_outside(self, finished: Sequence[Finished]) -> None:
        """Out of the group. What was committed before it was handled is settled all the same; the rest comes again."""

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None:
        """These partitions are not ours any longer; without any: none is."""


class AtMostOnce:
    commits_first: ClassVar[bool] = True

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def expect(self, places: Collection[ProviderPartition]) -> None: ...

    def take(self, places: Collection[ProviderPartition]) -> None: ...

    def begin(self, consumer: QueueConsumer, part: PartitionWork, works: Sequence[Work]) -> None:
        with _counted(self._desk):
            consumer.commit({part.info.place: works[-1].record.offset + 1})
        part.recorder.committed()
        part.tracker.complete([work.record.offset for work in works])

    def settle(self, consumer: QueueConsumer, finished: Sequence[Finished], deadline: float | None = None) -> None:
        self._desk.be_patient(consumer, deadline)
        self.settle_outside(finished)

    def settle_outside(self, finished: Sequence[Finished]) -> None:
        """Raises nothing of the provider's: nobody would get these again, so what cannot be stored is dropped, and
        counted."""
        with self._desk.posting():
            self._send(finished)
        for part, works in finished:
            self._desk.observer.settling(works)
            self._desk.settled(part, works)

    def _send(self, finished: Sequence[Finished]) -> None:
        under_way = []
        for part, works in finished:
            for work in works:
                if not work.outgoing:
                    continue
                try:
                    under_way.append((part, work, self._desk.send(work)))
                except QueueError as error:
                    _drop(work, error)
        for part, work, stored in under_way:
            try:
                self._desk.finish_sending(part, work, stored)
            except QueueError as error:
                _drop(work, error)

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None: ...


class AtLeastOnce:
    """What was sent is stored first, then the message is complete, then what is complete from the first message on is
    committed."""

    commits_first: ClassVar[bool] = False

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._committed: dict[ProviderPartition, int] = {}
        # What was taken from us while something is settled: its messages are the next owner's.
        self._gone: set[ProviderPartition] = set()

    def expect(self, places: Collection[ProviderPartition]) -> None: ...

    def take(self, places: Collection[ProviderPartition]) -> None: ...

    def begin(self, consumer: QueueConsumer, part: PartitionWork, works: Sequence[Work]) -> None: ...

    def settle(
        self,
        consumer: QueueConsumer,
        finished: Sequence[Finished],
        deadline: float | None = None,
    ) -> None:
        self._gone.clear()
        self._desk.be_patient(consumer, deadline)
        with self._desk.posting():
            refusal = self._store(finished)
        for part, works in finished:
            stored = works if refusal is None else _stored(part, works)
            self._desk.observer.settling(stored)
            part.tracker.complete([work.record[0] for work in stored])
            if part.state is not None:
                part.state.stored([work.record[0] for work in stored])
        self._commit(consumer, [part for part, _ in finished])
        for part, works in finished:
            self._desk.settled(part, _stored(part, works) if refusal else works)
        if refusal is not None:
            raise refusal

    def settle_outside(self, finished: Sequence[Finished]) -> None: ...

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None:
        for place in list(self._committed) if places is None else places:
            self._committed.pop(place, None)
            self._gone.add(place)

    def _store(self, finished: Sequence[Finished]) -> QueueError | None:
        """What could not be stored, if anything: then it and what follows it is unsettled."""
        sending = [(part, work) for part, works in finished for work in works if work.outgoing]
        for _, work in sending:
            work.trouble.is_unsettled = True
        try:
            under_way = [(part, work, self._desk.send(work)) for part, work in sending]
            for part, work, stored in under_way:
                self._desk.finish_sending(part, work, stored)
                work.trouble.is_unsettled = False
            for part, works in finished:
                if part.state is not None:
                    self._desk.store_state(part.state, works)
        except QueueError as error:
            return error
        return None

    def _commit(self, consumer: QueueConsumer, parts: Sequence[PartitionWork]) -> None:
        offsets = {}
        for part in parts:
            watermark = part.tracker.watermark
            if part.info.place in self._gone:
                continue
            if watermark is not None and watermark != self._committed.get(part.info.place):
                offsets[part.info.place] = watermark
        if offsets:
            with _counted(self._desk):
                consumer.commit(offsets)
            self._committed |= offsets
            for part in parts:
                if part.info.place in offsets:
                    part.recorder.committed()


class ExactlyOnce:
    """One transaction for all that is settled together. What is done out of order waits until all before it is: the
    commit of an offset and what the messages below it sent take effect as one.

    Each partition of the group has a transactional id. Who is given the partition opens it, which aborts what a killed
    member left open under it: otherwise whoever reads its messages, and this member for the offsets, would wait for a
    timeout. Messages are sent under the id of one of the partitions held, as a producer for each would cost threads and
    a commit of its own: that a member which was displaced cannot commit is the group's to see to.
    """

    commits_first: ClassVar[bool] = False

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._held: set[ProviderPartition] = set()
        # Done, and behind something that is not.
        self._kept: dict[ProviderPartition, dict[int, Work]] = {}
        # What was taken from us while something is settled: its messages are the next owner's, even if that is us.
        self._gone: set[ProviderPartition] = set()
        # The partition under whose id is sent.
        self._sender: ProviderPartition | None = None
        self._producer: TransactionalProducer | None = None

    def expect(self, places: Collection[ProviderPartition]) -> None:
        """Under which epoch a partition was committed last is asked before it is given, and not answered as long as
        there is an open transaction with it: what a killed member left open is aborted before that."""
        for place in sorted(places):
            self._open(place).stop()

    def take(self, places: Collection[ProviderPartition]) -> None:
        for place in sorted(places):
            producer = self._open(place)
            self._held.add(place)
            if self._producer is None:
                self._sender, self._producer = place, producer
            else:
                producer.stop()

    def begin(self, consumer: QueueConsumer, part: PartitionWork, works: Sequence[Work]) -> None: ...

    def settle(self, consumer: QueueConsumer, finished: Sequence[Finished], deadline: float | None = None) -> None:
        self._gone.clear()
        ready = [one for part, works in finished if (one := self._ready(part, works))[1]]
        if not ready:
            return
        for _, works in ready:
            self._desk.observer.settling(works)
        refusal = self._commit(consumer, ready, deadline)
        if refusal is None:
            return
        # A transaction that was refused is dear: nearly all that can be refused is found without another.
        if self._put_aside_refused(ready):
            refusal = self._commit(consumer, ready, deadline)
        if refusal is not None:
            self._settle_apart(consumer, ready, refusal, deadline)

    def settle_outside(self, finished: Sequence[Finished]) -> None: ...

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None:
        gone = set(self._held) if places is None else set(places)
        self._gone |= gone
        self._held -= gone
        for place in gone:
            self._kept.pop(place, None)
        if self._producer is not None and self._sender not in self._held:
            producer, self._producer = self._producer, None
            producer.stop()

    def _ready(self, part: PartitionWork, works: Sequence[Work]) -> Finished:
        """Of what is done of a partition, that from its first message on."""
        kept = self._kept.setdefault(part.info.place, {})
        kept.update((work.record[0], work) for work in works)
        ready = part.tracker.ready(kept)
        if part.state is not None:
            ready = part.state.closed(ready)
        return part, [kept[offset] for offset in ready]

    def _put_aside_refused(self, finished: Sequence[Finished]) -> bool:
        """Make letters of those that sent what can be seen to be refused. Whether there were any."""
        found = False
        for part, works in finished:
            for work in works:
                while (error := self._refusal(part, work)) is not None:
                    self._refused(part, work, error)
                    found = True
        return found

    def _refused(self, part: PartitionWork, work: Work, error: QueueError) -> None:
        """It ends otherwise than was told."""
        self._desk.refused(part, work, error)
        self._desk.observer.settling([work])

    def _refusal(self, part: PartitionWork, work: Work) -> QueueError | None:
        try:
            for addressed in (*work.outgoing, *_remembered(part, [work])):
                self._sending_producer().check(*addressed)
        except QueueError as error:
            if error.retryable:
                raise
            return error
        return None

    def _settle_apart(
        self, consumer: QueueConsumer, finished: Sequence[Finished], refusal: QueueError, deadline: float | None
    ) -> None:
        """One of them sent what only the provider can refuse: halve them until it is found."""
        self._take_time(consumer, deadline)
        pieces = [piece for part, works in finished for piece in _pieces(part, works)]
        if len(pieces) == 1:
            part, works = pieces[0]
            self._refused(part, next((work for work in works if work.outgoing), works[0]), refusal)
            halves = [pieces]
        else:
            middle = len(pieces) // 2
            halves = [pieces[:middle], pieces[middle:]]
        for half in halves:
            ours = _joined([piece for piece in half if piece[0].info.place not in self._gone])
            if ours and (error := self._commit(consumer, ours, deadline)) is not None:
                self._settle_apart(consumer, ours, error, deadline)

    def _take_time(self, consumer: QueueConsumer, deadline: float | None) -> None:
        if deadline is None:
            consumer.keep_alive()
        elif time.monotonic() >= deadline:
            raise TransactionAborted(
                "there was no time left to find out which message sent what is refused; all that is not committed is "
                "handled again by the next owner of its partition"
            )

    def _commit(
        self, consumer: QueueConsumer, finished: Sequence[Finished], deadline: float | None
    ) -> QueueError | None:
        """Why something that was sent cannot be stored, if so. Tried again when it was undone for a reason that passes,
        as while the group divides its partitions anew."""
        until = time.monotonic() + self._desk.plan().hand_over_s
        until = until if deadline is None else min(until, deadline)
        while True:
            try:
                self._try_to_commit(consumer, finished)
                return None
            except TransactionAborted:
                if time.monotonic() >= until:
                    raise
            except QueueError as error:
                if error.retryable or isinstance(error, NOT_OURS):
                    raise
                return error
            time.sleep(_TRY_AGAIN_S)

    def _try_to_commit(self, consumer: QueueConsumer, finished: Sequence[Finished]) -> None:
        # The offsets of what is stored in vain are below the end of their partitions all the same.
        sent: list[Addressed] = []
        with self._desk.posting(), _counted(self._desk), self._sending_producer().begin() as transaction:
            for part, works in finished:
                sent += [self._desk.where(addressed) for work in works for addressed in work.outgoing]
                sent += _remembered(part, works)
            for addressed in sent:
                transaction.send(*addressed)
            ends = {part.info.place: works[-1].record.offset + 1 for part, works in finished}
            transaction.commit_offsets(consumer, ends)
        self._desk.recording.stored(sent)
        for part, works in finished:
            part.recorder.committed()
            offsets = [work.record[0] for work in works]
            part.tracker.complete(offsets)
            if part.state is not None:
                part.state.stored(offsets)
            for work in works:
                if work.outgoing:
                    self._desk.sent(work)
            kept = self._kept.get(part.info.place, {})
            for offset in offsets:
                kept.pop(offset, None)
            self._desk.settled(part, works)

    def _sending_producer(self) -> TransactionalProducer:
        if self._producer is None:
            self._sender = min(self._held)
            self._producer = self._open(self._sender)
        return self._producer

    def _open(self, place: ProviderPartition) -> TransactionalProducer:
        # A group's name may hold anything, a topic's no slash: so no two ids are the same.
        transactional_id = f"{place.topic}/{place.partition}/{self._desk.plan().group}"
        return self._desk.provider.transactional_producer(transactional_id)


@contextmanager
def _counted(desk: Desk) -> Iterator[None]:
    """A commit: where it is refused because another has the partition, that is counted."""
    try:
        yield
    except NOT_OURS:
        desk.counter.add("stale_refused")
        raise


def _stored(part: PartitionWork, works: Sequence[Work]) -> list[Work]:
    """Of what was to be stored in vain, that which is stored all the same. What handlers remember comes last, and is
    not."""
    return [work for work in works if not work.is_unsettled] if part.state is None else []


def _remembered(part: PartitionWork, works: Sequence[Work]) -> Sequence[Addressed]:
    """What has to be stored of what the handlers of these remember."""
    if part.state is None:
        return ()
    messages = part.state.messages([work.record.offset for work in works])
    return [one for those in messages.values() for one in those]


def _pieces(part: PartitionWork, works: Sequence[Work]) -> list[Finished]:
    """What may be committed apart from each other: single messages, but for those that have remembered together."""
    if part.state is None:
        return [(part, [work]) for work in works]
    by_offset = {work.record.offset: work for work in works}
    groups = part.state.groups(list(by_offset))
    return [(part, [by_offset[offset] for offset in group]) for group in groups]


def _joined(pieces: Sequence[Finished]) -> list[Finished]:
    """By partition again, in order."""
    joined: dict[ProviderPartition, Finished] = {}
    for part, works in pieces:
        joined.setdefault(part.info.place, (part, []))[1].extend(works)
    return list(joined.values())


def _drop(work: Work, error: QueueError) -> None:
    where = f"{work.record.topic}[{work.record.partition}]@{work.record.offset}"
    logger.error("%s is dropped: what it sent was not stored: %s", where, error)
    work.trouble.reason = work.reason or "output_refused"
    work.outgoing = ()


_KINDS: Final[dict[Delivery, Callable[[Desk], Settling]]] = {
    Delivery.AT_MOST_ONCE: AtMostOnce,
    Delivery.AT_LEAST_ONCE: AtLeastOnce,
    Delivery.EXACTLY_ONCE: ExactlyOnce,
}


def settling(delivery: Delivery, desk: Desk) -> Settling:
    return _KINDS[delivery](desk)
