"""Sending: one thread writes what callers hand in, a batch per partition at a time."""

import logging
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import repeat

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import QueueError
from queuecore.messages import UNKNOWN_OFFSET, QueueMessage, RecordMetadata
from queuecore.providers.base import (
    SendCallback,
    SendFunction,
    Sending,
    SendManyFunction,
    SendObserver,
    TopicSpec,
    refuse,
    refuse_many,
)
from queuecore.providers.log.batch import EncodedBody, encode_body
from queuecore.providers.log.buffer import SendBuffer
from queuecore.providers.log.chunks import Chunk, answer, fail, tell_refused
from queuecore.providers.log.faults import encode_if_sound, find_fault
from queuecore.providers.log.writers import Writers
from queuecore.providers.options import ProducerOptions
from queuecore.topics import TopicPartitionInfo

logger = logging.getLogger(__name__)


class LogProducer:
    """One caller's way into the process's sender; all of them share its batches, and so its waits for the disk."""

    # The buffer's own `put`: one call less for every message.
    send: SendFunction
    send_many: SendManyFunction

    def __init__(self, sender: "Sender", default_topic: str, observer: SendObserver | None = None) -> None:
        self._sender = sender
        self._default_topic = default_topic
        self._observer = observer
        self.send, self.send_many = sender.buffer.put, sender.buffer.put_many
        if observer is not None:
            self.send = partial(sender.buffer.put, observer=observer)
            self.send_many = partial(sender.buffer.put_many, observer=observer)

    def observed(self, observer: SendObserver) -> "LogProducer":
        return LogProducer(self._sender, self._default_topic, observer)

    @property
    def default_topic(self) -> str:
        return self._default_topic

    def flush(self, timeout_s: float) -> bool:
        return self._sender.buffer.wait_until_answered(timeout_s)

    def stop(self) -> None:
        """What was sent is written; the sender goes on for others."""
        self.send, self.send_many = refuse, refuse_many
        if self._observer is not None:
            self.send, self.send_many = partial(_refuse, self._observer), partial(_refuse_many, self._observer)
        self._sender.wait_until_answered()


class Sender:
    """The thread that writes for every producer of the process."""

    def __init__(self, writers: Writers, options: ProducerOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._writers = writers
        self._options = options
        self._clock = clock
        self.buffer = SendBuffer(options, clock)
        self._thread = threading.Thread(target=self._run, name="log-sender", daemon=True)
        self._thread.start()

    def wait_until_answered(self) -> None:
        """However long the disk takes: what was accepted is answered. In a callback there is nothing to wait for: it
        runs on the very thread that answers."""
        if threading.current_thread() is not self._thread:
            self.buffer.wait_until_answered(threading.TIMEOUT_MAX)

    def stop(self) -> None:
        self.buffer.close()
        if threading.current_thread() is self._thread:
            return  # in a callback; the thread ends by itself when it returns
        self._thread.join()

    def _run(self) -> None:
        while chunks := self.buffer.take():
            for chunk in chunks:
                self._store(chunk)
                self.buffer.answered(chunk)
        self._writers.close()

    def _store(self, chunk: Chunk) -> None:
        sound = chunk
        try:
            spec = self._writers.spec(chunk.place)
            body = encode_if_sound(chunk.messages, spec, self._options)
            if body is None:
                sound = self._sound(chunk, spec)
                body = encode_body(sound.messages, self._options.compression) if sound.messages else None
            if body is not None:
                self._append(sound, body)
        except QueueError as error:
            fail(sound, error)
        except Exception as error:  # an error of ours must not stop the thread that serves every caller
            logger.exception("cannot write %s; %d messages were refused", chunk.place, len(sound.messages))
            what = f"cannot write {chunk.place}: {error!r}; the log has the details"
            fail(sound, QueueError(what))

    def _append(self, chunk: Chunk, body: EncodedBody) -> None:
        now_ms = self._clock.now_ms()
        if self._options.acks != "0":
            base = self._writers.append(chunk.place, body, now_ms)
            self._answer(chunk, range(base, base + len(chunk.messages)), now_ms)
            return
        self._answer(chunk, repeat(UNKNOWN_OFFSET), now_ms)
        try:
            self._writers.append(chunk.place, body, now_ms)
        except Exception as error:
            count = len(chunk.messages)
            logger.error("%d messages that were sent with acks=0 to %s are lost: %s", count, chunk.place, error)

    def _sound(self, chunk: Chunk, spec: TopicSpec) -> Chunk:
        """What can be stored of the chunk. The rest is answered with its own error."""
        faults = [find_fault(message, spec, self._options) for message in chunk.messages]
        for number, fault in enumerate(faults):
            if fault is not None:
                fail(chunk.part(number, number + 1), fault)
        return chunk.only([fault is None for fault in faults])

    def _answer(self, chunk: Chunk, offsets: Iterable[int], now_ms: int) -> None:
        columns = zip(repeat(chunk.place.topic), repeat(chunk.place.partition), offsets, repeat(now_ms))
        answer(chunk, map(tuple.__new__, repeat(RecordMetadata), columns))


def _refuse(
    observer: SendObserver,
    info: TopicPartitionInfo,
    message: QueueMessage,
    callback: SendCallback,
    patience_s: float | None = None,
) -> None:
    """`send` of one that has been stopped: what it refuses is told as well."""
    tell_refused(observer, info.place, (message,))
    refuse(info, message, callback, patience_s)


def _refuse_many(observer: SendObserver, sends: Sequence[Sending], patience_s: float | None = None) -> None:
    for info, message, _callback in sends:
        tell_refused(observer, info.place, (message,))
    refuse_many(sends, patience_s)
