"""Recognising a producer's batch that is sent again."""

from collections import deque
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from queuecore.errors import OutOfSequence, ProducerFenced
from queuecore.providers.log.batch import NO_PRODUCER, BatchHeader, Origin
from queuecore.providers.log.files import segment_bases
from queuecore.providers.log.segment import Segment

# As many as Kafka remembers: a producer has no more batches than that on the way.
_REMEMBERED = 5


class Stored(NamedTuple):
    epoch: int
    sequence: int
    records: int
    base_offset: int


class Sequences:
    """The last batches of each producer in one partition. For the holder of the partition's append lock.

    The log itself says what is stored. It is searched only for a producer that is not known to be new here.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[int, deque[Stored]] = {}

    def is_new(self, producer: int) -> None:
        """This producer has never written before, anywhere."""
        self._known.setdefault(producer, deque(maxlen=_REMEMBERED))

    def next_of(self, producer: int) -> int:
        """The sequence that follows the producer's last batch here."""
        batches = self._batches(producer)
        return batches[-1].sequence + batches[-1].records if batches else 0

    def find(self, origin: Origin, count: int) -> int | None:
        """The offset of this very batch if it is stored already; None if it is the producer's next one."""
        if origin.producer == NO_PRODUCER:
            return None
        batches = self._batches(origin.producer)
        last = batches[-1] if batches else None
        if last is None or origin.epoch > last.epoch:
            return None  # what came before may have been removed by retention
        if origin.epoch < last.epoch:
            raise ProducerFenced(
                f"producer {origin.producer} writes with epoch {origin.epoch}, but epoch {last.epoch} was here; stop it"
            )
        if origin.sequence == last.sequence + last.records:
            return None
        for batch in batches:
            if (batch.epoch, batch.sequence, batch.records) == (origin.epoch, origin.sequence, count):
                return batch.base_offset
        raise OutOfSequence(
            f"producer {origin.producer} sent sequence {origin.sequence}, expected {last.sequence + last.records}; "
            "a batch before it was given up: begin with a new producer",
            expected=last.sequence + last.records,
        )

    def stored(self, header: BatchHeader) -> None:
        if header.producer != NO_PRODUCER:
            self._batches(header.producer).append(_stored(header))

    def _batches(self, producer: int) -> deque[Stored]:
        known = self._known.get(producer)
        if known is None:
            known = self._known[producer] = self._search(producer)
        return known

    def _search(self, producer: int) -> deque[Stored]:
        found: deque[Stored] = deque(maxlen=_REMEMBERED)
        for base in segment_bases(self._directory):
            # One that retention removes meanwhile held nothing that a producer would send again.
            with suppress(FileNotFoundError), closing(Segment(self._directory, base)) as segment:
                found.extend(_stored(header) for _, header in segment.headers() if header.producer == producer)
        return found


def _stored(header: BatchHeader) -> Stored:
    return Stored(header.epoch, header.sequence, header.records, header.base_offset)
