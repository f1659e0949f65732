"""A response topic's only reader."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from queuecore.clock import SYSTEM_CLOCK
from queuecore.consuming.beginning import begin_at_end
from queuecore.errors import Displaced, NotOwner, ProviderUnavailable, QueueError
from queuecore.groups.members import displaced
from queuecore.messages import Record
from queuecore.providers.base import Provider, QueueConsumer, TopicSpec
from queuecore.requests.gathering import Gathering
from queuecore.requests.options import RequestOptions
from queuecore.topics import TopicPartitionInfo

logger = logging.getLogger(__name__)

# The group is one instance's alone: whoever comes with its id takes this place.
_MEMBER: Final = "responses"
# Nobody reads answers twice; what is committed tells others how far it is, and a provider in memory what it may forget.
_COMMIT_EVERY_S: Final = 0.5
# Longer than a group takes to give its only member the only partition.
_WITHOUT_TOPIC_S: Final = 10.0
# How often a topic that brings nothing is looked for: not all providers tell a consumer that it was removed.
_LOOK_EVERY_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0


class ResponseReader:
    """On a thread of its own: hands all answers of one poll to `complete`, and calls `end` when its place is taken."""

    def __init__(
        self,
        provider: Provider,
        spec: TopicSpec,
        options: RequestOptions,
        complete: Callable[[Sequence[Record]], None],
        end: Callable[[QueueError], None],
    ) -> None:
        self._provider = provider
        self._spec = spec
        self._info = TopicPartitionInfo(spec.name)
        self._poll_ms = options.poll_interval_ms
        self._complete = complete
        self._end = end
        self._changed = threading.Condition()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=spec.name, daemon=True)
        self.error: QueueError | None = None

    @property
    def group(self) -> str:
        return self._spec.name

    def join(self) -> None:
        """Create the topic, and settle that an instance that is new begins with what is sent from now on. Raises what
        the provider does."""
        admin = self._provider.admin()
        admin.create_topics([self._spec])
        begin_at_end(admin, self.group, [self._info.place])

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)

    def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Until that holds, which is looked for when answers came and every so often, or the time is over."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while not condition() and (remaining_s := until - time.monotonic()) > 0:
                self._changed.wait(min(remaining_s, self._poll_ms / 1000))

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._is_stopping:
            joined_at = time.monotonic()
            try:
                self._read()
            except Exception as error:
                if isinstance(error, NotOwner) and (isinstance(error, Displaced) or self._has_successor()):
                    self._give_way(error)
                    return
                # Whatever it is: without this thread no answer would be found any more.
                logger.debug("answers in %s cannot be read", self._spec.name, exc_info=error)
                if time.monotonic() - joined_at > _LONGEST_PAUSE_S:
                    pause_s = _FIRST_PAUSE_S
                logger.warning("answers in %s are read again in %g s: %s", self._spec.name, pause_s, error)
                self.wait_for(lambda: self._is_stopping, pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _read(self) -> None:
        """Until it is stopped, or what the provider raises."""
        self.join()
        consumer = self._provider.consumer(self.group, self._spec.name, member_id=_MEMBER)
        try:
            consumer.subscribe([self._info])
            self._read_on(consumer)
        finally:
            consumer.stop()

    def _read_on(self, consumer: QueueConsumer) -> None:
        """Returns when it is stopped, or has had nothing to read from for a while: the topic was removed. UnknownTopic
        where it is found to be."""
        gathering = Gathering(SYSTEM_CLOCK)
        committed_at = held_at = seen_at = time.monotonic()
        is_behind = False
        while not self._is_stopping:
            if records := consumer.poll(self._poll_ms):
                self._complete(records)
                is_behind = True
                with self._changed:
                    self._changed.notify_all()
                gathering.pause_after(len(records))
            now = time.monotonic()
            if records or consumer.partitions:
                held_at = now
            elif now - held_at > _WITHOUT_TOPIC_S:
                logger.warning("%s cannot be read; it is made again if it is gone", self._spec.name)
                return
            if records:
                seen_at = now
            elif now - seen_at > _LOOK_EVERY_S:
                self._look_for_topic()
                seen_at = time.monotonic()
            if is_behind and now - committed_at >= _COMMIT_EVERY_S:
                consumer.commit()
                committed_at, is_behind = now, False

    def _look_for_topic(self) -> None:
        """UnknownTopic where it was removed. While the provider is away nobody can say."""
        with suppress(ProviderUnavailable):
            self._provider.admin().end_offsets([self._info.place])

    def _has_successor(self) -> bool:
        """Whether another has the place of one that was silent for so long that its group forgot it. Two that both
        insist would take it from each other."""
        try:
            found = self._provider.admin().groups().get(self.group)
        except QueueError:
            return False
        return found is not None and bool(found.members)

    def _give_way(self, error: NotOwner) -> None:
        """However the provider put it: another instance is there in this one's place."""
        logger.error("another instance has the id that %s is for, and gets its answers: %s", self._spec.name, error)
        self.error = error if isinstance(error, Displaced) else displaced(self.group, _MEMBER)
        self._end(self.error)
