"""What a consumer tells its host."""

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connections
from django.utils import timezone

from queueapi.actions.letter_rows import header_id
from queueapi.actions.outcomes import mark_dropped, mark_outcomes
from queuecore.consuming.work import Outcome, Work
from queuecore.messages import REPLAY_LETTER
from queuecore.topics import TopicPartitionInfo


class Stall(NamedTuple):
    reason: str
    since: datetime


class HostObserver:
    """Told by the consumer's thread, asked by the host's.

    Outcomes of replayed letters are stored at once, before their messages are committed. Where the commit fails after
    that, as a transaction of exactly_once may, the letter counts as replayed and its message is handled again; an
    outcome stored after the commit could be missing for good. What else there is to tell is kept for the host, which
    alone writes it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses: dict[int, str] = {}
        self._stalls: dict[int, Stall] = {}

    def settling(self, works: Sequence[Work]) -> None:
        """What became a letter again is told by the index, which reads it; what was sent on to be tried again, by who
        handles it there."""
        replayed = [work for work in works if REPLAY_LETTER in work.record.headers and not _was_sent_on(work)]
        if not replayed:
            return
        handled = [work for work in replayed if work.outcome is Outcome.SUCCEEDED and not work.reason]
        dropped = [work for work in replayed if work.reason and not work.outgoing]
        try:
            mark_outcomes(_letters(handled))
            mark_dropped(_letters(dropped))
        finally:
            # The thread is not ours: nobody closes its connection when it ends.
            connections.close_all()

    def partition_paused(self, info: TopicPartitionInfo, reason: str) -> None:
        with self._lock:
            self._pauses[info.partition or 0] = reason

    def stalled(self, info: TopicPartitionInfo, reason: str) -> None:
        with self._lock:
            self._stalls[info.partition or 0] = Stall(reason, timezone.now())

    def recovered(self, info: TopicPartitionInfo) -> None:
        with self._lock:
            self._stalls.pop(info.partition or 0, None)

    def take_pauses(self) -> dict[int, str]:
        """Partitions that paused themselves since this was asked, and why."""
        with self._lock:
            pauses, self._pauses = self._pauses, {}
        return pauses

    def longest_stall(self) -> Stall | None:
        with self._lock:
            return min(self._stalls.values(), key=lambda stall: stall.since, default=None)

    def forget_stalls(self) -> None:
        """The consumption that told of them is over."""
        with self._lock:
            self._stalls.clear()


def _was_sent_on(work: Work) -> bool:
    letter = work.record.headers[REPLAY_LETTER]
    return any(message.headers.get(REPLAY_LETTER) == letter for _info, message in work.outgoing)


def _letters(works: Sequence[Work]) -> list[UUID]:
    return [letter for work in works if (letter := header_id(work.record, REPLAY_LETTER)) is not None]
