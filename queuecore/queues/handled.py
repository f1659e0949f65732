"""What a handler is done with, until it is settled."""

from collections.abc import Collection
from dataclasses import dataclass

from queuecore.messages import Record
from queuecore.queues.counting import Outcome
from queuecore.queues.places import are_together, place_of
from queuecore.sending import Addressed
from queuecore.topics import ProviderPartition


@dataclass(slots=True)
class Handled:
    """A message its handler is done with, and what has to be stored before it counts as done: what the handler sent,
    or the letter that it became. Where there is nothing to store it may stand for several of one partition, of which
    `record` is the last."""

    record: Record
    outgoing: tuple[Addressed, ...] = ()
    attempts: int = 1
    outcome: Outcome = "handled"
    count: int = 1

    @property
    def is_letter(self) -> bool:
        return self.outcome == "dead_lettered"


class Tray:
    """What was handled since the last time, in order. For one thread at a time.

    Of most messages nothing has to be stored: those that follow each other are one entry, and are let go at once. Kept
    until their pack is settled, they would be what the garbage collector is busy with.
    """

    def __init__(self) -> None:
        self._entries: list[Handled] = []
        # The last entry, if it can stand for more.
        self._run: Handled | None = None

    def add_plain(self, record: Record) -> None:
        """Handled, and nothing to store."""
        run = self._run
        if run is not None and are_together(run.record, record):
            run.record = record
            run.count += 1
        else:
            self._run = Handled(record)
            self._entries.append(self._run)

    def add(self, handled: Handled) -> None:
        self._entries.append(handled)
        self._run = None

    def take(self) -> list[Handled]:
        entries, self._entries, self._run = self._entries, [], None
        return entries

    def forget(self, places: Collection[ProviderPartition] | None) -> None:
        """What is of these partitions, or all."""
        self._entries = [one for one in self._entries if not is_of(one.record, places)]
        self._run = None


def is_of(record: Record, places: Collection[ProviderPartition] | None) -> bool:
    return places is None or place_of(record) in places
