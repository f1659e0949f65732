"""How many requests one may send: counted in this process's memory, by the minute of the clock."""

from collections import Counter
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from queueapi.config import config
from queueapi.rest.conventions.principals import is_anonymous, principal_of
from queueapi.rest.conventions.refusals import RateLimited
from queuecore.clock import SYSTEM_CLOCK, Clock

WINDOW_MS: Final = 60_000

_NOTED: Final = "switchyard_rate"


@dataclass(frozen=True, slots=True)
class Rate:
    """What is left of a limit, and for how many seconds."""

    limit: int
    remaining: int
    reset_s: int
    is_exceeded: bool

    @property
    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }


class RateCounter:
    """Counts by principal. All windows begin at once, so what has ended is forgotten in one go. For all threads."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = Lock()
        self._window = -1
        self._counts: Counter[str] = Counter()

    def count(self, principal: str, limit: int) -> Rate:
        """One request more."""
        now_ms = self._clock.now_ms()
        window, into_ms = divmod(now_ms, WINDOW_MS)
        with self._lock:
            if window != self._window:
                self._window = window
                self._counts.clear()
            self._counts[principal] += 1
            count = self._counts[principal]
        return Rate(limit, max(0, limit - count), -(-(WINDOW_MS - into_ms) // 1000), count > limit)


counter = RateCounter()


class PrincipalThrottle(BaseThrottle):
    """DRF asks it once who sent the request is known. Without a query: RateLimited says for how long."""

    def allow_request(self, request: Request, view: Any) -> bool:  # noqa: ARG002
        rate = _counted(request)
        setattr(request._request, _NOTED, rate)  # noqa: SLF001 - DRF's documented way to the request beneath
        if rate.is_exceeded:
            raise RateLimited(rate.limit, rate.reset_s)
        return True


def rate_of(request: HttpRequest) -> Rate:
    """What is left after this request. What was refused before it was counted is counted here."""
    rate: Rate | None = getattr(request, _NOTED, None)
    return _counted(request) if rate is None else rate


def _counted(request: Request | HttpRequest) -> Rate:
    principal, settings = principal_of(request), config().rest
    is_nobody = is_anonymous(principal)
    limit = settings.anonymous_requests_per_minute if is_nobody else settings.requests_per_minute
    return counter.count(principal, limit)
