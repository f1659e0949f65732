"""Sending: callers hand in, a thread of the producer's stores what has come and runs the callbacks."""

import logging
import queue
import threading
import time
from collections.abc import Iterable

from queuecore.errors import ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage
from queuecore.providers.base import SendCallback
from queuecore.providers.memory.messages import NOTHING, stored
from queuecore.providers.memory.storage import MemoryStorage
from queuecore.providers.memory.storing import Send, Storing
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo

logger = logging.getLogger(__name__)


class MemoryProducer:
    """Callers do not wait for the storage's lock: the thread takes it once for all that has come meanwhile.

    When a partition is full, what has been handed in for it waits for up to `max_block_ms` and is then refused with
    PartitionFull; who sends more to it waits in `send`. Other partitions are not held up.
    """

    def __init__(self, storage: MemoryStorage, default_topic: str, options: ProducerOptions) -> None:
        self._default_topic = default_topic
        self._options = options
        # None has the thread look again at what waits.
        self._handed_in: queue.SimpleQueue[Send | None] = queue.SimpleQueue()
        self._storing = Storing(storage, options, self._look_again)
        # Guards what follows. Held for a moment only.
        self._lock = threading.Lock()
        self._progress = threading.Condition(self._lock)
        self._stopped = False
        self._sent = 0
        self._answered = 0
        self._buffered = 0
        self._thread = threading.Thread(target=self._run, name="memory-producer", daemon=True)
        self._thread.start()

    @property
    def default_topic(self) -> str:
        return self._default_topic

    def send(self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback) -> None:
        place = info.place
        body, size, refused = NOTHING, 0, None
        try:
            body, size = stored(message, self._options.max_request_size)
        except QueueError as error:
            refused = error
        with self._lock:
            if self._stopped or self._storing.full or self._buffered + size > self._options.buffer_memory:
                self._wait_until_it_may_send(place, size)
            self._sent += 1
            self._buffered += size
            self._handed_in.put((place, body, size, callback, refused))

    def flush(self, timeout_s: float) -> bool:
        with self._lock:
            sent = self._sent
            self._look_again()
            return self._progress.wait_for(lambda: self._answered >= sent, timeout_s)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._look_again()
            self._progress.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _wait_until_it_may_send(self, place: ProviderPartition, size: int) -> None:
        deadline = time.monotonic() + self._options.max_block_ms / 1000
        # What is too old by now makes room without anybody saying so.
        self._look_again()
        while not self._stopped:
            if place in self._storing.full:
                reason = f"{place} is full; look at its consumers"
            elif self._buffered + size > self._options.buffer_memory:
                reason = f"{self._buffered} bytes wait to be stored and answered"
            else:
                return
            remaining = deadline - time.monotonic()
            # The thread that makes progress must not wait for itself.
            if remaining <= 0 or threading.current_thread() is self._thread:
                raise ProviderUnavailable(f"no room for more after {self._options.max_block_ms} ms: {reason}")
            self._progress.wait(remaining)
        raise ProviderUnavailable("this producer has been stopped; open a new one")

    def _look_again(self) -> None:
        self._handed_in.put(None)

    # From here on: the producer's thread.

    def _run(self) -> None:
        while self._handed_in.qsize() or self._storing.waits or not self._stopped:
            answers = self._storing.store(self._gather())
            for (_, _, _, callback, _), metadata, error in answers:
                try:
                    callback(metadata, error)
                except Exception:
                    logger.exception("a send callback raised; its message was %s", "stored" if metadata else "refused")
            with self._lock:
                self._answered += len(answers)
                self._buffered -= sum(send[2] for send, _, _ in answers)
                self._progress.notify_all()

    def _gather(self) -> list[Send | None]:
        """What was handed in, waiting for some; empty when something has waited for long enough."""
        taken = self._take(self._storing.patience_s())
        if self._options.linger_ms and taken and None not in taken:
            taken += self._linger(taken)
        return taken

    def _take(self, timeout: float | None) -> list[Send | None]:
        """What is there, waiting for the first."""
        try:
            first = self._handed_in.get(timeout=timeout)
        except queue.Empty:
            return []
        return [first, *(self._handed_in.get() for _ in range(self._handed_in.qsize()))]

    def _linger(self, taken: Iterable[Send | None]) -> list[Send | None]:
        """What comes within `linger_ms`, or until it is a batch or somebody cannot wait."""
        deadline = time.monotonic() + self._options.linger_ms / 1000
        size = sum(send[2] for send in taken if send is not None)
        more: list[Send | None] = []
        while size < self._options.batch_size and (remaining := deadline - time.monotonic()) > 0:
            came = self._take(remaining)
            more += came
            size += sum(send[2] for send in came if send is not None)
            if None in came:
                break
        return more
