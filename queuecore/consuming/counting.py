"""How often what happened, and what the time went to."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Final, Literal

from queuecore.clock import Clock
from queuecore.consuming.work import Outcome
from queuecore.messages import TENANT_ID
from queuecore.metrics import MOST_TENANTS, OTHER
from queuecore.processing.strategies import Verdict

# What messages that are settled became.
Became = Literal["handled", "dead_lettered", "passed_over", "dropped"]


@dataclass(slots=True)
class ConsumptionCounts:
    """What became of the messages a consumption got, and of its attempts.

    polled                 messages read
    total                  messages submitted, counted anew in each attempt
    succeeded              of these, those whose handler returned
    tmp_failed             failed, and tried again
    tmp_timed_out          timed out, and tried again
    failed                 failed, and given up
    timed_out              timed out, and given up
    postponed              put off by their handler
    successful_iterations  attempts at a pack in which nothing failed or timed out
    failed_iterations      the others
    overruns               handlers left behind when their time was up
    handled                messages done, with what their handler sent stored
    dead_lettered          given up, and now in the dead-letter topic
    passed_over            replays for another group
    dropped                given up, and written nowhere but to the log
    sent                   messages that handlers sent, and that are stored
    stale_refused          commits that were refused because another has the partition, and partitions that were given
                           under an epoch older than another's
    processing_us          how long attempts took, from when a handler began with them
    """

    polled: int = 0
    total: int = 0
    succeeded: int = 0
    tmp_failed: int = 0
    tmp_timed_out: int = 0
    failed: int = 0
    timed_out: int = 0
    postponed: int = 0
    successful_iterations: int = 0
    failed_iterations: int = 0
    overruns: int = 0
    handled: int = 0
    dead_lettered: int = 0
    passed_over: int = 0
    dropped: int = 0
    sent: int = 0
    stale_refused: int = 0
    processing_us: int = 0

    @property
    def settled(self) -> int:
        """Messages that are done with, whatever became of them."""
        return self.handled + self.dead_lettered + self.passed_over + self.dropped

    @property
    def errors(self) -> int:
        """Deliveries that failed or timed out."""
        return self.retried + self.failed + self.timed_out

    @property
    def retried(self) -> int:
        """Deliveries after a failed one."""
        return self.tmp_failed + self.tmp_timed_out

    def original(self) -> dict[str, int]:
        """Under the names that ThingsBoard's statistics and metrics have. The time is in milliseconds."""
        statistics = {original: getattr(self, name) for original, name in _ORIGINAL_NAMES.items()}
        return statistics | {
            "queue.producer.sent": self.sent,
            "queue.consumer.polled": self.polled,
            "queue.processing.time": self.processing_us // 1000,
            "queue.errors": self.errors,
        }

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


_ORIGINAL_NAMES = {
    "totalMsgs": "total",
    "successfulMsgs": "succeeded",
    "tmpTimeout": "tmp_timed_out",
    "tmpFailed": "tmp_failed",
    "timeoutMsgs": "timed_out",
    "failedMsgs": "failed",
    "successfulIterations": "successful_iterations",
    "failedIterations": "failed_iterations",
}

OTHER_TENANTS: Final = OTHER


class Counter:
    """Counts, in all and for each tenant. Written by the thread that reads; may be read from any."""

    def __init__(self) -> None:
        self._counts = ConsumptionCounts()
        self._by_tenant: defaultdict[str, ConsumptionCounts] = defaultdict(ConsumptionCounts)

    def counts(self) -> ConsumptionCounts:
        return replace(self._counts)

    def by_tenant(self) -> dict[str, ConsumptionCounts]:
        """Under each tenant's id; empty: messages that name none."""
        return {tenant: replace(counts) for tenant, counts in list(self._by_tenant.items())}

    def add(self, name: str, number: int = 1) -> None:
        """To the counts in all alone."""
        setattr(self._counts, name, getattr(self._counts, name) + number)

    def attempt(self, succeeded: Mapping[bytes | None, int], verdict: Verdict, took_s: float = 0.0) -> None:
        """An attempt is over: how many messages of which tenant have succeeded in it, what became of the others, and
        how long it took. One in which nothing was submitted does not count."""
        if not succeeded and not verdict.given_up and not verdict.again and not verdict.postponed:
            return
        self.add("processing_us", round(took_s * 1_000_000))
        for tenant, number in succeeded.items():
            self._add_for(tenant, "succeeded", number)
        is_clean = True
        for works, names in ((verdict.given_up, _GIVEN_UP), (verdict.again, _AGAIN), (verdict.postponed, _POSTPONED)):
            for work in works:
                if (name := names.get(work.outcome)) is not None:
                    is_clean = is_clean and name == "postponed"
                    self._add_for(work.record.headers.get(TENANT_ID), name, 1)
        self.add("successful_iterations" if is_clean else "failed_iterations")

    def _add_for(self, tenant: bytes | None, name: str, number: int) -> None:
        """One of those that were submitted in an attempt."""
        name_of_tenant = "" if tenant is None else tenant.decode(errors="replace")
        if name_of_tenant not in self._by_tenant and len(self._by_tenant) >= MOST_TENANTS:
            name_of_tenant = OTHER_TENANTS
        for counts in (self._counts, self._by_tenant[name_of_tenant]):
            counts.total += number
            setattr(counts, name, getattr(counts, name) + number)


_GIVEN_UP = {Outcome.FAILED: "failed", Outcome.TIMED_OUT: "timed_out"}
_POSTPONED = {Outcome.POSTPONED: "postponed"}
_AGAIN = {Outcome.FAILED: "tmp_failed", Outcome.TIMED_OUT: "tmp_timed_out"}

Activity = Literal["poll", "process", "back_pressure", "commit"]


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """What a consumption's reading thread did with its time, in seconds since it began. Together they are all of it:
    over a second, they add up to one.

    poll           asking for messages, and waiting for some
    process        waiting for handlers, with room for more messages
    back_pressure  waiting for handlers, or for the end of a pause, and reading no more for that reason
    commit         storing what handlers sent, and committing
    """

    poll: float = 0.0
    process: float = 0.0
    back_pressure: float = 0.0
    commit: float = 0.0


@dataclass(slots=True)
class Stopwatch:
    """Adds up a TimeBudget. For the thread that reads; `budget` may be read from any."""

    clock: Clock
    _since: float = field(init=False)
    _spent: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self._since = self.clock.monotonic()
        self._spent = {one.name: 0.0 for one in fields(TimeBudget)}

    def spent_on(self, activity: Activity) -> None:
        """Everything since the last call."""
        now = self.clock.monotonic()
        self._spent[activity] += now - self._since
        self._since = now

    @property
    def budget(self) -> TimeBudget:
        return TimeBudget(**self._spent)
