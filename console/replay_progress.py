"""How far a replay is, as one bar: what became of its letters, what waits, and what it waits for."""

from dataclasses import dataclass

from django.core.exceptions import ObjectDoesNotExist

from queueapi.choices import Tone
from queueapi.models import Operation, Replay
from queueapi.replaying import sent_at_most
from queueapi.selectors.replays import settings_of, standing_of


@dataclass(frozen=True, slots=True)
class Part:
    """So many letters of a replay; `begin` and `share` are of the bar's length, 0 to 1."""

    label: str
    tone: Tone
    count: int
    begin: float
    share: float


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
    counts = [
        ("handled", Tone.GOOD, replay.succeeded),
        ("failed again", Tone.BAD, replay.failed),
        ("sent, outcome to come", Tone.BUSY, waiting),
        ("left out", Tone.WARN, replay.skipped),
        ("not sent yet" if not operation.state_choice.is_final else "not sent", Tone.QUIET, _unsent(operation, replay)),
    ]
    allowed = sent_at_most(settings_of(replay), standing)
    is_waiting = not operation.state_choice.is_final and standing.tried >= allowed and standing.tried < standing.total
    return ReplayProgress(replay, _parts(counts), standing.tried if is_waiting else None)


def _unsent(operation: Operation, replay: Replay) -> int:
    return max(0, operation.total - replay.sent - replay.skipped)


def _parts(counts: list[tuple[str, Tone, int]]) -> list[Part]:
    total = sum(count for *_, count in counts) or 1
    parts, begin = [], 0.0
    for label, tone, count in counts:
        if count:
            parts.append(Part(label, tone, count, begin, count / total))
            begin += count / total
    return parts
