"""Messages to every partition of a queue, a few at a time and without an end, each with a number that rises."""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from queuecore.errors import QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.log import LogProvider
from queuecore.providers.options import Acks, ProducerOptions
from queuecore.topics import TopicPartitionInfo
from tests.reliability.kafka_load import Background


class Trickle(Background):
    """One message to each partition every `every_s`, into the log in this folder. All go on until the block ends, and
    are answered by then."""

    def __init__(
        self, folder: Path, infos: Sequence[TopicPartitionInfo], every_s: float = 0.05, acks: Acks = "all"
    ) -> None:
        super().__init__("trickle")
        self.acknowledged: set[str] = set()
        self.refusals: list[QueueError] = []
        self._infos = infos
        self._every_s = every_s
        self._provider = LogProvider(folder, ProducerOptions(acks=acks))
        self._producer = self._provider.producer()
        self._number = 0
        self._next_at = time.monotonic()

    def turn(self) -> None:
        for info in self._infos:
            data = f"{info}:{self._number}"
            self._producer.send(info, QueueMessage(None, data.encode()), partial(self._answered, data))
        self._number += 1
        self._next_at += self._every_s
        self.pause(max(0.0, self._next_at - time.monotonic()))

    def finish(self) -> None:
        self._provider.close()

    def _answered(self, data: str, _metadata: RecordMetadata | None, error: QueueError | None) -> None:
        if error is None:
            self.acknowledged.add(data)
        else:
            self.refusals.append(error)
