"""A handler that runs for a queue, on threads of its own."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from queuecore.delivery import Delivery
from queuecore.processing import RetryFailed
from queuecore.providers.base import Provider, QueueProducer
from queuecore.queues.composing import Composer
from queuecore.queues.context import MessageHandler, Workplace
from queuecore.queues.counting import Counter, SubscriptionCounts
from queuecore.queues.desk import Desk
from queuecore.queues.draining import Backlog
from queuecore.queues.handling import Attempts
from queuecore.queues.letters import LetterWriter
from queuecore.queues.running import Runner
from queuecore.queues.settling import settling
from queuecore.queues.worker import Worker
from queuecore.topics import TopicPartitionInfo

_LOOK_EVERY_S: Final = 0.05
_STOP_WITHIN_S: Final = 30.0
_NO_RETRY: Final = RetryFailed(retries=0)


@dataclass(frozen=True, slots=True)
class SubscriptionPlan:
    """What to read, with whom, and what to do with it."""

    queue: str
    group: str
    handler: MessageHandler
    delivery: Delivery
    retry: RetryFailed
    infos: tuple[TopicPartitionInfo, ...]
    hand_over_s: float
    from_end: bool

    @property
    def name(self) -> str:
        return f"{self.queue}-{self.group}"

    @property
    def handler_name(self) -> str:
        return getattr(self.handler, "__qualname__", type(self.handler).__qualname__)

    @property
    def retry_policy(self) -> RetryFailed:
        return _NO_RETRY if self.delivery is Delivery.AT_MOST_ONCE else self.retry


class Subscription:
    """One member of a group that reads a queue. `Queues.subscribe` makes it; leaving its `with` block stops it.

    The handler runs on one thread of the subscription's, one message after the other. More subscriptions of the same
    group, here or in other processes, share the queue's partitions; each partition keeps its order.

    While the provider cannot be reached, the subscription says so in the log and tries again by itself. What it cannot
    mend ends it: `error` has it, and `stop`, `wait` and `drain` raise it.
    """

    def __init__(
        self,
        plan: SubscriptionPlan,
        provider: Provider,
        producer: QueueProducer,
        composer: Composer,
        enlist: Callable[[Runner], None],
    ) -> None:
        self._plan = plan
        self._infos = {info.place: info for info in plan.infos}
        self._provider = provider
        self._counter = Counter()
        self._progress = threading.Condition()
        stopping = threading.Event()
        letters = LetterWriter(plan.queue, plan.group, plan.handler_name)
        workplace = Workplace(plan.queue, self._infos, composer)
        attempts = Attempts(workplace, plan.group, plan.handler, plan.retry_policy, letters, self._counter, stopping)
        worker = Worker(attempts.handle, f"{plan.name}-handler")
        desk = Desk(
            provider, producer, plan.group, self._infos, plan.hand_over_s, letters, self._counter, plan.from_end
        )
        self._runner = Runner(
            plan.name, plan.infos, worker, settling(plan.delivery, desk), desk, stopping, self._progressed
        )
        enlist(self._runner)

    @property
    def queue(self) -> str:
        """The queue it reads."""
        return self._plan.queue

    @property
    def group(self) -> str:
        """The group it is a member of."""
        return self._plan.group

    @property
    def delivery(self) -> Delivery:
        """What a crash may do to its messages."""
        return self._plan.delivery

    @property
    def partitions(self) -> frozenset[int]:
        """The queue's partitions it holds now; the group may give and take them at any time."""
        member = self._runner.membership
        return frozenset() if member is None else frozenset(self._infos[place].partition or 0 for place in member.held)

    @property
    def counts(self) -> SubscriptionCounts:
        """What became of its messages so far."""
        return self._counter.counts()

    @property
    def error(self) -> Exception | None:
        """What ended it, if anything did."""
        return self._runner.error

    @property
    def is_running(self) -> bool:
        """Whether it still reads, or finishes what it has read."""
        return not self._runner.ended.is_set()

    def drain(self, timeout_s: float = 60.0) -> bool:
        """Wait until the group has handled everything that is in the queue now; the subscription goes on. False when
        that took too long. With `at_most_once`, other members may still be handling what they have committed."""
        deadline = time.monotonic() + timeout_s
        backlog = Backlog(self._provider, self.group, self._infos)
        while not (backlog.is_done() and self._is_in_step()):
            self._raise_error()
            if time.monotonic() >= deadline:
                return False
            with self._progress:
                self._progress.wait(_LOOK_EVERY_S)
        return True

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it has ended: for a program that does nothing else. False when it has not within the time."""
        has_ended = self._runner.ended.wait(timeout_s)
        self._raise_error()
        return has_ended

    def stop(self, timeout_s: float = _STOP_WITHIN_S) -> bool:
        """Finish the message at hand, commit what is done, and leave the group; with `at_most_once`, first finish all
        that is committed. False when the handler took longer: it is left behind, and its message is not done. False as
        well when the provider failed meanwhile, so that something handled comes again or, with `at_most_once`, was
        dropped. A handler may call this too, and is not waited for."""
        in_time = self._runner.stop(timeout_s)
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
            self._runner.stop(_STOP_WITHIN_S)

    def _is_in_step(self) -> bool:
        member = self._runner.membership
        return not self.is_running if member is None else not member.is_behind

    def _progressed(self) -> None:
        with self._progress:
            self._progress.notify_all()

    def _raise_error(self) -> None:
        if (error := self._runner.see_error()) is not None:
            raise error
