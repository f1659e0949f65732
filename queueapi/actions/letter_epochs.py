"""Letters of consumers that had lost their partition: whoever has it since gets the message again, and writes the
letter if it fails there too."""

import logging
from collections.abc import Iterable

from queueapi.models import LetterEpoch
from queuecore.messages import Record

logger = logging.getLogger(__name__)

Source = tuple[str, int]


class EpochGate:
    """Lets through letters in the order they were written, each with an epoch not below those before. In the
    transaction that enters them."""

    def __init__(self, sources: Iterable[Source]) -> None:
        wanted = set(sources)
        rows = LetterEpoch.objects.select_for_update().filter(topic__in={topic for topic, _ in wanted})
        self._known = {(row.topic, row.partition): row for row in rows.order_by("topic", "partition")}
        self._changed: dict[Source, LetterEpoch] = {}

    def admits(self, source: Source, epoch: int, record: Record) -> bool:
        """False, and counted, for one of an older epoch."""
        row = self._known.get(source)
        if row is None:
            row = self._known[source] = LetterEpoch(topic=source[0], partition=source[1], epoch=epoch)
        if epoch < row.epoch:
            row.refused += 1
            logger.warning(
                "the letter at %s[%d]@%d is refused: it came with epoch %d after one with %d, from a consumer that had "
                "lost its partition; whoever has that since gets the message again",
                record.topic,
                record.partition,
                record.offset,
                epoch,
                row.epoch,
            )
        row.epoch = max(row.epoch, epoch)
        self._changed[source] = row
        return epoch == row.epoch

    def save(self) -> None:
        for row in self._changed.values():
            row.save()
