"""The story of a message's attempts: what each that did not end well ended with. Its letter tells it, bounded."""

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any, Final

# Of more attempts the first ones are told, which may have failed of something else, and the last.
MOST_ATTEMPTS: Final = 10
_FIRST_ONES: Final = 3
MAX_ATTEMPT_CHARACTERS: Final = 300

_KINDS: Final = (int, int, str, str, str)


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """`number`: the how manieth time a handler had the message. `outcome`: failed, or timed_out. `fault`: the class of
    what it failed of."""

    number: int
    failed_at_ms: int
    outcome: str
    fault: str
    message: str


def note_attempt(attempts: list[FailedAttempt], attempt: FailedAttempt) -> None:
    """Add it; of very many the middle ones go."""
    attempts.append(attempt)
    if len(attempts) > MOST_ATTEMPTS:
        del attempts[_FIRST_ONES]


def write_attempts(attempts: Iterable[FailedAttempt]) -> str:
    """As one header holds them; empty where there are none."""
    rows = [astuple(attempt) for attempt in attempts]
    return json.dumps(rows, separators=(",", ":")) if rows else ""


def read_attempts(text: str) -> tuple[FailedAttempt, ...]:
    """What `write_attempts` made; what is anything else is left out, so that any letter can be shown."""
    try:
        rows = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return ()
    return tuple(FailedAttempt(*row) for row in rows if _is_attempt(row)) if isinstance(rows, list) else ()


def _is_attempt(row: Any) -> bool:
    return isinstance(row, list) and tuple(map(type, row)) == _KINDS
