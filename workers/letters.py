"""From the dead-letter topics into the index."""

import threading
from collections.abc import Sequence

from queueapi.actions.dead_letters import index_letters
from queuecore.providers.base import Provider
from queuecore.topics import ProviderPartition, TopicPartitionInfo, dead_letter_partition

POLL_MS = 250


class LetterIndexer:
    """Reads one queue's dead-letter topic. Entered first, committed second, and entered only once: exactly once."""

    def __init__(self, partitions: Sequence[TopicPartitionInfo], provider: Provider) -> None:
        self._partitions = [dead_letter_partition(info) for info in partitions]
        self._provider = provider
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        consumer = self._provider.consumer(f"dead-letter-index-{self._partitions[0].full_topic_name}")
        try:
            consumer.subscribe(self._partitions)
            while not self._stopping.is_set():
                if records := consumer.poll(POLL_MS):
                    index_letters(records)
                    places = {ProviderPartition(r.topic, r.partition): r.offset + 1 for r in records}
                    consumer.commit(places)
        finally:
            consumer.stop()
