"""Messages that are written together, and who is told what became of them."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import NamedTuple

from queuecore.errors import QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import SendCallback, SendObserver
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

NOT_MEASURED = 0


class Chunk(NamedTuple):
    """Messages for one partition, to be written as one batch."""

    place: ProviderPartition
    messages: Sequence[QueueMessage]
    callbacks: Sequence[SendCallback]
    # Of each message who else is told of it, if anybody.
    observers: Sequence[SendObserver | None]
    # What the buffer has less when they are answered.
    measured_bytes: int

    def part(self, start: int, stop: int) -> "Chunk":
        """Of which the buffer is told nothing."""
        return Chunk(
            self.place, self.messages[start:stop], self.callbacks[start:stop], self.observers[start:stop], NOT_MEASURED
        )

    def only(self, wanted: Sequence[bool]) -> "Chunk":
        """Likewise."""
        messages, callbacks = list(compress(self.messages, wanted)), list(compress(self.callbacks, wanted))
        return Chunk(self.place, messages, callbacks, list(compress(self.observers, wanted)), NOT_MEASURED)


# A bug of whoever is told costs nobody else an answer, and does not stop the thread that serves every caller.


def answer(chunk: Chunk, answers: Iterable[RecordMetadata]) -> None:
    """It was stored."""
    for observer, messages in _by_observer(chunk):
        try:
            observer.stored(chunk.place, messages)
        except Exception:
            logger.exception("who observes what is sent to %s raised", chunk.place)
    for callback, metadata in zip(chunk.callbacks, answers, strict=False):
        try:
            callback(metadata, None)
        except BaseException:
            logger.exception("a send callback raised; its message was stored")


def fail(chunk: Chunk, error: QueueError) -> None:
    """It was not."""
    for observer, messages in _by_observer(chunk):
        tell_refused(observer, chunk.place, messages)
    for callback in chunk.callbacks:
        call_back(callback, error)


def call_back(callback: SendCallback, error: QueueError) -> None:
    try:
        callback(None, error)
    except BaseException:
        logger.exception("a send callback raised; its message was refused")


def tell_refused(observer: SendObserver | None, place: ProviderPartition, messages: Sequence[QueueMessage]) -> None:
    """The observer alone: who sent them is told by the error."""
    try:
        if observer is not None:
            observer.refused(place, messages)
    except Exception:
        logger.exception("who observes what is sent to %s raised", place)


def _by_observer(chunk: Chunk) -> Iterator[tuple[SendObserver, Sequence[QueueMessage]]]:
    """Mostly one has all of them."""
    different = set(chunk.observers)
    for observer in different:
        if observer is not None and len(different) == 1:
            yield observer, chunk.messages
        elif observer is not None:
            yield observer, list(compress(chunk.messages, [one is observer for one in chunk.observers]))
