"""How a replay goes about it: how fast, how carefully, and when it stops. Pure rules, without a database."""

import re
from dataclasses import dataclass
from typing import Final

from queueapi.errors import InvalidInput

DEFAULT_RAMP: Final = (1, 10, 100)
MAX_RATE_PER_S: Final = 1_000_000
MAX_STEPS: Final = 20

# As `why_stop` begins.
_REASON_TO_STOP: Final = re.compile(r"\d+ of \d+ letters failed again, more than ")


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """What whoever starts a replay may choose.

    rate_per_s   how many letters are sent in a second at most; None: as many as can be
    ramp         after so many letters in all it waits until each has had its outcome, and goes on only if not too many
                 failed again
    abort_ratio  the share of outcomes, up to 1, that may be failures; None: all of them
    abort_min    so many must have failed before the ratio ends the replay; at a step of the ramp one is enough
    max_replays  a letter that was replayed so often before is refused: it would go on for ever
    """

    rate_per_s: float | None = None
    ramp: tuple[int, ...] = ()
    abort_ratio: float | None = 0.5
    abort_min: int = 10
    max_replays: int = 5

    def __post_init__(self) -> None:
        if self.rate_per_s is not None and not 0 < self.rate_per_s <= MAX_RATE_PER_S:
            raise InvalidInput(
                f"rate_per_s is {self.rate_per_s:g}; use more than 0 and at most {MAX_RATE_PER_S:,}, or leave it out"
            )
        steps = (0, *self.ramp)
        if len(self.ramp) > MAX_STEPS or any(first >= then for first, then in zip(steps, self.ramp, strict=False)):
            raise InvalidInput(
                f"the ramp is {', '.join(map(str, self.ramp))}; use at most {MAX_STEPS} steps from 1 on, each larger "
                "than the one before"
            )
        if self.abort_ratio is not None and not 0 < self.abort_ratio <= 1:
            raise InvalidInput(f"abort_ratio is {self.abort_ratio:g}; use more than 0 and at most 1, or none at all")
        if self.abort_min < 1 or self.max_replays < 1:
            raise InvalidInput(f"abort_min is {self.abort_min} and max_replays {self.max_replays}; use 1 or more")

    def longest_s(self, letters: int) -> float | None:
        """How long sending so many takes at this rate; None where nothing limits it."""
        return None if self.rate_per_s is None else letters / self.rate_per_s


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a replay is. `skipped` are the letters that it refused to send."""

    total: int
    sent: int
    succeeded: int
    failed: int
    skipped: int

    @property
    def tried(self) -> int:
        """How many have had their turn."""
        return self.sent + self.skipped

    @property
    def decided(self) -> int:
        """Of how many it is known what became of them."""
        return self.succeeded + self.failed + self.skipped


def sent_at_most(settings: ReplaySettings, standing: Standing) -> int:
    """Up to how many letters may have had their turn by now."""
    waiting = (step for step in settings.ramp if standing.decided < step)
    return min(next(waiting, standing.total), standing.total)


def why_stop(settings: ReplaySettings, standing: Standing) -> str:
    """Why the replay must end now; empty where it may go on."""
    outcomes = standing.succeeded + standing.failed
    if settings.abort_ratio is None or standing.failed <= settings.abort_ratio * outcomes:
        return ""
    is_at_step = standing.tried in settings.ramp and standing.decided >= standing.tried
    if standing.failed < settings.abort_min and not is_at_step:
        return ""
    return (
        f"{standing.failed} of {outcomes} letters failed again, more than {settings.abort_ratio:.0%}; look at why, "
        f"then replay the {standing.total - standing.tried} that were not sent and are open again"
    )


def is_reason_to_stop(text: str) -> bool:
    """Whether `why_stop` said so: how the letters did, and nothing that went wrong elsewhere."""
    return _REASON_TO_STOP.match(text) is not None
