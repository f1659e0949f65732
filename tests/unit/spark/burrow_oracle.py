"""Burrow's rules as they are written in its evaluator, to compare ours with.

It sees commits and, now and then, where the brokers' logs end; of both it keeps the last ten. Its lag is that of the
time of a commit. What it has no word for, a group that never committed, it calls nothing at all: here OK.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from queueapi.choices import LagStatus

INTERVALS: Final = 10
BROKER_REFRESH_S: Final = 10


class Commit(NamedTuple):
    at_s: float
    offset: int
    lag: int


def burrow_status(commits: Sequence[Commit], ends: Sequence[int], now_s: float, allowed_lag: int = 0) -> LagStatus:
    """By its rules, in its order. `ends` has where the log ended at each look at the brokers."""
    commits, ends = commits[-INTERVALS:], ends[-INTERVALS:]
    if not commits or not ends or ends[-1] - commits[-1].offset <= allowed_lag:
        return LagStatus.OK
    if has_stopped(commits, now_s) and not was_at_the_end(commits, ends):
        return LagStatus.STOP
    if has_rewound(commits):
        return LagStatus.REWIND
    if any(commit.lag <= allowed_lag for commit in commits):
        return LagStatus.OK
    if len({commit.offset for commit in commits}) == 1:
        return LagStatus.STALL
    if all(after.lag >= before.lag for before, after in pairwise(commits)):
        return LagStatus.WARN
    return LagStatus.OK


def has_stopped(commits: Sequence[Commit], now_s: float) -> bool:
    return now_s - commits[-1].at_s > commits[-1].at_s - commits[0].at_s


def was_at_the_end(commits: Sequence[Commit], ends: Sequence[int]) -> bool:
    return any(end <= commits[-1].offset for end in ends)


def has_rewound(commits: Sequence[Commit]) -> bool:
    return any(
        after.offset < before.offset and all(later.offset < before.offset for later in commits[index + 1 :])
        for index, (before, after) in enumerate(pairwise(commits))
    )
