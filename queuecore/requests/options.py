"""How many requests may wait, and for how long."""

from dataclasses import dataclass

from queuecore.errors import ConfigurationError


def _at_least_one(options: object, *names: str) -> None:
    for name in names:
        if (value := getattr(options, name)) < 1:
            raise ConfigurationError(f"{name} is {value}; 1 is the least")


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Of who asks.

    max_pending_requests    how many may wait for their answers; one more is refused at once
    max_request_timeout_ms  how long one waits that does not say so itself, and the most that one may say
    poll_interval_ms        how much later than its time a timeout may be told, and how long one look for answers takes
                            where none come
    """

    max_pending_requests: int = 10_000
    max_request_timeout_ms: int = 60_000
    poll_interval_ms: int = 25

    def __post_init__(self) -> None:
        _at_least_one(self, "max_pending_requests", "max_request_timeout_ms", "poll_interval_ms")

    def timeout_ms(self, wanted: int | None) -> int:
        """How long a request waits. ConfigurationError for more than the most, or for no time at all."""
        if wanted is None:
            return self.max_request_timeout_ms
        if not 0 < wanted <= self.max_request_timeout_ms:
            raise ConfigurationError(
                f"timeout_ms is {wanted}; use 1 to {self.max_request_timeout_ms}, or raise max_request_timeout_ms"
            )
        return wanted


@dataclass(frozen=True, slots=True)
class ResponseOptions:
    """Of who answers.

    max_pending_requests  how many may be read and not answered yet; beyond that, nothing is read
    request_timeout_ms    how long a handler may take, where the request does not expire sooner
    poll_interval_ms      how long one look for requests takes where none come
    concurrency           how many are handled at the same time: by threads, or by tasks if the handler is async
    max_overruns          how many threads may be left behind with handlers that overran their time, before fewer than
                          `concurrency` go on
    max_poll_requests     the most that are read at once, and never more than a quarter of what may be pending
    commit_interval_ms    how often it is stored how far requests are answered; a crash answers those since then again
    drain_timeout_ms      how long requests under way are waited for when a partition goes to another responder
    """

    max_pending_requests: int = 10_000
    request_timeout_ms: int = 60_000
    poll_interval_ms: int = 25
    concurrency: int = 16
    max_overruns: int = 16
    max_poll_requests: int = 1_000
    commit_interval_ms: int = 100
    drain_timeout_ms: int = 5_000

    def __post_init__(self) -> None:
        _at_least_one(self, "max_pending_requests", "request_timeout_ms", "poll_interval_ms", "concurrency")
        _at_least_one(self, "max_poll_requests", "commit_interval_ms")
        for name in ("max_overruns", "drain_timeout_ms"):
            if (value := getattr(self, name)) < 0:
                raise ConfigurationError(f"{name} is {value}; 0 is the least")

    @property
    def poll_requests(self) -> int:
        """How many are read at once: so many that what is read never is more than may be pending, and so few that
        reading does not wait until nearly all of them are answered."""
        return min(self.max_poll_requests, max(1, self.max_pending_requests // 4))
