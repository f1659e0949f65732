"""What lag is judged by."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LagOptions:
    """What is judged by.

    window_s           how far back samples count; longer than the longest time between two commits that is usual
    rate_window_s      the same for rates and the trend
    allowed_lag        as many may always wait
    tiny_lag           as many may wait after a commit though nothing is left to do: a transaction's marker has an
                       offset, and nobody commits it
    stop_after_s       nobody stands still who has committed within this time
    stop_gaps          nor within as many times the usual time between two commits
    stop_unknown_s     nor within this time, where it is not known how often commits come
    warn_after_s       nobody falls behind who has caught up within this time
    warn_lag_s         nor who is less behind than this
    turn               nor whose lag has fallen by such a part of it; and it rises again only when it has by as much
    clock_skew_s       by how much the clocks of two who sample may differ
    """

    window_s: float = 600.0
    rate_window_s: float = 60.0
    allowed_lag: int = 0
    tiny_lag: int = 1
    stop_after_s: float = 60.0
    stop_gaps: float = 4.0
    stop_unknown_s: float = 120.0
    warn_after_s: float = 120.0
    warn_lag_s: float = 30.0
    turn: float = 0.1
    clock_skew_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Extent:
    """Of what time a batch is.

    since_us  its first minute, in microseconds since 1970: it can have nothing of those before
    is_long   whether it is of a much longer time than is judged by, so that most of it says nothing of the present
    """

    since_us: int = 0
    is_long: bool = False
