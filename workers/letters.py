"""From the dead-letter topics into the index."""

import threading
from contextlib import closing
from typing import Final

from queueapi.actions.letter_index import index_letters
from queuecore.providers.base import Provider, QueueConsumer
from queuecore.topics import ProviderPartition

POLL_MS = 250
# What is entered in one transaction: nobody else who writes to an embedded database waits for long.
MAX_LETTERS = 2_000
# With the topic behind it, the group that enters a topic's letters.
INDEX_GROUP: Final = "dead-letter-index-"


class LetterIndexer:
    """Reads one dead-letter topic, however many partitions it has or gets. Entered first, committed second, and entered
    only once: exactly once."""

    def __init__(self, topic: str, provider: Provider) -> None:
        self._topic = topic
        self._group = f"{INDEX_GROUP}{topic}"
        self._provider = provider
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        consumer = self._provider.consumer(self._group, self._topic, max_poll_records=MAX_LETTERS)
        is_known = False
        try:
            with closing(self._provider.reader()) as reader:
                consumer.subscribe()
                while not self._stopping.is_set():
                    records = consumer.poll(POLL_MS)
                    is_known = is_known or self._make_known(consumer)
                    if records:
                        index_letters(records, reader)
                        consumer.commit({ProviderPartition(r.topic, r.partition): r.offset + 1 for r in records})
        finally:
            consumer.stop()

    def _make_known(self, consumer: QueueConsumer) -> bool:
        """Commit something even where no letter was read yet: by its group the topic is found again when no queue
        writes to it any more. False while there is nothing to commit."""
        if not (held := consumer.partitions):
            return False
        admin = self._provider.admin()
        if not admin.committed_offsets({self._group: held})[self._group]:
            consumer.commit(admin.beginning_offsets(held))
        return True
