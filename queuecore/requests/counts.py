"""What became of requests, in numbers."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

# Upper bounds, in milliseconds, of how long answers took; the last bucket is for what took longer.
LAG_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)


class LagHistogram:
    """How long answers took, counted by buckets. For one thread; others may look."""

    __slots__ = ("buckets", "longest_ms", "total_ms")

    def __init__(self) -> None:
        self.buckets = [0] * (len(LAG_BOUNDS_MS) + 1)
        self.total_ms = 0.0
        self.longest_ms = 0.0

    def add(self, lags_ms: Iterable[float]) -> None:
        buckets, longest_ms, total_ms = self.buckets, self.longest_ms, 0.0
        for lag_ms in lags_ms:
            buckets[bisect_left(LAG_BOUNDS_MS, lag_ms)] += 1
            total_ms += lag_ms
            if lag_ms > longest_ms:
                longest_ms = lag_ms
        self.total_ms += total_ms
        self.longest_ms = longest_ms


def lag_percentile(buckets: Sequence[int], percent: float) -> float:
    """Below which bound so many percent of the answers were, in milliseconds; infinite beyond the last, 0 for none."""
    if not any(buckets):
        return 0.0
    wanted = sum(buckets) * percent / 100
    bounds_ms = (*LAG_BOUNDS_MS, float("inf"))
    return float(next(bound for seen, bound in zip(accumulate(buckets), bounds_ms, strict=True) if seen >= wanted))


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """Of who asks, since it was started. Every request that was sent is pending, or counted in one of the next five.

    pending         wait for their answers now
    pending_memory  bytes that these take
    oldest_ms       how long the oldest of these waits
    age_buckets     how many of these wait up to each of `LAG_BOUNDS_MS`, and longer
    sent            were given out to callers as futures
    answered        have their answers
    failed          were answered with an error
    timed_out       had no answer in time
    not_stored      the provider refused, or could not take
    cancelled       were given up by their callers, or by stopping
    refused         were never sent: as many were pending as may
    late            answers to requests that had ended: timed out, cancelled, or answered already
    orphans         answers to requests of another life of this instance, or to none
    lag_buckets     how long answers took, by `LAG_BOUNDS_MS`
    lag_total_ms    how long all answers together took
    lag_longest_ms  the longest of them
    """

    pending: int = 0
    pending_memory: int = 0
    oldest_ms: int = 0
    age_buckets: tuple[int, ...] = (0,) * (len(LAG_BOUNDS_MS) + 1)
    sent: int = 0
    answered: int = 0
    failed: int = 0
    timed_out: int = 0
    not_stored: int = 0
    cancelled: int = 0
    refused: int = 0
    late: int = 0
    orphans: int = 0
    lag_buckets: tuple[int, ...] = (0,) * (len(LAG_BOUNDS_MS) + 1)
    lag_total_ms: float = 0.0
    lag_longest_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class ResponseCounts:
    """Of who answers, since it was started.

    pending        were read, and are not answered yet
    answered       were handled, and their answer is stored
    failed         were answered with an error, as their handler raised
    timed_out      were answered with an error, as their handler took too long
    expired        were read when nobody waited for them any more
    malformed      were no requests: their headers do not say whom to answer, or until when
    undeliverable  have an answer that could not be stored: who asked is gone, or did not wait for so long
    """

    pending: int = 0
    answered: int = 0
    failed: int = 0
    timed_out: int = 0
    expired: int = 0
    malformed: int = 0
    undeliverable: int = 0
