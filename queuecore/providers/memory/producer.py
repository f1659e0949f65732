"""Sending: callers hand in, a thread of the producer's stores what has come and runs the callbacks."""

import threading
import time
import weakref
from collections.abc import Sequence
from functools import partial

from queuecore.errors import ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage
from queuecore.providers.base import SendCallback, Sending, stopped
from queuecore.providers.memory.messages import NOTHING, stored
from queuecore.providers.memory.sender import HandedIn, Sender
from queuecore.providers.memory.storage import MemoryStorage
from queuecore.providers.memory.storing import Answer, Send, Storing
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class MemoryProducer:
    """Callers do not wait for the storage's lock: the thread takes it once for all that has come meanwhile.

    When a partition is full, what has been handed in for it waits for up to `max_block_ms` and is then refused with
    PartitionFull; who sends more to it waits in `send`. Other partitions are not held up.
    """

    def __init__(self, storage: MemoryStorage, default_topic: str, options: ProducerOptions) -> None:
        self._default_topic = default_topic
        self._options = options
        self._handed_in = HandedIn()
        self._look_again = partial(self._handed_in.put, None)
        self._storing = Storing(storage, options, self._look_again)
        # Guards what follows. Held for a moment only.
        self._lock = threading.Lock()
        self._progress = threading.Condition(self._lock)
        self._stopped = False
        self._sent = 0
        self._answered = 0
        self._buffered = 0
        sender = Sender(self._handed_in, self._storing, options, weakref.WeakMethod(self._settle))
        self._thread = threading.Thread(target=sender.run, name="memory-producer", daemon=True)
        self._thread.start()
        # One that is dropped without `stop` has its thread look, and end.
        weakref.finalize(self, self._look_again).atexit = False

    @property
    def default_topic(self) -> str:
        return self._default_topic

    def send(
        self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback, patience_s: float | None = None
    ) -> None:
        send = self._checked((info, message, callback))
        place, _, size, _, _ = send
        with self._lock:
            if self._stopped or self._storing.full or self._buffered + size > self._options.buffer_memory:
                self._wait_until_it_may_send(place, size, self._options.patience_s(patience_s))
            self._sent += 1
            self._buffered += size
            self._handed_in.put([send])

    def send_many(self, sends: Sequence[Sending], patience_s: float | None = None) -> None:
        checked = list(map(self._checked, sends))
        size = sum(send[2] for send in checked)
        with self._lock:
            may = not (self._stopped or self._storing.full or self._buffered + size > self._options.buffer_memory)
            if may:
                self._sent += len(checked)
                self._buffered += size
                self._handed_in.put(checked)
        if not may:
            self._send_each(sends, patience_s)

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

    def stop_at_once(self) -> None:
        """Stop, and wait for no room: what finds none now is refused with PartitionFull."""
        self._storing.waits_for_room = False
        self.stop()

    def _checked(self, sending: Sending) -> Send:
        """As it is handed in, with what is wrong with it."""
        info, message, callback = sending
        try:
            body, size = stored(message, self._options.max_request_size)
        except QueueError as error:
            return info.place, NOTHING, 0, callback, error
        return info.place, body, size, callback, None

    def _send_each(self, sends: Sequence[Sending], patience_s: float | None) -> None:
        until = time.monotonic() + self._options.patience_s(patience_s)
        for info, message, callback in sends:
            try:
                self.send(info, message, callback, max(0.0, until - time.monotonic()))
            except QueueError as error:
                callback(None, error)

    def _wait_until_it_may_send(self, place: ProviderPartition, size: int, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
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
                raise ProviderUnavailable(f"no room for more after {patience_s * 1000:.0f} ms: {reason}")
            self._progress.wait(remaining)
        raise stopped()

    def _settle(self, answers: list[Answer]) -> bool:
        """Told by the thread what has been answered; whether it shall go on."""
        with self._lock:
            self._answered += len(answers)
            self._buffered -= sum(send[2] for send, _, _ in answers)
            self._progress.notify_all()
            return not self._stopped
