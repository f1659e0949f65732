"""A group's reading."""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import NotOwner, OffsetOutOfRange, ProviderUnavailable, QueueError, UnknownTopic
from queuecore.groups import Wants
from queuecore.groups.epochs import Fence, check_epochs
from queuecore.groups.offsets import check_end, check_offsets, check_started
from queuecore.messages import Record
from queuecore.providers.base import AssignmentListener, Epochs
from queuecore.providers.log.bell import Bell
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.membership import Membership
from queuecore.providers.log.reader import Outcome, PartitionReader
from queuecore.providers.options import ConsumerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo

logger = logging.getLogger(__name__)

# How soon a member notices what others did to the group.
_LOOK_EVERY_S = 0.2


class LogConsumer:
    """Reads the partitions its group gave to it."""

    def __init__(
        self,
        root: Path,
        catalog: Catalog,
        membership: Membership,
        any_bell: Bell,
        outcome: Outcome,
        topic: str,
        options: ConsumerOptions,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._root = root
        self._catalog = catalog
        self._any_bell = any_bell
        self._outcome = outcome
        self._topic = topic
        self._options = options
        self._clock = clock
        self._membership = membership
        self._listener: AssignmentListener | None = None
        # For the transaction that commits this consumer's offsets.
        self.fence = Fence(membership.group)
        self._is_subscribed = self._is_stopped = False
        self._looked_at = 0.0
        # In the order in which they are read: one that was not reached in a poll comes first in the next.
        self._readers: dict[ProviderPartition, PartitionReader] = {}
        self._positions: dict[ProviderPartition, int] = {}
        # The lowest offset each was read from since it is held: a commit below is of work from before.
        self._starts: dict[ProviderPartition, int] = {}
        # Those that gave records: what a commit of everything is about.
        self._polled: set[ProviderPartition] = set()
        self._paused: set[ProviderPartition] = set()
        # Why a partition could not be read, to be told in the next poll.
        self._trouble: Exception | None = None

    @property
    def topic(self) -> str:
        return self._topic

    @property
    def partitions(self) -> frozenset[ProviderPartition]:
        return frozenset(self._readers)

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    @property
    def membership(self) -> Membership:
        """For the transaction that commits this consumer's offsets."""
        return self._membership

    def subscribe(
        self,
        partitions: Iterable[TopicPartitionInfo] | None = None,
        listener: AssignmentListener | None = None,
        epochs: Epochs | None = None,
    ) -> None:
        if self._is_stopped:
            raise QueueError("this consumer has been stopped; make a new one")
        wants = self._wants(partitions)
        fences = check_epochs(wants.partitions, epochs)
        if self._membership.is_displaced:
            self.unsubscribe()
        self._membership.join(wants)
        self.fence.want(fences)
        self._listener = listener
        self._is_subscribed = True
        self._looked_at = -_LOOK_EVERY_S

    def poll(self, duration_ms: int) -> list[Record]:
        if not self._is_subscribed:
            raise QueueError("this consumer reads no partitions; call subscribe first")
        try:
            return self._poll(self._clock.monotonic() + duration_ms / 1000)
        except OSError as error:
            raise ProviderUnavailable(
                f"group {self._membership.group} cannot read under {self._root}: {error}; mend the folder or the "
                "process's limits, then poll again"
            ) from error

    def _poll(self, deadline: float) -> list[Record]:
        self._membership.sign_of_life()
        while True:
            self._look_at_the_group()
            self.fence.raise_stale()
            bell = self._bell()
            heard = bell.heard()
            records = self._read()
            remaining = deadline - self._clock.monotonic()
            if records or remaining <= 0:
                return records
            if self._bell() is bell:  # else the partition it belongs to is gone
                bell.wait(heard, min(remaining, _LOOK_EVERY_S))

    def commit(self, offsets: Mapping[ProviderPartition, int] | None = None) -> None:
        if offsets is None:
            offsets = {place: self._positions[place] for place in self._polled}
        if offsets:
            self.check_commit(offsets)
            self._membership.commit(offsets, self.fence.of(offsets))

    def pause(self, partitions: Iterable[ProviderPartition]) -> None:
        self._paused |= self._held(partitions)

    def resume(self, partitions: Iterable[ProviderPartition]) -> None:
        self._paused -= set(partitions)

    def seek(self, partition: ProviderPartition, offset: int) -> None:
        self._held([partition])
        reader = self._readers[partition]
        beginning, end = reader.beginning(), reader.end()
        if not beginning <= offset <= end:
            raise OffsetOutOfRange(
                f"{partition} has offsets {beginning} to {end}; there is no {offset} to go to", beginning=beginning
            )
        self._go_to(partition, offset)
        self._polled.discard(partition)

    def keep_alive(self) -> None:
        self._membership.sign_of_life()

    def unsubscribe(self) -> None:
        self._drop(frozenset(self._readers))
        self.fence.want({})
        self._membership.leave()
        self._is_subscribed = False

    def stop(self) -> None:
        if not self._is_stopped:
            self.unsubscribe()
            self._is_stopped = True

    def _wants(self, partitions: Iterable[TopicPartitionInfo] | None) -> Wants:
        if partitions is None:
            if not self._topic:
                raise QueueError("this consumer was made for no topic; name the partitions to subscribe to")
            self._catalog.topic(self._topic)
            return Wants(topics=frozenset([self._topic]), strategy=self._options.strategy)
        places = frozenset(info.place for info in partitions)
        for place in places:
            self._catalog.topic_of(place)
        return Wants(partitions=places, strategy=self._options.strategy)

    def _held(self, partitions: Iterable[ProviderPartition]) -> set[ProviderPartition]:
        wanted = set(partitions)
        if missing := wanted - self._readers.keys():
            names = ", ".join(sorted(map(str, missing)))
            raise NotOwner(f"group {self._membership.group} does not hold {names} here", group=self._membership.group)
        return wanted

    def check_commit(self, offsets: Mapping[ProviderPartition, int]) -> None:
        """OffsetOutOfRange for what the partition does not have, NotOwner for work from before it was held. That it is
        held is the membership's to say."""
        check_offsets(offsets)
        for place in offsets.keys() & self._readers.keys():
            check_started(self._membership.group, place, offsets[place], self._starts[place])
            with suppress(UnknownTopic):  # deleted: then it is nobody's any more
                check_end(place, offsets[place], self._readers[place].end())

    def _go_to(self, place: ProviderPartition, offset: int) -> None:
        self._positions[place] = offset
        self._starts[place] = min(self._starts[place], offset)

    def _bell(self) -> Bell:
        """What rings when there may be something to read: the partition's own where there is but one."""
        if len(self._readers) == 1:
            return next(iter(self._readers.values())).bell
        return self._any_bell

    def _look_at_the_group(self) -> None:
        self._membership.require_not_displaced()
        now = self._clock.monotonic()
        if now - self._looked_at < _LOOK_EVERY_S:
            return
        self._looked_at = now
        self._membership.sign_of_life()
        if self._membership.has_news():
            self._follow_the_group()
        # Also those that are ours for longer, but could not be opened.
        if unopened := self._membership.owned - self._readers.keys():
            self._take(unopened)

    def _follow_the_group(self) -> None:
        lost, revoked = self._membership.look()
        self._drop(lost)
        revoked |= self.fence.outdated(self.partitions)
        try:
            if lost and self._listener is not None:
                self._listener.lost(lost)
            if revoked and self._listener is not None:
                self._listener.revoked(revoked)
        finally:  # whatever the listener raises, another member waits for them
            self._drop(revoked)
            self._membership.settle(revoked)
        self._membership.require_not_displaced()

    def _take(self, taken: frozenset[ProviderPartition]) -> None:
        # Asked now that the group has given them to us: nobody else can commit them since.
        if self.fence.wants(taken) and (stale := self._stale_of(taken)):
            self._membership.want_no_longer(stale)
            taken -= stale
        committed = self._catalog.committed(self._membership.group)
        opened: set[ProviderPartition] = set()
        trouble: QueueError | OSError | None = None
        for place in sorted(taken):
            try:
                self._begin_to_read(place, committed.get(place))
                opened.add(place)
            except UnknownTopic:
                continue  # it is being deleted: the group will hear of it
            except (QueueError, OSError) as error:  # one that cannot be read does not keep us from the others
                trouble = error
        if opened and self._listener is not None:
            self._listener.assigned(frozenset(opened))
        if trouble is not None:
            raise trouble

    def _stale_of(self, taken: frozenset[ProviderPartition]) -> frozenset[ProviderPartition]:
        return self.fence.refuse_stale(taken, self._catalog.epochs(self._membership.group))

    def _begin_to_read(self, place: ProviderPartition, committed: int | None) -> None:
        reader = PartitionReader(self._root, place, self._outcome)
        try:
            # Beyond the end: the machine went down before the records that were committed reached the disk.
            position = self._reset_position(reader) if committed is None else min(committed, reader.end())
        except BaseException:
            reader.close()
            raise
        self._readers[place] = reader
        self.fence.hold([place])
        self._positions[place] = self._starts[place] = position

    def _drop(self, partitions: frozenset[ProviderPartition]) -> None:
        for place in partitions & self._readers.keys():
            self._readers.pop(place).close()
            del self._positions[place], self._starts[place]
        self.fence.release(partitions)
        self._paused -= partitions
        self._polled -= partitions

    def _reset_position(self, reader: PartitionReader) -> int:
        return reader.end() if self._options.auto_offset_reset == "latest" else reader.beginning()

    def _read(self) -> list[Record]:
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble
        records: list[Record] = []
        for place, reader in list(self._readers.items()):
            room = self._options.max_poll_records - len(records)
            if room <= 0:
                break
            if place not in self._paused:
                self._readers[place] = self._readers.pop(place)
                try:
                    records += self._read_partition(place, reader, room)
                except Exception as error:
                    if not records:
                        raise
                    # What other partitions gave is given first.
                    self._trouble = error
                    break
        return records

    def _read_partition(self, place: ProviderPartition, reader: PartitionReader, room: int) -> list[Record]:
        position = self._positions[place]
        try:
            records = reader.read(position, room, self._options.max_partition_fetch_bytes)
        except OffsetOutOfRange as error:
            self._go_to(place, self._reset_position(reader))
            logger.warning("%s; group %s goes on at %d", error, self._membership.group, self._positions[place])
            return []
        except UnknownTopic as error:
            logger.warning("%s; group %s reads it no longer", error, self._membership.group)
            self._drop(frozenset([place]))
            return []
        self._positions[place] = max(position, reader.next_offset)
        if records:
            self._polled.add(place)
        return records
