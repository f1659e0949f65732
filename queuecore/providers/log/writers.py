"""The partitions one sender writes to: their writers, kept open as long as they are in use."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProviderUnavailable, UnknownTopic
from queuecore.providers.base import TopicSpec
from queuecore.providers.log.batch import NO_TRANSACTION, EncodedBody, Origin
from queuecore.providers.log.bell import Bell
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.sequences import Sequences
from queuecore.providers.log.writer import PartitionWriter
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition

# Each has a handful of descriptors, and a process often no more than 1,024 of them.
_MAX_OPEN = 64
_SPEC_AGE_S = 10.0


@dataclass(slots=True)
class _Target:
    """A partition as this producer knows it."""

    spec: TopicSpec
    known_since: float
    sequence: int = 0
    # Outlives the writer: a partition that is opened again need not be searched for what we wrote.
    sequences: Sequences | None = None


class Writers:
    """Appends as one producer: numbered batches, so that one that is tried again is not stored twice. One thread."""

    def __init__(
        self,
        root: Path,
        catalog: Catalog,
        new_producer: Callable[[], int],
        options: ProducerOptions,
        any_bell: Bell,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._root = root
        self._catalog = catalog
        self._producer = new_producer()
        self._options = options
        self._any_bell = any_bell
        self._clock = clock
        self._open: OrderedDict[ProviderPartition, PartitionWriter] = OrderedDict()
        self._targets: dict[ProviderPartition, _Target] = {}

    def spec(self, place: ProviderPartition) -> TopicSpec:
        """The topic as it was a few seconds ago. UnknownTopic where there is none."""
        return self._target(place).spec

    def append(
        self, place: ProviderPartition, body: EncodedBody, timestamp_ms: int, transaction: int = NO_TRANSACTION
    ) -> int:
        """Store the batch, trying as often as the options say, and return its first offset. ProviderUnavailable when
        the disk refuses all the same."""
        for attempt in range(self._options.retries + 1):
            try:
                return self._append(place, body, timestamp_ms, transaction)
            except UnknownTopic:
                # Deleted since we opened it, and perhaps created anew.
                self._forget(place)
                if attempt:
                    raise
            except (ProviderUnavailable, OSError) as error:
                if attempt == self._options.retries:
                    self._give_up(place)
                    raise _explained(place, error) from error
        return self._append(place, body, timestamp_ms, transaction)

    def sync(self, place: ProviderPartition, offset: int) -> None:
        try:
            self._writer(place).sync(offset)
        except OSError as error:
            raise _explained(place, error) from error

    def ring(self) -> None:
        """Wake those who wait for these partitions: what was written may be seen now."""
        for writer in self._open.values():
            writer.ring()

    def close(self) -> None:
        for writer in self._open.values():
            writer.close()
        self._open.clear()

    def _append(self, place: ProviderPartition, body: EncodedBody, timestamp_ms: int, transaction: int) -> int:
        target = self._target(place)
        origin = Origin(self._producer, 0, target.sequence, transaction)
        sync = self._options.acks == "all" and transaction == NO_TRANSACTION
        try:
            offset = self._writer(place).append(body, timestamp_ms, sync=sync, origin=origin)
        except (ProviderUnavailable, OSError):
            raise  # to be tried again as the same batch
        except BaseException:
            self._give_up(place)
            raise
        target.sequence += body.records
        return offset

    def _target(self, place: ProviderPartition) -> _Target:
        now = self._clock.monotonic()
        target = self._targets.get(place)
        if target is None:
            target = self._targets[place] = _Target(self._catalog.topic_of(place), now)
        elif now - target.known_since > _SPEC_AGE_S:
            target.spec, target.known_since = self._catalog.topic_of(place), now
            if (writer := self._open.get(place)) is not None:
                writer.segment_bytes = target.spec.segment_bytes
        return target

    def _writer(self, place: ProviderPartition) -> PartitionWriter:
        writer = self._open.get(place)
        if writer is None:
            writer = self._open[place] = self._open_writer(place)
            if len(self._open) > _MAX_OPEN:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(place)
        return writer

    def _open_writer(self, place: ProviderPartition) -> PartitionWriter:
        target = self._target(place)
        writer = PartitionWriter(self._root, place, target.spec.segment_bytes, any_bell=self._any_bell)
        try:
            # Once it is open we are told when the topic is deleted. It may have been before.
            self._catalog.topic_of(place)
        except BaseException:
            writer.close()
            raise
        if target.sequences is None:
            target.sequences = writer.sequences
            writer.sequences.is_new(self._producer)
        else:
            writer.sequences = target.sequences
        return writer

    def _give_up(self, place: ProviderPartition) -> None:
        """The batch may be stored all the same: then the next one follows it, and is not taken for it."""
        target = self._targets.get(place)
        if target is not None and target.sequences is not None:
            target.sequence = target.sequences.next_of(self._producer)

    def _forget(self, place: ProviderPartition) -> None:
        self._targets.pop(place, None)
        if (writer := self._open.pop(place, None)) is not None:
            writer.close()


def _explained(place: ProviderPartition, error: ProviderUnavailable | OSError) -> ProviderUnavailable:
    if isinstance(error, ProviderUnavailable):
        return error
    return ProviderUnavailable(f"cannot write {place}: {error}; mend the folder, then send again")
