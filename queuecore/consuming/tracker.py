"""How far a partition is done, whatever the order in which its messages are."""

from collections import deque
from collections.abc import Container, Iterable
from itertools import islice


class OffsetTracker:
    """One partition in one epoch: from when it was given to this consumer until it is taken away. For one thread.

    Every message that was given out completes here, however it ended, and only `watermark` is ever committed: the
    offset behind the last message of which all before it are complete. Offsets that were never given out are not waited
    for: compaction and aborted transactions leave gaps.
    """

    def __init__(self, epoch: int = 0) -> None:
        self.epoch = epoch
        # Given out and not below the watermark, in order.
        self._given: deque[int] = deque()
        # Of these, what is complete: never the first of them.
        self._complete: set[int] = set()
        self._watermark: int | None = None

    @property
    def watermark(self) -> int | None:
        """The offset to commit; None while nothing is complete from the first message on."""
        return self._watermark

    @property
    def open(self) -> int:
        """How many messages a crash now would bring again: given out, and not below the watermark."""
        return len(self._given)

    def give(self, offsets: Iterable[int]) -> None:
        """These go to handlers, each above all before."""
        self._given.extend(offsets)

    def complete(self, offsets: list[int]) -> None:
        """These are done, skipped or dead-lettered. One that was not given out, or is complete, changes nothing."""
        given, complete = self._given, self._complete
        if len(offsets) <= len(given) and not complete and list(islice(given, len(offsets))) == offsets:
            # As it is nearly always: all from the first on, in order.
            self._given = deque(islice(given, len(offsets), None))
            self._watermark = offsets[-1] + 1 if offsets else self._watermark
            return
        for offset in offsets:
            if given and offset == given[0]:
                given.popleft()
                self._watermark = offset + 1
                while given and given[0] in complete:
                    below = given.popleft()
                    complete.remove(below)
                    self._watermark = below + 1
            elif given and given[0] < offset <= given[-1]:
                complete.add(offset)

    def ready(self, finished: Container[int]) -> list[int]:
        """Those from the first on that would be below the watermark if these were complete."""
        ready = []
        for offset in self._given:
            if offset not in self._complete and offset not in finished:
                break
            ready.append(offset)
        return ready
