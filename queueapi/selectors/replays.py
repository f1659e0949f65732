"""What a replay is, and what it has to do next."""

from uuid import UUID

from django.db.models import QuerySet

from queueapi.addressing import addresses
from queueapi.choices import ReplayItemState
from queueapi.models import DeadLetter, Queue, Replay, ReplayChunk, ReplayItem
from queueapi.replay_messages import Route
from queueapi.replaying import ReplaySettings, Standing
from queueapi.selectors.letter_filter import selection_of
from queueapi.selectors.replay_readiness import ready_letters


def replays_with_operations() -> QuerySet[Replay]:
    return Replay.objects.select_related("operation__created_by", "target")


def skipped_items(replay: Replay) -> QuerySet[ReplayItem]:
    """Letters that the replay refused, with the reason."""
    return replay.items.filter(state=ReplayItemState.SKIPPED).order_by("sequence")


def letters_of_chunk(chunk: ReplayChunk) -> set[UUID]:
    between = (chunk.first_sequence, chunk.last_sequence)
    items = ReplayItem.objects.filter(replay=chunk.replay_id, sequence__range=between)
    return set(items.values_list("letter_id", flat=True))


def chosen_letters(replay: Replay) -> QuerySet[DeadLetter]:
    """The letters that a replay was started for, and does not have yet. What became open later is not meant."""
    ready = ready_letters(selection_of(replay.filter), replay.target, settings_of(replay))
    return ready.filter(state_changed_at__lte=replay.operation.created_at)


def standing_of(replay: Replay) -> Standing:
    return Standing(replay.operation.total, replay.sent, replay.succeeded, replay.failed, replay.skipped)


def settings_of(replay: Replay) -> ReplaySettings:
    ramp = tuple(replay.ramp)
    return ReplaySettings(replay.rate_per_s, ramp, replay.abort_ratio, replay.abort_min, replay.max_replays)


def route_of(replay: Replay) -> Route:
    return Route(Queue.objects.all(), replay.target, addresses())
