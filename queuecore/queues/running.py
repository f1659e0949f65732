"""The thread that reads for a subscription: in the group until it is told to leave, and back in it after an outage."""

import logging
import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import Final

from queuecore.errors import QueueError
from queuecore.queues.beginning import begin_at_end
from queuecore.queues.desk import Desk
from queuecore.queues.membership import Membership
from queuecore.queues.settling import NOT_OURS, Settling
from queuecore.queues.worker import Worker, as_exception
from queuecore.topics import TopicPartitionInfo

logger = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 0.2
_MAX_PAUSE_S: Final = 5.0
# What leaving a group may take beyond what a handler may.
_LEAVING_S: Final = 10.0
# A handler gets one message after the other: more at once would only wait, and keep the garbage collector busy.
_PACK: Final = 1_000


class Runner:
    """Its methods are safe from any thread."""

    def __init__(
        self,
        name: str,
        infos: Collection[TopicPartitionInfo],
        worker: Worker,
        settling: Settling,
        desk: Desk,
        stopping: threading.Event,
        progressed: Callable[[], None],
    ) -> None:
        self._name = name
        self._infos = infos
        self._worker = worker
        self._settling = settling
        self._desk = desk
        self._stopping = stopping
        self._progressed = progressed
        self._deadline = float("inf")
        # Whether nothing was left undone when this ended.
        self._is_finished = True
        self.membership: Membership | None = None
        self.error: Exception | None = None
        self._is_error_seen = False
        self.ended = threading.Event()
        threading.Thread(target=self._run, name=f"{name}-reader", daemon=True).start()

    def stop(self, timeout_s: float) -> bool:
        """End within the time. False when the handler took longer, or what it did could not be settled. The handler
        itself cannot wait for that."""
        self.tell_to_stop(timeout_s)
        if self.is_handler_thread:
            return True
        return self.ended.wait(timeout_s + _LEAVING_S) and self._is_finished

    def tell_to_stop(self, timeout_s: float) -> None:
        """As `stop`, without waiting."""
        self._deadline = time.monotonic() + timeout_s
        if not self._settling.commits_first:
            # First: who stops between two attempts gives up its message, and nothing may be handled after that.
            self._worker.take_no_more()
        self._stopping.set()

    @property
    def is_handler_thread(self) -> bool:
        return self._worker.is_this_thread

    @property
    def has_unseen_error(self) -> bool:
        """Whether it was ended by an error that nobody has been told."""
        return self.error is not None and not self._is_error_seen

    def see_error(self) -> Exception | None:
        """What ended it, to be told somebody now."""
        self._is_error_seen = self.error is not None
        return self.error

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            before = self._desk.counter.counts()
            try:
                self._is_finished = self._stay()
            except BaseException as error:
                self._is_finished = False
                if not _may_pass(error):
                    self.error = as_exception(error, threading.current_thread().name)
                    break
                if self._stopping.is_set():
                    logger.warning("%s: %s; %s", self._name, error, self._consequence)
                    break
                if before != self._desk.counter.counts():
                    pause_s = _FIRST_PAUSE_S
                # Said once: what is tried in vain after that is no news.
                level = logging.WARNING if pause_s == _FIRST_PAUSE_S else logging.DEBUG
                logger.log(level, "%s: %s; joins its group again in %.1f s", self._name, error, pause_s)
                self._stopping.wait(pause_s)
                pause_s = min(_MAX_PAUSE_S, pause_s * 2)
        self._end()

    def _stay(self) -> bool:
        """In the group until told to stop; whether the handler was done in time."""
        consumer = self._desk.provider.consumer(self._desk.group, max_poll_records=_PACK)
        membership = Membership(consumer, self._worker, self._settling, self._desk.hand_over_s, self._progressed)
        with ExitStack() as leaving:
            leaving.callback(consumer.stop)
            leaving.callback(self._settling.forget)
            leaving.callback(self._leave)
            if self._desk.from_end:
                begin_at_end(self._desk.provider.admin(), self._desk.group, [info.place for info in self._infos])
            consumer.subscribe(self._infos, membership)
            self.membership = membership
            while not self._stopping.is_set():
                membership.turn()
            is_done = membership.finish(self._deadline)
            if not is_done and not self._settling.commits_first:
                logger.warning("%s: the handler was left behind with the message at hand", self._name)
            return is_done

    @property
    def _consequence(self) -> str:
        if self._settling.commits_first:
            return "it has ended all the same"
        return "it has ended, and what was handled since the last commit is delivered again"

    def _leave(self) -> None:
        self.membership = None
        if not self._settling.commits_first:
            self._worker.discard()

    def _end(self) -> None:
        try:
            if self._settling.commits_first:
                self._is_finished = self._finish_committed()
            else:
                self._worker.stop()
        finally:
            if self.error is not None:
                logger.error("%s: the subscription has ended: %s", self._name, self.error, exc_info=self.error)
            self.ended.set()
            self._progressed()

    def _finish_committed(self) -> bool:
        """What counts as done already, and nobody else will get: it may have outlasted the last membership. False when
        something of it is dropped."""
        dropped_before = self._desk.counter.counts().dropped
        patience_s = max(0.0, self._deadline - time.monotonic()) if self.error is None else 0.0
        handled, unfinished = self._worker.stop(patience_s)
        self._settling.settle_outside(handled)
        if unfinished:
            self._desk.counter.add(dropped=unfinished)
            logger.error("%s: %d messages were committed, and are dropped unfinished", self._name, unfinished)
        return self._desk.counter.counts().dropped == dropped_before


def _may_pass(error: BaseException) -> bool:
    """Whether a new membership may do better: after an outage, or when the group thought we were gone."""
    return isinstance(error, QueueError) and (error.retryable or isinstance(error, NOT_OURS))
