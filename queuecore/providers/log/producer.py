"""Sending: one thread gathers what callers hand in and writes it partition by partition."""

import logging
import queue
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import PayloadTooLarge, ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import SendCallback, TopicSpec
from queuecore.providers.log.batch import encoded_size
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition, TopicPartitionInfo

logger = logging.getLogger(__name__)

Acks = Literal["1", "all"]
MAX_REQUEST_BYTES = 1024 * 1024
MAX_BUFFERED = 10_000
_GATHER = 2_000
_MAX_WAIT_S = 60


@dataclass(frozen=True, slots=True)
class _Send:
    partition: ProviderPartition
    message: QueueMessage
    callback: SendCallback


class LogProducer:
    """Callers from any thread share batches, and so share one fsync."""

    def __init__(
        self,
        root: Path,
        find_topic: Callable[[ProviderPartition], TopicSpec],
        acks: Acks = "all",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._root = root
        self._find_topic = find_topic
        self._sync = acks == "all"
        self._clock = clock
        self._topics: dict[ProviderPartition, TopicSpec] = {}
        self._writers: dict[ProviderPartition, PartitionWriter] = {}
        self._pending: queue.Queue[_Send | threading.Event | None] = queue.Queue(MAX_BUFFERED)
        self._stopped = False
        self._accepting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="log-producer", daemon=True)
        self._thread.start()

    def send(self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback) -> None:
        # Under the lock, so that nothing gets behind the mark with which `stop` ends the thread.
        with self._accepting:
            if self._stopped:
                raise ProviderUnavailable("this producer has been stopped; open a new one")
            try:
                self._pending.put(_Send(info.place, message, callback), timeout=_MAX_WAIT_S)
            except queue.Full:
                raise ProviderUnavailable(
                    f"{MAX_BUFFERED} messages wait to be written and none was for {_MAX_WAIT_S} s; look at the disk"
                ) from None

    def flush(self, timeout_s: float) -> bool:
        reached = threading.Event()
        with self._accepting:
            if self._stopped:
                return True
            try:
                self._pending.put(reached, timeout=timeout_s)
            except queue.Full:
                return False
        return reached.wait(timeout_s)

    def stop(self) -> None:
        with self._accepting:
            if self._stopped:
                return
            self._stopped = True
            self._pending.put(None)
        self._thread.join()
        for writer in self._writers.values():
            writer.close()

    def _run(self) -> None:
        running = True
        while running:
            sends, marks, running = self._gather()
            grouped: dict[ProviderPartition, list[_Send]] = defaultdict(list)
            for send in sends:
                grouped[send.partition].append(send)
            for partition, batch in grouped.items():
                self._store(partition, batch)
            for mark in marks:
                mark.set()

    def _gather(self) -> tuple[list[_Send], list[threading.Event], bool]:
        """What is waiting, up to a batch; blocks for the first. The third value says whether to go on."""
        sends: list[_Send] = []
        marks: list[threading.Event] = []
        item = self._pending.get()
        while item is not None:
            if isinstance(item, _Send):
                sends.append(item)
            else:
                marks.append(item)
            if len(sends) >= _GATHER or self._pending.empty():
                return sends, marks, True
            item = self._pending.get()
        return sends, marks, False

    def _store(self, partition: ProviderPartition, sends: Sequence[_Send]) -> None:
        fitting = [send for send in sends if self._fits(send)]
        if not fitting:
            return
        try:
            topic = self._topic(partition)
            now_ms = self._clock.now_ms()
            base = self._writer(partition).append(
                [send.message for send in fitting], now_ms, sync=self._sync, retention_ms=topic.retention_ms
            )
        except QueueError as error:
            self._fail(fitting, error)
        except OSError as error:
            self._fail(
                fitting,
                ProviderUnavailable(f"cannot write {partition}: {error}; mend the folder, send again"),
            )
        except Exception as error:  # an error of ours must not stop the thread that serves every caller
            logger.exception("cannot write %s; %d messages were refused", partition, len(fitting))
            self._fail(fitting, QueueError(f"cannot write {partition}: {error!r}; the log has the details"))
        else:
            for index, send in enumerate(fitting):
                metadata = RecordMetadata(partition.topic, partition.partition, base + index, now_ms)
                _call(send.callback, metadata, None)

    def _fits(self, send: _Send) -> bool:
        try:
            size = encoded_size(send.message)
        except (struct.error, TypeError, ValueError) as error:
            reason = f"the message cannot be encoded: {error}; mend its key, headers or data"
            _call(send.callback, None, QueueError(reason))
            return False
        if size <= MAX_REQUEST_BYTES:
            return True
        reason = f"the message has {size} bytes with key and headers; {MAX_REQUEST_BYTES} is the most"
        _call(send.callback, None, PayloadTooLarge(reason, size=size, limit=MAX_REQUEST_BYTES))
        return False

    def _topic(self, partition: ProviderPartition) -> TopicSpec:
        known = self._topics.get(partition)
        if known is None:
            known = self._topics[partition] = self._find_topic(partition)
        return known

    def _writer(self, partition: ProviderPartition) -> PartitionWriter:
        writer = self._writers.get(partition)
        if writer is None:
            writer = self._writers[partition] = PartitionWriter(self._root, partition)
        return writer

    def _fail(self, sends: Sequence[_Send], error: QueueError) -> None:
        for send in sends:
            _call(send.callback, None, error)


def _call(callback: SendCallback, metadata: RecordMetadata | None, error: QueueError | None) -> None:
    """A caller's bug must not stop the thread that serves every caller."""
    try:
        callback(metadata, error)
    except Exception:
        logger.exception("a send callback raised; its message was %s", "stored" if metadata else "refused")
