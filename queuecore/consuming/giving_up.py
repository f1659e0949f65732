"""Messages that are given up: letters within the limit of their partition, and what happens beyond."""

import logging
from collections.abc import Sequence

from queuecore.consuming.desk import Desk
from queuecore.consuming.partition import PartitionWork
from queuecore.consuming.work import Work
from queuecore.deadletter.envelope import Stage, describe_exception
from queuecore.deadletter.policy import DeadLetterPolicy, LimitState, OnLimit
from queuecore.delivery import Delivery
from queuecore.errors import DeadLetterLimitExceeded, QueueError, UndecodableMessage
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

KILLED = "killed_worker"
STUCK = "stuck"


class GivingUp:
    """For the thread that reads."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._limits: dict[ProviderPartition, LimitState] = {}
        # Why the queue is to be consumed no further, once what is done is settled.
        self.halt: DeadLetterLimitExceeded | None = None

    def judge(self, part: PartitionWork, done: int, given_up: Sequence[Work], now: float) -> list[Work]:
        """Those that are given up for good, with their letters. What exceeds the limit is open again, in a partition
        that stands still; where the queue says so, `halt` is set."""
        if not given_up and not done:
            return []
        limits = self._limits_of(part)
        limits.finish(done, 0, now)
        accepted = []
        for index, work in enumerate(given_up):
            if limits.allows_another(now):
                self._write(part, work)
                limits.finish(0, 1, now)
            elif limits.policy.on_limit is OnLimit.DROP:
                self._drop(part, work)
                limits.finish(1, 0, now)
            elif self._desk.plan().delivery is Delivery.AT_MOST_ONCE:
                # It counts as done, and nobody may handle it again.
                self._write(part, work)
                self._stop(part, [], work, limits.policy)
            else:
                self._stop(part, given_up[index:], work, limits.policy)
                break
            accepted.append(work)
        return accepted

    def resume(self, place: ProviderPartition) -> None:
        """Count anew."""
        self._limits.pop(place, None)

    forget = resume

    def _limits_of(self, part: PartitionWork) -> LimitState:
        policy = self._desk.plan().letters
        limits = self._limits.get(part.info.place)
        if limits is None or limits.policy != policy:
            limits = self._limits[part.info.place] = policy.state()
        return limits

    def _write(self, part: PartitionWork, work: Work) -> None:
        error = work.error or QueueError("its handler did not say why")
        if work.reason == KILLED:
            stage = Stage.CRASH
        else:
            stage = Stage.DECODE if isinstance(error, UndecodableMessage) else Stage.HANDLE
        logger.warning("%s@%d is given up: %s, %r", part.info, work.record.offset, work.reason, error)
        self._desk.letter(part, work, error, stage)

    def _drop(self, part: PartitionWork, work: Work) -> None:
        logger.error(
            "%s@%d is given up and dropped, as its partition has more dead letters than its queue allows: %s, %r",
            part.info,
            work.record.offset,
            work.reason,
            work.error,
        )
        work.outgoing = ()

    def _stop(self, part: PartitionWork, works: Sequence[Work], last: Work, policy: DeadLetterPolicy) -> None:
        """Have the partition stand still, with these open again."""
        reason = (
            f"{part.info} had more dead letters within {policy.window_s:g} s than its queue allows "
            f"(max_count {policy.max_count or 'any'}, max_ratio {policy.max_ratio:g}); the last: {_shown(last.error)}"
        )
        part.reopen(works)
        part.paused = reason
        logger.error("%s; it stands still until it is resumed, and nothing of it is lost", reason)
        self._desk.observer.partition_paused(part.info, reason)
        if policy.on_limit is OnLimit.HALT:
            self.halt = DeadLetterLimitExceeded(f"{reason}; mend the cause, then start consuming again")


def _shown(error: BaseException | None) -> str:
    """An exception's class and text, whatever its own methods do."""
    if error is None:
        return "unknown"
    told = describe_exception(error)
    return f"{told['exception_class']}: {told['exception_message']}"
