"""What the consumers and producers of one process do, partition by partition."""

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import QueueError
from queuecore.messages import QueueMessage
from queuecore.metrics import METRICS_TOPIC
from queuecore.metrics.consumed import UNRECORDED, ConsumedRecorder, PartitionRecorder
from queuecore.metrics.samples import Sample
from queuecore.metrics.sent import SentRecorder
from queuecore.providers.base import ObservableProducer, QueueProducer, SendCallback, Sending
from queuecore.sending import Addressed
from queuecore.topics import ProviderPartition, TopicPartitionInfo, with_prefix

# Partitions of which nothing has been heard for so long are forgotten, where nobody has them.
_FORGET_S: Final = 600.0
# So many partitions Prometheus is shown one by one; those beyond are shown together, by their queues.
MOST_PARTITIONS: Final = 1_000


class Recording(Protocol):
    """What a consumption tells of itself. Safe from any thread."""

    def partition(self, queue: str, queue_id: str, group: str, info: TopicPartitionInfo) -> ConsumedRecorder:
        """Whom to tell of this partition, until `release`."""

    def counted(self, producer: QueueProducer) -> QueueProducer:
        """The same producer, with what it sends counted."""

    def stored(self, sent: Iterable[Addressed]) -> None:
        """These were stored, in a transaction."""


class NoRecording:
    """Nobody wants to know."""

    def partition(self, queue: str, queue_id: str, group: str, info: TopicPartitionInfo) -> ConsumedRecorder:  # noqa: ARG002
        return UNRECORDED

    def counted(self, producer: QueueProducer) -> QueueProducer:
        return producer

    def stored(self, sent: Iterable[Addressed]) -> None: ...


class Recorder:
    """One instance's. A partition keeps its counts when it is given away and comes back. What happens to the topic
    of the events themselves is not recorded: there would be no end to it."""

    def __init__(self, service_id: str, *, prefix: str = "", clock: Clock = SYSTEM_CLOCK) -> None:
        self.service_id = service_id
        self._metrics_topic = with_prefix(prefix, METRICS_TOPIC)
        self._lock = threading.Lock()
        self._consumed: dict[tuple[str, str, ProviderPartition], PartitionRecorder] = {}
        self._sent: dict[ProviderPartition, SentRecorder] = {}
        # Forgotten when it was looked last: what was under way then is still told.
        self._leaving: list[PartitionRecorder | SentRecorder] = []
        self._looked_at = clock.monotonic()

    @property
    def consumed(self) -> Collection[PartitionRecorder]:
        with self._lock:
            return list(self._consumed.values())

    @property
    def sent(self) -> Collection[SentRecorder]:
        with self._lock:
            return list(self._sent.values())

    def partition(self, queue: str, queue_id: str, group: str, info: TopicPartitionInfo) -> ConsumedRecorder:
        if info.place.topic == self._metrics_topic:
            return UNRECORDED
        key = (queue_id, group, info.place)
        with self._lock:
            if (found := self._consumed.get(key)) is None:
                is_alone = len(self._consumed) < MOST_PARTITIONS
                found = PartitionRecorder(queue, queue_id, group, info, is_told_alone=is_alone)
                self._consumed[key] = found
            found.hold()
        return found

    def counted(self, producer: QueueProducer) -> QueueProducer:
        if isinstance(producer, ObservableProducer):
            return producer.observed(SendCounter(self))
        return CountedProducer(producer, self)

    def stored(self, sent: Iterable[Addressed]) -> None:
        for info, message in sent:
            if (recorder := self.sent_to(info.place)) is not None:
                recorder.stored(message)

    def sent_to(self, place: ProviderPartition) -> SentRecorder | None:
        """None for the events themselves."""
        if (found := self._sent.get(place)) is not None or place.topic == self._metrics_topic:
            return found
        with self._lock:
            is_alone = len(self._sent) < MOST_PARTITIONS
            return self._sent.setdefault(place, SentRecorder(place, is_told_alone=is_alone))

    def samples(self, now: float) -> Iterator[tuple[str, Sample]]:
        """What happened since this was last asked, of each partition to which something did."""
        interval_ms, self._looked_at = round((now - self._looked_at) * 1000), now
        for recorder in (*self.consumed, *self.sent, *self._leaving):
            sample = recorder.take(interval_ms)
            if sample is not None:
                yield self.service_id, sample
            if sample is not None or recorder.quiet_since is None:
                recorder.quiet_since = now
        self._leaving = self._forget(now - _FORGET_S)

    def _forget(self, before: float) -> list[PartitionRecorder | SentRecorder]:
        with self._lock:
            consumed = {key: one for key, one in self._consumed.items() if not one.holders and _is_quiet(one, before)}
            sent = {place: one for place, one in self._sent.items() if _is_quiet(one, before)}
            for key in consumed:
                del self._consumed[key]
            for place in sent:
                del self._sent[place]
        return [*consumed.values(), *sent.values()]


def _is_quiet(recorder: PartitionRecorder | SentRecorder, before: float) -> bool:
    return recorder.quiet_since is not None and recorder.quiet_since <= before


class SendCounter:
    """Told by a producer of what it stored."""

    def __init__(self, recorder: Recorder) -> None:
        self._sent_to = recorder.sent_to

    def stored(self, place: ProviderPartition, messages: Sequence[QueueMessage]) -> None:
        if (recorder := self._sent_to(place)) is not None:
            recorder.stored_together(messages)

    def refused(self, place: ProviderPartition, messages: Sequence[QueueMessage]) -> None:
        if (recorder := self._sent_to(place)) is not None:
            for message in messages:
                recorder.refused(message)


class CountedProducer:
    """Another producer, whose answers are counted one by one."""

    def __init__(self, producer: QueueProducer, recorder: Recorder) -> None:
        self._producer = producer
        self._sent_to = recorder.sent_to

    @property
    def default_topic(self) -> str:
        return self._producer.default_topic

    def send(
        self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback, patience_s: float | None = None
    ) -> None:
        _, _, counted = self._counted((info, message, callback))
        try:
            self._producer.send(info, message, counted, patience_s)
        except QueueError:
            if (recorder := self._sent_to(info.place)) is not None:
                recorder.refused(message)
            raise

    def send_many(self, sends: Sequence[Sending], patience_s: float | None = None) -> None:
        self._producer.send_many([self._counted(send) for send in sends], patience_s)

    def _counted(self, sending: Sending) -> Sending:
        info, message, callback = sending
        recorder = self._sent_to(info.place)
        if recorder is None:
            return sending
        return info, message, partial(recorder.answered, message, callback)

    def flush(self, timeout_s: float) -> bool:
        return self._producer.flush(timeout_s)

    def stop(self) -> None:
        self._producer.stop()
