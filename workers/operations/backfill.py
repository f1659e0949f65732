"""Making summaries anew: a day at a time, between the scheduled runs."""

from datetime import date, timedelta
from functools import partial
from typing import Final

from queueapi.selectors.operation_words import waits_because
from queuecore.clock import SYSTEM_CLOCK, Clock
from workers.operations.run import NotYet, OperationRun

# So long it keeps the Spark worker, then a scheduled run has its turn: pages stay fresh.
TURN_S: Final = 20.0
_COME_BACK: Final = timedelta(seconds=1)


class BackfillKind:
    """A day is made anew in one transaction, with the note that it is: a runner may die anywhere."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock

    def settle(self, run: OperationRun) -> None:
        """An earlier runner has left nothing behind."""

    def run(self, run: OperationRun) -> str:
        # Only a worker that runs it loads Spark.
        from workers.spark.backfill import backfill_day
        from workers.spark.errors import PipelineBusy, SparkUnavailable

        first = date.fromisoformat(run.operation.params["first"])
        until = self._clock.monotonic() + TURN_S
        for number in range(run.operation.done, run.operation.total):
            if self._clock.monotonic() >= until:
                raise NotYet(_COME_BACK, "lets scheduled runs have their turn")
            try:
                backfill_day(first + timedelta(days=number), partial(run.note, number + 1))
            except (PipelineBusy, SparkUnavailable) as error:
                raise NotYet(timedelta(seconds=10), waits_because(error.message)) from error
            run.check()
        # No rows are told: of those of earlier turns nobody knows.
        days = run.operation.total
        return f"the summaries of {days:,} day{'' if days == 1 else 's'} are made anew"

    def give_back(self, run: OperationRun) -> None:
        """The days that are done stay so."""
