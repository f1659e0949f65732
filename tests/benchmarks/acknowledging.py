"""Sending through one of our producers, to the last acknowledgement."""

from collections.abc import Sequence
from typing import Final

from queuecore.errors import QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import QueueProducer
from queuecore.topics import TopicPartitionInfo
from tests.benchmarks.workload import check_count

_FLUSH_TIMEOUT_S: Final = 600


def send_and_count(producer: QueueProducer, info: TopicPartitionInfo, sent: Sequence[QueueMessage]) -> None:
    acknowledgements = _Acknowledgements()
    for message in sent:
        producer.send(info, message, acknowledgements.take)
    producer.flush(_FLUSH_TIMEOUT_S)
    acknowledgements.check(len(sent))


class _Acknowledgements:
    """Counts callbacks, which all come from the producer's one thread."""

    def __init__(self) -> None:
        self._count = 0
        self._error: QueueError | None = None

    def take(self, _metadata: RecordMetadata | None, error: QueueError | None) -> None:
        self._count += 1
        if error is not None:
            self._error = error

    def check(self, expected: int) -> None:
        if self._error is not None:
            raise self._error
        check_count("acknowledgements", self._count, expected)
