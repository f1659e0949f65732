"""A handler that runs for a queue, on threads of its own."""

import time
from types import TracebackType
from typing import Final, Self

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.draining import Backlog
from queuecore.delivery import Delivery
from queuecore.providers.base import Provider
from queuecore.queues.counting import SubscriptionCounts, subscription_counts

_LOOK_EVERY_S: Final = 0.05
_STOP_WITHIN_S: Final = 30.0


class Subscription:
    """One member of a group that reads a queue. `Queues.subscribe` makes it; leaving its `with` block stops it.

    The handler runs on threads of the subscription's. More subscriptions of the same group, here or in other processes,
    share the queue's partitions.

    While the provider cannot be reached, the subscription says so in the log and tries again by itself. What it cannot
    mend ends it: `error` has it, and `stop`, `wait` and `drain` raise it.
    """

    def __init__(self, consumption: Consumption, provider: Provider) -> None:
        self._consumption = consumption
        self._provider = provider

    @property
    def queue(self) -> str:
        """The queue it reads."""
        return self._consumption.plan.queue

    @property
    def group(self) -> str:
        """The group it is a member of."""
        return self._consumption.plan.group

    @property
    def delivery(self) -> Delivery:
        """What a crash may do to its messages."""
        return self._consumption.plan.delivery

    @property
    def partitions(self) -> frozenset[int]:
        """The queue's partitions it holds now; the group may give and take them at any time."""
        return self._consumption.partitions

    @property
    def counts(self) -> SubscriptionCounts:
        """What became of its messages so far."""
        return subscription_counts(self._consumption.counts)

    @property
    def paused(self) -> dict[int, str]:
        """Partitions that stand still, and why: because of too many dead letters, until `resume` has them go on; or as
        long as their state is restored."""
        return {info.partition or 0: reason for info, reason in self._consumption.paused.items()}

    @property
    def state_entries(self) -> int:
        """How many keys its handlers remember, of the partitions it holds."""
        return self._consumption.state_entries

    @property
    def state_bytes(self) -> int:
        """How many bytes these keys and their values have: all of them are held in memory."""
        return self._consumption.state_bytes

    @property
    def error(self) -> Exception | None:
        """What ended it, if anything did."""
        return self._consumption.error

    @property
    def is_running(self) -> bool:
        """Whether it still reads, or finishes what it has read."""
        return self._consumption.is_running

    def resume(self) -> None:
        """Have partitions that are `paused` go on."""
        self._consumption.resume()

    def drain(self, timeout_s: float = 60.0) -> bool:
        """Wait until the group has handled everything that is in the queue now; the subscription goes on. False when
        that took too long. With `at_most_once`, other members may still be handling what they have committed."""
        deadline = time.monotonic() + timeout_s
        backlog = Backlog(self._provider, self.group, [info.place for info in self._consumption.plan.infos])
        while not (backlog.is_done() and not self._consumption.is_behind):
            self._raise_error()
            if time.monotonic() >= deadline:
                return False
            self._consumption.wait_for_progress(_LOOK_EVERY_S)
        return True

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it has ended: for a program that does nothing else. False when it has not within the time."""
        has_ended = self._consumption.ended.wait(timeout_s)
        self._raise_error()
        return has_ended

    def stop(self, timeout_s: float = _STOP_WITHIN_S) -> bool:
        """Stop reading, let the handler finish the messages at hand, and leave the group. False when that took longer
        than `timeout_s`: then these messages are handled again by somebody else, whatever becomes of them here; and
        when the provider failed meanwhile, so that something handled comes again or, with `at_most_once`, was
        dropped. A handler may call this too, and is not waited for."""
        in_time = self._consumption.stop(timeout_s)
        self._raise_error()
        return in_time

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            # Whatever else went wrong is in the log; this exception is the one to be seen.
            self._consumption.stop(_STOP_WITHIN_S)

    def _raise_error(self) -> None:
        if (error := self._consumption.see_error()) is not None:
            raise error
