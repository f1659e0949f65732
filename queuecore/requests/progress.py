"""How far the requests of each partition are done, and what of that is committed."""

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Iterable

from queuecore.consuming.tracker import OffsetTracker
from queuecore.errors import NotOwner
from queuecore.providers.base import QueueConsumer
from queuecore.requests.request import Outcome, Request
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

Done = tuple[OffsetTracker, int, Outcome]


class Progress:
    """A responder's partitions, for the thread that reads; but requests end on any thread, with `end`.

    A partition that comes back has a new tracker: what was begun before it went counts for nothing then.
    """

    def __init__(self) -> None:
        self.trackers: dict[ProviderPartition, OffsetTracker] = {}
        self.outcomes: Counter[Outcome] = Counter()
        # How many were taken in and have not ended.
        self.pending = 0
        self._ended: deque[Request] = deque()
        self._committed: dict[ProviderPartition, int] = {}

    def end(self, request: Request) -> None:
        """It needs nothing more. From any thread."""
        self._ended.append(request)

    def take(self, requests: int, done: Iterable[Done]) -> None:
        """So many requests were taken in, and these records are no requests any more."""
        self.pending += requests
        self._complete(done)

    def settle(self) -> None:
        """Count what has ended since."""
        ended = self._ended
        number = len(ended)
        if number:
            self.pending -= number
            requests = [ended.popleft() for _ in range(number)]
            self._complete((one.tracker, one.record.offset, one.outcome) for one in requests)

    def give(self, partitions: Iterable[ProviderPartition]) -> None:
        self.trackers.update({place: OffsetTracker() for place in partitions})

    def forget(self, partitions: Iterable[ProviderPartition]) -> None:
        for place in partitions:
            self.trackers.pop(place, None)
            self._committed.pop(place, None)

    def is_open(self, partitions: Iterable[ProviderPartition]) -> bool:
        """Whether requests of these have not ended."""
        return any(self.trackers[place].open for place in partitions if place in self.trackers)

    def commit(self, consumer: QueueConsumer, partitions: Iterable[ProviderPartition] | None = None) -> None:
        """Whatever is done of these, by default of all."""
        places = self.trackers if partitions is None else partitions
        marks = {place: self.trackers[place].watermark for place in places if place in self.trackers}
        offsets = {
            place: mark for place, mark in marks.items() if mark is not None and mark != self._committed.get(place)
        }
        if not offsets:
            return
        try:
            consumer.commit(offsets)
        except NotOwner as error:
            logger.info("requests that were answered here will be read by another responder as well: %s", error)
        else:
            self._committed.update(offsets)

    def _complete(self, done: Iterable[Done]) -> None:
        offsets: defaultdict[OffsetTracker, list[int]] = defaultdict(list)
        outcomes = self.outcomes
        for tracker, offset, outcome in done:
            offsets[tracker].append(offset)
            outcomes[outcome] += 1
        for tracker, some in offsets.items():
            some.sort()
            tracker.complete(some)
