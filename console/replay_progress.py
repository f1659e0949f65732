"""How far a replay is, as one bar: what became of its letters, what waits, and what it waits for."""

from dataclasses import dataclass

from django.core.exceptions import ObjectDoesNotExist

from queueapi.choices import LetterState, Tone
from queueapi.models import Operation, Replay
from queueapi.replaying import sent_at_most
from queueapi.selectors.replays import settings_of, standing_of

_Count = tuple[str, Tone, int, LetterState | None]


@dataclass(frozen=True, slots=True)
class Part:
    """So many letters of a replay; `begin` and `share` are of the bar's length, 0 to 1. `state` is what those letters
    alone are in; None where no state tells which they are."""

    label: str
    tone: Tone
    count: int
    begin: float
    share: float
    state: LetterState | None


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """`waits_at` is how many it has sent when it waits for their outcomes; None where it does not wait for that."""

    replay: Replay
    parts: list[Part]
    waits_at: int | None


def replay_progress(operation: Operation) -> ReplayProgress | None:
    """None where the operation is none."""
    try:
        replay = operation.replay
    except ObjectDoesNotExist:
        return None
    standing = standing_of(replay)
    waiting = max(0, replay.sent - replay.succeeded - replay.failed)
    unsent = _unsent(operation, replay)
    counts: list[_Count] = [
        ("handled", Tone.GOOD, replay.succeeded, LetterState.REPLAYED),
        ("failed again", Tone.BAD, replay.failed, LetterState.FAILED_AGAIN),
        # So are those that are not sent yet.
        ("sent, outcome to come", Tone.BUSY, waiting, None if unsent else LetterState.REPLAYING),
        ("left out", Tone.WARN, replay.skipped, LetterState.OPEN),
        ("not sent yet" if not operation.state_choice.is_final else "not sent", Tone.QUIET, unsent, None),
    ]
    allowed = sent_at_most(settings_of(replay), standing)
    is_waiting = not operation.state_choice.is_final and standing.tried >= allowed and standing.tried < standing.total
    return ReplayProgress(replay, _parts(counts), standing.tried if is_waiting else None)


def _unsent(operation: Operation, replay: Replay) -> int:
    return max(0, operation.total - replay.sent - replay.skipped)


def _parts(counts: list[_Count]) -> list[Part]:
    total = sum(count for _, _, count, _ in counts) or 1
    parts, begin = [], 0.0
    for label, tone, count, state in counts:
        if count:
            parts.append(Part(label, tone, count, begin, count / total, state))
            begin += count / total
    return parts
