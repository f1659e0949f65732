"""One message in the hands of its handler."""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial

from queuecore.consuming.attempt import Attempt, Run
from queuecore.consuming.context import MessageHandler, OpenDelivery, Workplace
from queuecore.consuming.work import Outcome, Work
from queuecore.deadletter.replay import REPLAY_GROUP, is_for_another
from queuecore.messages import TENANT_ID, Record


class Deliverer:
    """Hands messages to the handler and tells the attempt what became of them. Safe from any thread."""

    def __init__(self, handler: MessageHandler, workplace: Workplace, group: str) -> None:
        self._handler: Callable[[Record, OpenDelivery], object] = handler
        self._group = group
        # Exchanged as a whole where the configuration changes.
        self.workplace = workplace

    def work_on(self, attempt: Attempt, run: Run) -> None:  # noqa: C901 - a call less for every message
        """Work through lanes until none is left, or the run is left behind. Every message passes here: what nearly none
        needs is done elsewhere."""
        handler, workplace = self._handler, self.workplace
        monotonic = workplace.clock.monotonic
        while (lane := attempt.next_lane()) is not None:
            behind = len(lane)
            for work in lane:
                behind -= 1
                started_at = monotonic()
                if not attempt.is_open or started_at >= attempt.submit_until:
                    attempt.leave_out(behind + 1)
                    break
                record = work.record
                headers = record.headers
                if REPLAY_GROUP in headers and is_for_another(headers, self._group):
                    attempt.pass_over(run, work)
                    continue
                work.deliveries += 1
                work.tenant = headers.get(TENANT_ID)
                context = OpenDelivery(workplace, record, work.deliveries, started_at)
                run.behind = behind
                run.context = context
                # The time first: who sees the new message must not see the old time.
                run.started_at = started_at
                run.current = work
                try:
                    if (returned := handler(record, context)) is not None:
                        _refuse_promise(returned)
                except BaseException as error:
                    context.close()
                    goes_on = attempt.end(run, work, Outcome.FAILED, error)
                else:
                    outgoing = context.close()
                    if context.postponed_s is None:
                        goes_on = attempt.succeed(run, work, outgoing, work.tenant)
                    else:
                        goes_on = self._postpone(attempt, run, work, context.postponed_s)
                if not goes_on:
                    break
            if run.is_abandoned:
                return

    async def work_on_async(self, attempt: Attempt, run: Run) -> None:
        """As `work_on`, for a handler that is to be awaited."""
        while not run.is_abandoned and (lane := attempt.next_lane()) is not None:
            behind = len(lane)
            for work in lane:
                behind -= 1
                started_at = self.workplace.clock.monotonic()
                if not attempt.is_open or started_at >= attempt.submit_until:
                    attempt.leave_out(behind + 1)
                    break
                if not await self._deliver_async(attempt, run, work, behind, started_at):
                    break

    async def _deliver_async(self, attempt: Attempt, run: Run, work: Work, behind: int, started_at: float) -> bool:
        """Whether the lane goes on."""
        record = work.record
        if is_for_another(record.headers, self._group):
            attempt.pass_over(run, work)
            return True
        work.deliveries += 1
        work.tenant = record.headers.get(TENANT_ID)
        context = OpenDelivery(self.workplace, record, work.deliveries, started_at)
        run.behind, run.context, run.started_at = behind, context, started_at
        run.current = work
        try:
            returned = self._handler(record, context)
            if isinstance(returned, Awaitable):
                await returned
        except BaseException as error:
            context.close()
            goes_on = attempt.end(run, work, Outcome.FAILED, error)
        else:
            outgoing = context.close()
            if context.postponed_s is None:
                goes_on = attempt.succeed(run, work, outgoing, work.tenant)
            else:
                goes_on = self._postpone(attempt, run, work, context.postponed_s)
        return goes_on

    def _postpone(self, attempt: Attempt, run: Run, work: Work, seconds: float) -> bool:
        due_at = self.workplace.clock.monotonic() + seconds
        return attempt.end(run, work, Outcome.POSTPONED, due_at=due_at)


def is_async(handler: object) -> bool:
    """Whether calling it gives something to be awaited."""
    function = handler.func if isinstance(handler, partial) else handler
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004
    )


def _refuse_promise(returned: object) -> None:
    """TypeError where a plain function has returned something to be awaited, which nobody would."""
    if not inspect.isawaitable(returned):
        return
    if isinstance(returned, Coroutine):
        returned.close()
    raise TypeError(f"the handler returned a {type(returned).__name__}, which nobody awaits; make it an `async def`")
