"""Sending dead letters again."""

from contextlib import closing
from datetime import timedelta
from typing import Final

from django.db import transaction

from queueapi.actions.replay_collecting import LetterCollector
from queueapi.actions.replay_items import give_back_letters, note_collected
from queueapi.models import Operation, Replay
from queueapi.replaying import sent_at_most, why_stop
from queueapi.selectors.operation_words import waits_because
from queueapi.selectors.replays import chosen_letters, replays_with_operations, settings_of, standing_of
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProducerFenced, QueueError
from workers.operations.chunks import ChunkSender
from workers.operations.pacing import Pace
from workers.operations.run import NotYet, OperationRun

CHUNK: Final = 5_000

_LOOK_AGAIN_S: Final = 0.2
# Outcomes are waited for so long by a worker's thread, then by nobody until it is time to look again.
_PATIENCE_S: Final = 10.0
_COME_BACK: Final = timedelta(seconds=5)


class ReplayAborted(QueueError):
    """Too many letters failed again."""

    code = "replay_aborted"


class ReplayKind:
    """Sends the letters in their order, at their pace, and notes each that was acknowledged. What an earlier runner
    left on its way is looked for first: nothing is lost, and nothing sent twice."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock

    def settle(self, run: OperationRun) -> None:
        try:
            with closing(ChunkSender(run, _replay(run.operation), self._clock)) as sender:
                sender.settle()
        except QueueError as error:
            raise _later(error) from error

    def run(self, run: OperationRun) -> str:
        replay = _replay(run.operation)
        _collect(run, replay)
        try:
            with closing(ChunkSender(run, replay, self._clock)) as sender:
                self._send_all(run, replay, sender)
        except QueueError as error:
            # One that was fenced and still has the lease is the one to go on.
            if error.retryable or isinstance(error, ProducerFenced):
                raise _later(error) from error
            raise
        return _summary(_replay(run.operation))

    def give_back(self, run: OperationRun) -> None:
        replay, is_over = _replay(run.operation), False
        while not is_over:
            with transaction.atomic():
                is_over = not give_back_letters(replay, "it was not sent: the replay ended before its turn")
                run.note(run.operation.done)

    def _send_all(self, run: OperationRun, replay: Replay, sender: ChunkSender) -> None:
        settings = settings_of(replay)
        run.note(standing_of(replay).tried)
        pace = Pace(settings.rate_per_s, self._clock)
        while True:
            run.check()
            replay.refresh_from_db(fields=["sent", "succeeded", "failed", "skipped"])
            standing = standing_of(replay)
            if standing.tried >= standing.total:
                return
            if reason := why_stop(settings, standing):
                raise ReplayAborted(reason)
            allowed = sent_at_most(settings, standing) - standing.tried
            if allowed <= 0:
                self._await_outcomes(run, replay)
            elif self._is_time(pace):
                sent = sender.send(min(allowed, pace.portion(CHUNK)))
                if not sent:
                    # Nothing is left to be sent, whatever the count says: some had their outcome before their turn.
                    return
                pace.sent(sent)

    def _is_time(self, pace: Pace) -> bool:
        """Whether to send now. Else some of the time until then has passed: who wants to cancel is not kept waiting."""
        delay_s = pace.delay_s()
        self._clock.sleep(min(delay_s, _LOOK_AGAIN_S))
        return delay_s <= _LOOK_AGAIN_S

    def _await_outcomes(self, run: OperationRun, replay: Replay) -> None:
        """Until one more letter has had its outcome. NotYet where that takes long."""
        known = standing_of(replay).decided
        until = self._clock.monotonic() + _PATIENCE_S
        while self._clock.monotonic() < until:
            run.check()
            replay.refresh_from_db(fields=["sent", "succeeded", "failed", "skipped"])
            if standing_of(replay).decided > known:
                return
            self._clock.sleep(_LOOK_AGAIN_S)
        waiting = standing_of(replay).tried - known
        raise NotYet(_COME_BACK, f"waits for the outcome of {waiting} letters before it goes on")


def _replay(operation: Operation) -> Replay:
    replay = replays_with_operations().get(operation=operation)
    replay.operation = operation
    return replay


def _collect(run: OperationRun, replay: Replay) -> None:
    """Take all letters that were chosen. A filter may choose more than one transaction should take."""
    if replay.is_collected:
        return
    collector = LetterCollector(replay, chosen_letters(replay))
    while collected := collector.collect():
        run.operation.total += collected
        run.check()
    note_collected(replay)


def _later(error: QueueError) -> NotYet:
    return NotYet(_COME_BACK, waits_because(error.message))


def _summary(replay: Replay) -> str:
    skipped = f"; {replay.skipped:,} could not be sent, see their reasons" if replay.skipped else ""
    return f"sent {replay.sent:,} of {replay.operation.total:,} letters{skipped}"
