"""Which dead-letter topics are read into the index."""

import logging
from collections.abc import Collection
from uuid import UUID

from queueapi import runtime
from queueapi.models import Queue
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import QueueError
from queuecore.topics import dead_letter_partition
from workers.backoff import BackOff
from workers.hosted import Hosted
from workers.letters import INDEX_GROUP, LetterIndexer

logger = logging.getLogger(__name__)


class LetterIndexing:
    """One indexer for each topic that queues write letters to, or once wrote to: what is in those belongs into the
    index as well. For the host's thread, but for `stop` and `indexers`."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._indexers: dict[str, Hosted] = {}
        # Of the queues that there were at the last look.
        self._known: dict[UUID, str] = {}
        # Topics from before this start are looked for until the provider has answered once: later ones are known.
        self._has_looked_back = False
        self._backoff = BackOff(clock)

    @property
    def indexers(self) -> list[Hosted]:
        return list(self._indexers.values())

    def want(self, queues: Collection[Queue]) -> None:
        """Read the letters of these queues, and those they once had."""
        topics = {queue.letter_topic for queue in queues}
        if not self._has_looked_back and self._backoff.is_over:
            topics |= self._former(queues)
        self._leave(queues)
        for topic in topics - self._indexers.keys():
            self._indexers[topic] = Hosted(f"letters in {topic}", LetterIndexer(topic, runtime.provider()))

    def _leave(self, queues: Collection[Queue]) -> None:
        """Topics of queues that were deleted are gone with them."""
        now = {queue.id: queue.letter_topic for queue in queues}
        gone = {topic for queue_id, topic in self._known.items() if queue_id not in now} - set(now.values())
        for topic in gone & self._indexers.keys():
            self._indexers.pop(topic).stop()
        self._known = now

    def stop(self) -> None:
        for indexer in self.indexers:
            indexer.stop()

    def _former(self, queues: Collection[Queue]) -> set[str]:
        """Topics that are there, and that somebody read into the index or a queue would write to by default."""
        try:
            admin = runtime.provider().admin()
            there, groups = admin.topics().keys(), admin.groups()
        except QueueError as error:
            pause_s = self._backoff.failed()
            logger.warning("looks for former dead-letter topics again in %g s: %s", pause_s, error)
            return set()
        self._has_looked_back = True
        read = {name.removeprefix(INDEX_GROUP) for name in groups if name.startswith(INDEX_GROUP)}
        default = {dead_letter_partition(queue.partition_info(0)).full_topic_name for queue in queues}
        in_use = {name for queue in queues for name in (*queue.topic_names(), *queue.state_topic_names())}
        return (there & (read | default)) - in_use
