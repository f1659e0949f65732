"""A queue being consumed: in its group until it is told to leave, and back in it after an outage."""

import logging
import threading
import time
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from queuecore.clock import SYSTEM_CLOCK
from queuecore.consuming.async_pool import AsyncPool
from queuecore.consuming.attending import Attending
from queuecore.consuming.beginning import begin_at_end
from queuecore.consuming.context import Composer, MessageHandler, NoComposer, Workplace
from queuecore.consuming.counting import ConsumptionCounts, Counter, Stopwatch, TimeBudget
from queuecore.consuming.delivering import Deliverer, is_async
from queuecore.consuming.desk import Desk
from queuecore.consuming.giving_up import GivingUp
from queuecore.consuming.holds import NO_HOLDS, Holds
from queuecore.consuming.marks import MarkStore, NoMarks
from queuecore.consuming.observing import Observer, Unobserved
from queuecore.consuming.patience import Patience
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.consuming.pool import Pool, ThreadPool
from queuecore.consuming.posting import Routing, Unrouted
from queuecore.consuming.settling import NOT_OURS, settling
from queuecore.consuming.stalls import StallDetector
from queuecore.consuming.standing_by import stand_by
from queuecore.consuming.states import States
from queuecore.consuming.stay import Stay
from queuecore.consuming.surroundings import Surroundings
from queuecore.delivery import Delivery
from queuecore.errors import ConfigurationError, Displaced, QueueError, StaleEpoch
from queuecore.metrics.recorder import NoRecording, Recording
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.providers.base import Provider, QueueConsumer, QueueProducer
from queuecore.topics import TopicPartitionInfo

logger = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 0.2
_MAX_PAUSE_S: Final = 5.0
# What leaving a group may take beyond what handlers may.
_LEAVING_S: Final = 10.0
# As much is committed before it is handled, and lost in a crash.
_AT_MOST_ONCE_PACK: Final = 100
_STALLED_AFTER_S: Final = 60.0
# Only a restart changes these.
_FIXED: Final = ("group", "delivery", "member_id", "state_topic", "from_end")


class Consumption:
    """Its methods are safe from any thread.

    While the provider cannot be reached it says so in the log and tries again by itself. What it cannot mend ends it:
    `error` has that. Displaced by another with its `member_id`, it stands by until that one is gone.

    A plan with epochs is for one that is told by others what is its: displaced, it ends. A partition that another has
    under a newer epoch it leaves alone until its plan has a new epoch too, and goes on with the others (`stale`); where
    there is none, it ends.
    """

    def __init__(
        self,
        plan: ConsumptionPlan,
        provider: Provider,
        handler: MessageHandler,
        *,
        composer: Composer | None = None,
        routing: Routing | None = None,
        observer: Observer | None = None,
        marks: MarkStore | None = None,
        producer: QueueProducer | None = None,
        recording: Recording | None = None,
    ) -> None:
        """`recording` hears of all that is done. What is sent by a `producer` that is given, its maker counts."""
        self._attending = Attending(_effective(plan))
        self._provider = provider
        self._holds = NO_HOLDS
        self._resumed: list[Collection[int] | None] = []
        self._changed = threading.Event()
        self._progress = threading.Condition()
        self._counter = Counter()
        self._stopwatch = Stopwatch(SYSTEM_CLOCK)
        self._composer = composer or NoComposer()
        self._routing = routing or Unrouted()
        self._recording = recording or NoRecording()
        self._states = None
        if plan.state_topic:
            self._states = States(plan.state_topic, provider, producer or provider.producer(), self._changed.set)
            handler = self._states.guard(handler)
        self._deliverer = Deliverer(handler, self._workplace(), plan.group)
        self._pool = self._make_pool(handler)
        self._own_producer: QueueProducer | None = None
        self._around = self._surroundings(observer or Unobserved(), marks or NoMarks(), producer)
        self._stopping = threading.Event()
        self._deadline = float("inf")
        self._is_abandoned = self._is_displaced = False
        # Whether nothing was left undone when this ended, or when it left its group.
        self._is_finished = self._is_left_done = True
        self.stay: Stay | None = None
        self.error: Exception | None = None
        self._is_error_seen = False
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{plan.name}-reader", daemon=True)

    @property
    def plan(self) -> ConsumptionPlan:
        return self._plan

    @property
    def _plan(self) -> ConsumptionPlan:
        return self._attending.plan

    @property
    def counts(self) -> ConsumptionCounts:
        return self._counter.counts()

    @property
    def counts_by_tenant(self) -> dict[str, ConsumptionCounts]:
        return self._counter.by_tenant()

    @property
    def budget(self) -> TimeBudget:
        """What its reading thread did with its time so far."""
        return self._stopwatch.budget

    @property
    def partitions(self) -> frozenset[int]:
        """Which of the queue's partitions it holds now; the group may give and take them at any time."""
        stay = self.stay
        if stay is None:
            return frozenset()
        held = stay.held
        return frozenset(info.partition or 0 for info in self._attending.infos.values() if info.place in held)

    @property
    def stale(self) -> dict[int, int]:
        """Partitions of its plan that it leaves alone, each with the newer epoch that the group has committed it in."""
        return self._attending.stale

    @property
    def paused(self) -> dict[TopicPartitionInfo, str]:
        """Partitions that stand still because of too many dead letters, or until their state is restored, and the
        reason."""
        return {} if self.stay is None else self.stay.paused

    @property
    def state_entries(self) -> int:
        """How many keys its handlers remember, of the partitions it holds."""
        return 0 if self._states is None else self._states.entries

    @property
    def state_bytes(self) -> int:
        """How many bytes these keys and their values have: all of them are held in memory."""
        return 0 if self._states is None else self._states.size_bytes

    @property
    def is_running(self) -> bool:
        """Whether it still reads, or finishes what it has read."""
        return self._thread.ident is not None and not self.ended.is_set()

    @property
    def is_behind(self) -> bool:
        """Whether something that is committed may still have to be handled, or to be counted."""
        return self.is_running if self.stay is None else self.stay.is_behind

    @property
    def is_handler_thread(self) -> bool:
        return self._pool.is_this_thread

    def start(self) -> None:
        self._thread.start()

    def change(self, plan: ConsumptionPlan) -> bool:
        """Go on by this plan from the next pack on. False, with nothing changed, where only a new consumption can.

        Partitions that it had and has still, under the same epoch, are not interrupted; those that it has no longer are
        handed over as always. All of them have to exist. A plan without any is none: stop instead."""
        plan = _effective(plan)
        if any(getattr(plan, name) != getattr(self._plan, name) for name in _FIXED):
            return False
        if not plan.infos:
            raise ConfigurationError(f"queue {plan.queue}: the plan reads no partition; stop the consumption instead")
        self._attending.change(plan)
        self._deliverer.workplace = self._workplace()
        self._pool.resize(plan.concurrency, plan.max_overruns)
        self._changed.set()
        return True

    def hold(self, holds: Holds) -> None:
        """Have nothing of these handled until told otherwise. What is under way ends."""
        self._holds = holds
        self._changed.set()

    def resume(self, partitions: Collection[int] | None = None) -> None:
        """Have partitions go on that stand still because of too many dead letters; all, or these."""
        self._resumed.append(partitions)
        self._changed.set()

    def wait_for_progress(self, timeout_s: float) -> None:
        with self._progress:
            self._progress.wait(timeout_s)

    def stop(self, timeout_s: float) -> bool:
        """Read no more, let handlers end, commit, and leave the group. False when a handler took longer, or what it did
        could not be settled. A handler may call this too, and is not waited for."""
        self.tell_to_stop(timeout_s)
        if self.is_handler_thread or self._thread.ident is None:
            return True
        return self.ended.wait(timeout_s + _LEAVING_S) and self._is_finished

    def tell_to_stop(self, timeout_s: float) -> None:
        """As `stop`, without waiting."""
        self._deadline = time.monotonic() + timeout_s
        if (stay := self.stay) is not None:
            stay.take_no_more()
        self._stopping.set()
        self._changed.set()

    def abandon(self) -> None:
        """Give way at once: what is under way is not waited for, and nothing more is committed."""
        self._is_abandoned = True
        self.tell_to_stop(0.0)

    @property
    def has_unseen_error(self) -> bool:
        """Whether it was ended by an error that nobody has been told."""
        return self.error is not None and not self._is_error_seen

    def see_error(self) -> Exception | None:
        """What ended it, to be told somebody now."""
        self._is_error_seen = self.error is not None
        return self.error

    def _workplace(self) -> Workplace:
        timeout_ms = self._plan.timeout_ms
        return Workplace(
            self._plan.queue,
            self._attending.infos,
            self._composer,
            None if timeout_ms is None else timeout_ms / 1000,
            state_of=None if self._states is None else self._states.open,
        )

    def _make_pool(self, handler: MessageHandler) -> Pool:
        kind = AsyncPool if is_async(handler) else ThreadPool
        plan = self._plan
        return kind(plan.name, self._deliverer, plan.concurrency, plan.max_overruns, self._changed.set)

    def _surroundings(self, observer: Observer, marks: MarkStore, producer: QueueProducer | None) -> Surroundings:
        if producer is None:
            producer = self._own_producer = self._recording.counted(self._provider.producer())
        desk = Desk(
            lambda: self._plan,
            self._provider,
            producer,
            self._counter,
            observer,
            Patience(lambda: self._deadline),
            self._routing,
            self._recording,
        )
        return Surroundings(
            plan=lambda: self._plan,
            holds=lambda: self._holds,
            pool=self._pool,
            settling=settling(self._plan.delivery, desk),
            giving_up=GivingUp(desk),
            stalls=StallDetector(self._provider, observer, _STALLED_AFTER_S),
            counter=self._counter,
            stopwatch=self._stopwatch,
            marks=marks,
            changed=self._changed,
            progressed=self._progressed,
            found_stale=self._found_stale,
            recording=self._recording,
            states=self._states,
        )

    def _progressed(self) -> None:
        with self._progress:
            self._progress.notify_all()

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            before = self.counts
            try:
                self._is_finished = self._attend()
            except BaseException as error:
                self._is_finished = self._around.settling.commits_first and self._is_left_done
                if not self._may_pass(error):
                    self.error = _as_exception(error, self._thread.name)
                    break
                if self._stopping.is_set():
                    logger.warning("%s: %s; %s", self._plan.name, error, self._consequence)
                    break
                # Only one that has stood by to the end has no longer been displaced.
                self._is_displaced = self._is_displaced or isinstance(error, Displaced)
                if before.settled != self.counts.settled:
                    # Not for what was only read: it is read each time, and handled in vain while nothing can be stored.
                    pause_s = _FIRST_PAUSE_S
                # Said once: what is tried in vain after that is no news.
                level = logging.WARNING if pause_s == _FIRST_PAUSE_S else logging.DEBUG
                logger.log(level, "%s: %s; joins its group again in %.1f s", self._plan.name, error, pause_s)
                self._stopping.wait(pause_s)
                pause_s = min(_MAX_PAUSE_S, pause_s * 2)
        self._end()

    def _attend(self) -> bool:
        """In the group until told to stop; whether handlers were done in time."""
        plan = self._attending.attended
        if self._is_displaced:
            stand_by(self._provider, plan, self._stopping)
            self._is_displaced = False
            if self._stopping.is_set():
                return True
        consumer = self._provider.consumer(plan.group, member_id=plan.member_id, max_poll_records=plan.pack_size)
        stay = Stay(consumer, self._around, plan)
        with ExitStack() as leaving:
            leaving.callback(consumer.stop)
            if plan.member_id is not None:
                # Nobody shall wait for one that has stopped.
                leaving.callback(consumer.unsubscribe)
            leaving.callback(self._around.settling.forget)
            leaving.callback(self._leave, stay)
            self._subscribe(consumer, stay, plan)
            self.stay = stay
            while not self._stopping.is_set():
                while self._resumed:
                    stay.resume(self._resumed.pop())
                if (wanted := self._attending.attended) is not plan:
                    if (wanted.infos, wanted.epochs) != (plan.infos, plan.epochs):
                        self._subscribe(consumer, stay, wanted)
                    plan = wanted
                stay.turn()
            return self._is_abandoned or self._finish(stay)

    def _subscribe(self, consumer: QueueConsumer, stay: Stay, plan: ConsumptionPlan) -> None:
        if plan.from_end:
            begin_at_end(self._provider.admin(), plan.group, [info.place for info in plan.infos])
        epochs = plan.epochs_by_place()
        self._around.settling.expect(epochs.keys() - stay.held)
        consumer.subscribe(plan.infos, stay, epochs)
        stay.attend(plan)

    def _found_stale(self, error: StaleEpoch) -> None:
        """Leave the partition alone. Raises the error where there is no other."""
        if not self._attending.leave_alone(error):
            raise error
        logger.warning("%s: %s; goes on with its other partitions", self._plan.name, error)

    def _may_pass(self, error: BaseException) -> bool:
        """Whether a new stay may do better: after an outage, or when the group thought we were gone."""
        if not isinstance(error, QueueError):
            return False
        if isinstance(error, StaleEpoch):
            return self._attending.leave_alone(error)
        if isinstance(error, Displaced) and self._plan.is_fenced:
            return False
        return error.retryable or isinstance(error, NOT_OURS)

    def _finish(self, stay: Stay) -> bool:
        is_done = stay.finish(self._deadline)
        if not is_done:
            logger.warning("%s: handlers were left behind with the messages at hand", self._plan.name)
        return is_done

    @property
    def _consequence(self) -> str:
        if self._around.settling.commits_first:
            return "it has ended all the same"
        return "it has ended, and what was handled since the last commit is delivered again"

    def _leave(self, stay: Stay) -> None:
        self.stay = None
        self._is_left_done = stay.leave(min(self._deadline, time.monotonic() + self._plan.hand_over_s))

    def _end(self) -> None:
        self._pool.stop()
        if self._own_producer is not None:
            self._own_producer.stop()
        if self.error is not None:
            # Errors of ours say what happened and what to do; where it was raised says nothing more.
            trace = None if isinstance(self.error, QueueError) else self.error
            logger.error("%s: consuming has ended: %s", self._plan.name, self.error, exc_info=trace)
        self.ended.set()
        self._progressed()


def _effective(plan: ConsumptionPlan) -> ConsumptionPlan:
    """Messages that are committed before they are handled are handled once: there is nothing to try again."""
    if plan.delivery is not Delivery.AT_MOST_ONCE:
        return plan
    kind = plan.processing.kind
    if kind not in (ProcessingStrategyType.SKIP_ALL_FAILURES, ProcessingStrategyType.SKIP_ALL_FAILURES_AND_TIMED_OUT):
        kind = ProcessingStrategyType.SKIP_ALL_FAILURES_AND_TIMED_OUT
    size = min(plan.pack_size, _AT_MOST_ONCE_PACK)
    return replace(plan, processing=replace(plan.processing, kind=kind), pack_size=size)


def _as_exception(error: BaseException, thread: str) -> Exception:
    """What ended a thread, as something that can be raised in another without ending that one's process."""
    if isinstance(error, Exception):
        return error
    ended = QueueError(f"the thread {thread} was ended by {error!r}; start consuming again")
    ended.__cause__ = error
    return ended
