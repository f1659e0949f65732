"""Sending many messages, and waiting for every answer."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from queuecore.errors import QueueError
from queuecore.messages import RecordMetadata
from queuecore.providers.base import QueueProducer
from queuecore.sending import Addressed

_LOOK_AGAIN_S: Final = 1.0
# How many messages are sent between two looks whether to go on.
_LOOK_EVERY: Final = 100


def send_all(
    producer: QueueProducer, outgoing: Sequence[Addressed], meanwhile: Callable[[], None]
) -> dict[int, QueueError]:
    """Send these in order and wait until each has its answer, however long that takes: the errors, by place in the
    sequence. Ends at the first that the producer does not take, so that none overtakes it. `meanwhile` is called now
    and then, from the beginning, and what it raises ends the sending and the waiting."""
    answers = _Answers(len(outgoing))
    for number, (info, message) in enumerate(outgoing):
        if number % _LOOK_EVERY == 0:
            meanwhile()
        try:
            producer.send(info, message, partial(answers.take, number))
        except QueueError as error:
            for untaken in range(number, len(outgoing)):
                answers.take(untaken, None, error)
            break
    while not answers.are_complete(_LOOK_AGAIN_S):
        meanwhile()
    return answers.errors


class _Answers:
    """What the producer's threads answer."""

    def __init__(self, expected: int) -> None:
        self.errors: dict[int, QueueError] = {}
        self._left = expected
        self._lock = threading.Lock()
        self._complete = threading.Event()
        if not expected:
            self._complete.set()

    def take(self, number: int, metadata: RecordMetadata | None, error: QueueError | None) -> None:
        if metadata is None:
            self.errors[number] = error or QueueError("the provider gave neither metadata nor an error")
        with self._lock:
            self._left -= 1
            if not self._left:
                self._complete.set()

    def are_complete(self, timeout_s: float) -> bool:
        return self._complete.wait(timeout_s)
