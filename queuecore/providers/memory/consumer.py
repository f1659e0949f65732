"""A group's reading: follows the group's plan, and gives out what the partitions it holds have."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import uuid4

from queuecore.errors import OffsetOutOfRange, QueueError
from queuecore.groups import Wants
from queuecore.groups.epochs import Fence, check_epochs, check_newest
from queuecore.groups.members import displaced
from queuecore.messages import Record
from queuecore.providers.base import AssignmentListener, Epochs
from queuecore.providers.memory.reading import Reading
from queuecore.providers.memory.storage import MemoryStorage
from queuecore.providers.options import ConsumerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class _NoListener:
    def assigned(self, partitions: frozenset[ProviderPartition]) -> None: ...

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None: ...

    def lost(self, partitions: frozenset[ProviderPartition]) -> None: ...


class MemoryConsumer:
    """For its group it lives while it waits in `poll`, and for `session_timeout_ms` after each sign of life. `stop`
    may come from any thread and ends a poll that waits."""

    def __init__(
        self,
        storage: MemoryStorage,
        group: str,
        topic: str,
        options: ConsumerOptions,
        member_id: str | None = None,
    ) -> None:
        self.member = f"{group}-{uuid4()}"
        self._member_id = member_id
        self._storage = storage
        self._lock = storage.lock
        with self._lock:
            self.group = storage.group(group)
        self._topic = topic
        self._options = options
        self._wake = threading.Condition(self._lock)
        self._stopped = False
        self._wants: Wants | None = None
        self._listener: AssignmentListener = _NoListener()
        self._reading = Reading(storage, group, options)
        # For the transaction that commits this consumer's offsets. With the lock.
        self.fence = Fence(group)
        # The version of the group that is followed; None while something of it is still to be done.
        self._seen: int | None = None

    @property
    def topic(self) -> str:
        return self._topic

    @property
    def partitions(self) -> frozenset[ProviderPartition]:
        with self._lock:
            return self._reading.held

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    def subscribe(
        self,
        partitions: Iterable[TopicPartitionInfo] | None = None,
        listener: AssignmentListener | None = None,
        epochs: Epochs | None = None,
    ) -> None:
        wants = self._make_wants(partitions)
        fences = check_epochs(wants.partitions, epochs)
        with self._lock:
            if self._stopped:
                raise QueueError("this consumer has been stopped; open a new one")
            for place in wants.partitions:
                self._storage.partition(place)
            for topic in wants.topics:
                self._storage.partitions_of(topic)
            self.fence.want(fences)
            self._listener = listener or _NoListener()
            self._join(wants)

    def poll(self, duration_ms: int) -> list[Record]:
        deadline = time.monotonic() + duration_ms / 1000
        if self._wants is None:
            raise QueueError("this consumer reads no partitions; call subscribe first")
        while True:
            with self._lock:
                if self._wants is None:  # stopped by another thread
                    return []
                if self._is_in_step():
                    self.fence.raise_stale()
                    records = self._reading.fetch()
                    if records or not self._wait(deadline - time.monotonic()):
                        return records
                    continue
            self._follow()

    def commit(self, offsets: Mapping[ProviderPartition, int] | None = None) -> None:
        with self._lock:
            self._say_alive()
            offsets = self._reading.done if offsets is None else offsets
            epochs = self.fence.of(offsets)
            self.check_commit(offsets, epochs)
            self.group.commit(offsets, epochs)
            self._storage.space_may_be_free()

    def pause(self, partitions: Iterable[ProviderPartition]) -> None:
        places = list(partitions)
        with self._lock:
            self.group.check_owner(self.member, places)
            self._reading.pause(places)

    def resume(self, partitions: Iterable[ProviderPartition]) -> None:
        with self._lock:
            self._reading.resume(partitions)

    def seek(self, partition: ProviderPartition, offset: int) -> None:
        with self._lock:
            self.group.check_owner(self.member, [partition])
            stored = self._storage.partition(partition)
            if not stored.beginning <= offset <= stored.end:
                raise OffsetOutOfRange(
                    f"{partition} has offsets {stored.beginning} to {stored.end}; there is no {offset} to go to",
                    beginning=stored.beginning,
                )
            self._reading.seek(partition, offset)

    def keep_alive(self) -> None:
        with self._lock:
            self._say_alive()

    def unsubscribe(self) -> None:
        with self._lock:
            self._wants = None
            self._listener = _NoListener()
            self.fence.want({})
            self._forget(self._reading.held)
            self.group.leave(self.member)
            self._wake.notify_all()
            self._storage.space_may_be_free()

    def stop(self) -> None:
        self._stopped = True
        self.unsubscribe()

    def _make_wants(self, partitions: Iterable[TopicPartitionInfo] | None) -> Wants:
        if partitions is not None:
            return Wants(frozenset(info.place for info in partitions), strategy=self._options.strategy)
        if not self._topic:
            raise QueueError("this consumer was made for no topic; name the partitions to subscribe to")
        return Wants(topics=frozenset({self._topic}), strategy=self._options.strategy)

    def _follow(self) -> None:
        """Bring what is held in step with the group. The listener is told without the lock, as it may commit."""
        with self._lock:
            lost, revoked = self._look()
            is_displaced = self._is_displaced()
        if lost:
            self._listener.lost(lost)
        if is_displaced:
            raise displaced(self.group.name, self._member_id)
        if revoked:
            try:
                self._listener.revoked(revoked)
            finally:
                self._release(revoked)
        with self._lock:
            taken = self._take()
        if taken:
            self._listener.assigned(taken)

    def _release(self, partitions: frozenset[ProviderPartition]) -> None:
        with self._lock:
            self._forget(partitions)
            self.group.release(self.member, partitions)

    # From here on: with the lock.

    def check_commit(self, offsets: Mapping[ProviderPartition, int], epochs: Epochs) -> None:
        """NotOwner or OffsetOutOfRange unless the group may commit these for this consumer now, under these epochs."""
        check_newest(self.group.name, epochs, self.group.epochs)
        if offsets and self._is_displaced():
            raise displaced(self.group.name, self._member_id)
        self.group.check_owner(self.member, offsets)
        self._reading.check_commit(offsets)

    def _forget(self, partitions: frozenset[ProviderPartition]) -> None:
        self._reading.forget(partitions)
        self.fence.release(partitions)

    def _join(self, wants: Wants) -> None:
        self._wants = wants
        counts = {topic: self._storage.count(topic) for topic in wants.names()}
        self.group.join(self.member, wants, counts, self._wake, self._member_id)
        self._say_alive()
        self._seen = None

    def _say_alive(self) -> None:
        self.group.alive_until(self.member, self._storage.clock.monotonic() + self._options.session_timeout_ms / 1000)

    def _is_in_step(self) -> bool:
        """Whether the group is as it was when we last followed it."""
        self._say_alive()
        self.group.expire_silent(self._storage.clock.monotonic())
        return self._seen == self.group.state.version

    def _look(self) -> tuple[frozenset[ProviderPartition], frozenset[ProviderPartition]]:
        """What is another member's already, and what is to become one's."""
        is_out = not self.group.state.is_member(self.member)
        if self._wants is not None and is_out and not self._is_displaced():
            self._join(self._wants)
        sync = self.group.state.sync(self.member)
        lost = self._reading.held - sync.owned
        self._forget(lost)
        return lost, sync.revoked | self.fence.outdated(self._reading.held)

    def _is_displaced(self) -> bool:
        return self.group.state.is_displaced(self.member, self._member_id)

    def _take(self) -> frozenset[ProviderPartition]:
        self._want_nothing_stale()
        taken = self.group.state.take(self.member)
        for place in taken:
            self._reading.begin(place, self.group.committed.get(place))
        self.fence.hold(taken)
        sync = self.group.state.sync(self.member)
        held = self._reading.held
        in_step = sync.owned == held and not sync.revoked and not self.fence.outdated(held)
        self._seen = self.group.state.version if in_step else None
        self._say_alive()
        return taken

    def _want_nothing_stale(self) -> None:
        """What the group has committed under a higher epoch is left to others, who may want it."""
        while self._wants is not None:
            free = self.group.state.sync(self.member).free
            if not (stale := self.fence.refuse_stale(free, self.group.epochs)):
                return
            # In what the group plans instead there may be more.
            self._join(replace(self._wants, partitions=self._wants.partitions - stale))

    def _wait(self, remaining: float) -> bool:
        """Let others have the lock until there may be something to do; False when it is too late for that."""
        if remaining <= 0:
            return False
        try:
            self.group.polls(self.member)
            until_one_is_silent = self.group.next_deadline() - self._storage.clock.monotonic()
            self._reading.wait(self._wake, min(remaining, until_one_is_silent))
        finally:  # whoever interrupts the wait: it polls no longer, and its session runs
            self._say_alive()
        return True
