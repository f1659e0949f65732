"""From the dead-letter topics into the index."""

import threading
from contextlib import closing

from queueapi.actions.letter_index import index_letters
from queuecore.providers.base import Provider
from queuecore.topics import ProviderPartition, TopicPartitionInfo

POLL_MS = 250
# What is entered in one transaction: nobody else who writes to an embedded database waits for long.
MAX_LETTERS = 2_000


class LetterIndexer:
    """Reads one dead-letter topic. Entered first, committed second, and entered only once: exactly once."""

    def __init__(self, topic: str, partitions: int, provider: Provider) -> None:
        self._topic = topic
        self._partitions = [
            TopicPartitionInfo(topic, number, use_internal_partition=True) for number in range(partitions)
        ]
        self._provider = provider
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        consumer = self._provider.consumer(f"dead-letter-index-{self._topic}", max_poll_records=MAX_LETTERS)
        try:
            with closing(self._provider.reader()) as reader:
                consumer.subscribe(self._partitions)
                while not self._stopping.is_set():
                    if records := consumer.poll(POLL_MS):
                        index_letters(records, reader)
                        consumer.commit({ProviderPartition(r.topic, r.partition): r.offset + 1 for r in records})
        finally:
            consumer.stop()
