"""The six processing strategies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from queuecore.consuming.work import Outcome, Work
from queuecore.deadletter.attempts import note_attempt
from queuecore.deadletter.envelope import describe_attempt
from queuecore.errors import ConfigurationError, GivenUp, UndecodableMessage


class ProcessingStrategyType(StrEnum):
    """What becomes of messages that failed or timed out.

    SKIP_ALL_FAILURES                given up; the handler of one that timed out may go on by itself
    SKIP_ALL_FAILURES_AND_TIMED_OUT  given up; the handler of one that timed out is told to stop
    RETRY_ALL                        the whole pack is tried again, whoever failed
    RETRY_FAILED                     those that failed are tried again; those that timed out are given up
    RETRY_TIMED_OUT                  those that timed out are tried again; those that failed are given up
    RETRY_FAILED_AND_TIMED_OUT       both are tried again
    """

    SKIP_ALL_FAILURES = "SKIP_ALL_FAILURES"
    SKIP_ALL_FAILURES_AND_TIMED_OUT = "SKIP_ALL_FAILURES_AND_TIMED_OUT"
    RETRY_ALL = "RETRY_ALL"
    RETRY_FAILED = "RETRY_FAILED"
    RETRY_TIMED_OUT = "RETRY_TIMED_OUT"
    RETRY_FAILED_AND_TIMED_OUT = "RETRY_FAILED_AND_TIMED_OUT"


_RETRIED: Final[dict[ProcessingStrategyType, frozenset[Outcome]]] = {
    ProcessingStrategyType.SKIP_ALL_FAILURES: frozenset(),
    ProcessingStrategyType.SKIP_ALL_FAILURES_AND_TIMED_OUT: frozenset(),
    ProcessingStrategyType.RETRY_ALL: frozenset({Outcome.FAILED, Outcome.TIMED_OUT}),
    ProcessingStrategyType.RETRY_FAILED: frozenset({Outcome.FAILED}),
    ProcessingStrategyType.RETRY_TIMED_OUT: frozenset({Outcome.TIMED_OUT}),
    ProcessingStrategyType.RETRY_FAILED_AND_TIMED_OUT: frozenset({Outcome.FAILED, Outcome.TIMED_OUT}),
}
_TROUBLE: Final = (Outcome.FAILED, Outcome.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of the messages of an attempt. Those in none of the lists are carried into the next one.

    done       handled
    given_up   skipped, or out of retries; `Work.reason` says which
    again      to be tried again, from their `due_at` on
    postponed  carried as well, but of their handler's own accord
    """

    done: list[Work] = field(default_factory=list)
    given_up: list[Work] = field(default_factory=list)
    again: list[Work] = field(default_factory=list)
    postponed: list[Work] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProcessingStrategy:
    """The policy.

    retries             how often a message is tried again before it is given up; 0: without limit
    failure_percentage  from 0 to 100: where more of the messages that an attempt submits for the first time fail or
                        time out, those are given up at once; 0: never
    pause_ms            before a message is tried again; doubles with each of its failures
    max_pause_ms        the longest pause
    """

    kind: ProcessingStrategyType = ProcessingStrategyType.SKIP_ALL_FAILURES
    retries: int = 3
    failure_percentage: float = 0
    pause_ms: int = 200
    max_pause_ms: int = 5_000

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ConfigurationError(f"retries is {self.retries}; use 0 (without limit) or more")
        if not 0 <= self.failure_percentage <= 100:
            raise ConfigurationError(
                f"failure_percentage is {self.failure_percentage:g}; use 0 (off) to 100: it is in percent"
            )
        if not 0 <= self.pause_ms <= self.max_pause_ms:
            raise ConfigurationError(
                f"the pause between retries is {self.pause_ms} ms and at most {self.max_pause_ms} ms; "
                "use 0 or more, and no less as the most"
            )

    @property
    def retries_pack(self) -> bool:
        """Whether messages that succeeded are handled again with those that did not."""
        return self.kind is ProcessingStrategyType.RETRY_ALL

    @property
    def cancels_overruns(self) -> bool:
        """Whether a handler whose time is up is told so."""
        return self.kind is not ProcessingStrategyType.SKIP_ALL_FAILURES

    def may_retry(self, work: Work, outcome: Outcome) -> bool:
        """Whether a message with this outcome would be tried again, and so holds back its lane. `failures` does not
        count this one yet."""
        return (
            outcome in _RETRIED[self.kind]
            and (self.retries == 0 or work.failures < self.retries)
            and not isinstance(work.error, UndecodableMessage | GivenUp)
        )

    def decide(self, attempted: Sequence[Work], now_s: float, now_ms: int) -> Verdict:
        """Count the failures of an attempt and say what becomes of its messages."""
        verdict = Verdict()
        troubled = []
        for work in attempted:
            if work.outcome is Outcome.SUCCEEDED or work.outcome is Outcome.PASSED_OVER:
                verdict.done.append(work)
            elif work.outcome in _TROUBLE:
                troubled.append(work)
            elif work.outcome is Outcome.POSTPONED:
                verdict.postponed.append(work)
        if not troubled:
            return verdict
        too_many = self._are_too_many(troubled, verdict.done)
        for work in troubled:
            retried = self.may_retry(work, work.outcome)
            trouble = work.trouble
            trouble.failures += 1
            trouble.first_failed_at_ms = trouble.first_failed_at_ms or now_ms
            outcome = work.outcome.name.lower()
            note_attempt(trouble.attempts, describe_attempt(work.deliveries, now_ms, outcome, trouble.error))
            if retried and not (too_many and trouble.failures == 1):
                trouble.due_at = now_s + self.pause_after_ms(trouble.failures) / 1000
                verdict.again.append(work)
            else:
                trouble.reason = "failure_percentage" if retried else self._reason(work)
                verdict.given_up.append(work)
        if self.retries_pack and verdict.again:
            self._retry_with_all(verdict)
        return verdict

    def _are_too_many(self, troubled: Sequence[Work], done: Sequence[Work]) -> bool:
        """Of those that were handed over for the first time. Who fails again tells nothing new: it was among few of its
        first attempt, and is nearly all of a later one."""
        failed = sum(work.failures == 0 for work in troubled)
        succeeded = sum(work.outcome is Outcome.SUCCEEDED and work.failures == 0 for work in done)
        return failed > 0 and 0 < self.failure_percentage < 100 * failed / (failed + succeeded)

    def pause_after_ms(self, failures: int) -> int:
        doubled: int = self.pause_ms * 2 ** min(failures - 1, 62)
        return min(self.max_pause_ms, doubled)

    def _reason(self, work: Work) -> str:
        if isinstance(work.error, UndecodableMessage):
            return "undecodable"
        if isinstance(work.error, GivenUp):
            return "given_up"
        if work.outcome in _RETRIED[self.kind]:
            return "retries_exhausted"
        return "failed" if work.outcome is Outcome.FAILED else "timed_out"

    def _retry_with_all(self, verdict: Verdict) -> None:
        """Those that succeeded are handled again as often as a message may be tried again, and no more: from then on
        only the others are."""
        due_at = max(work.due_at for work in verdict.again)
        if self.retries == 0 or all(work.deliveries <= self.retries for work in verdict.done):
            verdict.again.extend(verdict.done)
            verdict.done.clear()
        for work in verdict.again:
            work.trouble.due_at = due_at
            work.outgoing = ()


def processing_strategy(name: ProcessingStrategyType | str, **options: float) -> ProcessingStrategy:
    """The one of that name, with these fields of ProcessingStrategy. ConfigurationError lists the names there are."""
    try:
        kind = ProcessingStrategyType(name)
    except ValueError:
        names = ", ".join(ProcessingStrategyType)
        raise ConfigurationError(f"there is no processing strategy {name!r}; choose one of {names}") from None
    return ProcessingStrategy(kind, **options)  # type: ignore[arg-type]
