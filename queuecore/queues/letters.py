"""Messages a subscription gave up on: written to the queue's dead-letter topic, and read from there."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.deadletter.envelope import FailureStory, describe_exception, original_headers, read_story, to_letter
from queuecore.deadletter.fitting import is_without_data
from queuecore.messages import QueueMessage, Record
from queuecore.providers.base import Provider
from queuecore.sending import Addressed
from queuecore.topics import TopicPartitionInfo, dead_letter_partition

_READ_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up.

    record  as it is stored in the dead-letter topic
    story   where it came from, what went wrong, how often it was tried
    """

    record: Record
    story: FailureStory

    @property
    def message(self) -> QueueMessage:
        """The message as it was before it was given up; without its data where `is_complete` is false."""
        return QueueMessage(self.record.key, self.record.data, original_headers(self.record.headers))

    @property
    def is_complete(self) -> bool:
        """Whether the message is all there. The data are left out where both were too large for one letter: the
        original is at the story's topic, partition and offset, as long as that topic keeps it."""
        return not is_without_data(self.record.headers)


class LetterWriter:
    """Makes letters for one subscription. Safe from any thread."""

    def __init__(self, queue: str, group: str, handler: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._queue = queue
        self._group = group
        self._handler = handler
        self._clock = clock

    def write(
        self,
        info: TopicPartitionInfo,
        record: Record,
        error: BaseException,
        *,
        reason: str,
        attempts: int,
        first_failed_at_ms: int = 0,
    ) -> Addressed:
        """The letter for a record of this partition, addressed and not yet sent."""
        now_ms = self._clock.now_ms()
        story = FailureStory(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            queue_id=self._queue,
            group=self._group,
            handler=self._handler,
            reason=reason,
            attempts=attempts,
            first_failed_at_ms=first_failed_at_ms or now_ms,
            failed_at_ms=now_ms,
            **describe_exception(error),
        )
        return Addressed(dead_letter_partition(info), to_letter(record, story))


def read_letters(provider: Provider, partitions: Iterable[TopicPartitionInfo]) -> Iterator[DeadLetter]:
    """All letters of these partitions, each partition's from the oldest on."""
    places = [dead_letter_partition(info).place for info in partitions]
    at = dict(provider.admin().beginning_offsets(places))
    with closing(provider.reader()) as reader:
        for place in places:
            while records := reader.read(place, at[place], _READ_AT_ONCE):
                for record in records:
                    yield DeadLetter(record, read_story(record.headers))
                at[place] = records[-1].offset + 1
