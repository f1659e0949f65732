"""What a replay would do, shown before it is started."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from queueapi.addressing import addresses
from queueapi.change_plans import Change
from queueapi.choices import CONSUMED_QUEUE_STATES, LetterState, QueueState
from queueapi.models import DeadLetter, Pause, Queue
from queueapi.replay_messages import Route, key_of
from queueapi.replaying import ReplaySettings
from queueapi.selectors.letter_filter import LetterFilter, Selection, selected_letters
from queueapi.selectors.letter_plans import letters_told
from queueapi.selectors.services import living
from queuecore.deadletter.foreign import Origin

# As many letters of one refusal are named.
_NAMED: Final = 10

_WHY_NOT: Final = {
    LetterState.REPLAYING: "are being replayed already",
    LetterState.REPLAYED: "were replayed, and their handler succeeded",
    LetterState.FAILED_AGAIN: "failed again, and live on as the letters that their replays became",
    LetterState.DISCARDED: "were discarded; restore them first",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Letters that are chosen, and not sent. `examples` are some of them."""

    reason: str
    count: int
    examples: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class TargetCount:
    """How many letters go to one partition of a queue."""

    queue: Queue
    partition: int
    letters: int


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay would do. `duration_s` is None where nothing limits how fast it sends."""

    letters: int
    targets: tuple[TargetCount, ...]
    refused: tuple[Refusal, ...]
    warnings: tuple[str, ...]
    duration_s: float | None

    @property
    def summary(self) -> str:
        return f"{letters_told(self.letters)} would be sent"

    @property
    def changes(self) -> tuple[Change, ...]:
        states = LetterState.OPEN.value, LetterState.REPLAYING.value
        return tuple(
            Change(
                f"the state of {letters_told(count.letters)}, for partition {count.partition} of {count.queue}", *states
            )
            for count in self.targets
        )


def plan_replay(selection: Selection, target: Queue | None, settings: ReplaySettings) -> ReplayPlan:
    """What this replay would do if it were started now."""
    ready = ready_letters(selection, target, settings)
    targets = tuple(_targets(ready, target))
    letters = sum(count.letters for count in targets)
    return ReplayPlan(
        letters=letters,
        targets=targets,
        refused=tuple(_refusals(selection, target, settings)),
        warnings=tuple(_warnings(targets, target, settings)),
        duration_s=settings.longest_s(letters),
    )


def ready_letters(selection: Selection, target: Queue | None, settings: ReplaySettings) -> QuerySet[DeadLetter]:
    """The letters that may be sent."""
    refused = Q()
    for condition, _reason in _conditions(target, settings):
        refused |= condition
    return selected_letters(selection).filter(~refused, state=LetterState.OPEN)


def _conditions(target: Queue | None, settings: ReplaySettings) -> list[tuple[Q, str]]:
    """Why open letters are refused."""
    most = settings.max_replays
    conditions = [
        (Q(replay_count__gte=most), f"were replayed {most} times or more; mend their cause, or allow more replays"),
        (~Q(payload_missing="") & Q(is_edited=False), "have lost their payload; edit them to give them another"),
    ]
    deleting = "would go to a queue that is being deleted; name another target, or discard them"
    if target is None:
        conditions.append((Q(queue__state=QueueState.DELETING), deleting))
    elif target.state not in CONSUMED_QUEUE_STATES:
        conditions.append((Q(pk__isnull=False), f"would go to {target}, which is {target.state}; name another target"))
    if target is not None and target.only_tenant_id is not None:
        others = Q(tenant__isnull=True) | ~Q(tenant=target.only_tenant_id)
        conditions.append((others, f"are not of tenant {target.only_tenant_id}, whose messages {target} takes alone"))
    return conditions


def _refusals(selection: Selection, target: Queue | None, settings: ReplaySettings) -> Iterator[Refusal]:
    """A filter that names no state means open letters."""
    chosen = selected_letters(selection)
    for condition, reason in _conditions(target, settings):
        yield from _refusal(chosen.filter(condition, state=LetterState.OPEN), reason)
    if not isinstance(selection, LetterFilter) or selection.state is not None:
        for state, reason in _WHY_NOT.items():
            yield from _refusal(chosen.filter(state=state), reason)
    if not isinstance(selection, LetterFilter):
        missing = sorted(set(selection) - set(chosen.values_list("id", flat=True)))
        if missing:
            yield Refusal("do not exist; reload the list", len(missing), tuple(missing[:_NAMED]))


def _refusal(letters: QuerySet[DeadLetter], reason: str) -> Iterator[Refusal]:
    if count := letters.order_by().count():
        yield Refusal(reason, count, tuple(letters.order_by().values_list("id", flat=True)[:_NAMED]))


def _targets(ready: QuerySet[DeadLetter], target: Queue | None) -> list[TargetCount]:
    numbers: Counter[tuple[UUID, int]] = Counter()
    routed = ready
    if target is None:
        own = Q(origin=Origin.SWITCHYARD)
        places = ready.filter(own).order_by().values_list("queue_id", "partition").annotate(letters=Count("pk"))
        numbers.update({(queue, partition): letters for queue, partition, letters in places})
        routed = ready.exclude(own)
    numbers += _routed(routed, target)
    queues = Queue.objects.in_bulk({queue for queue, _partition in numbers})
    counts = [TargetCount(queues[queue], partition, letters) for (queue, partition), letters in numbers.items()]
    return sorted(counts, key=lambda count: (count.queue.name, count.partition))


def _routed(ready: QuerySet[DeadLetter], target: Queue | None) -> Counter[tuple[UUID, int]]:
    """By the keys that the letters had: few are edited."""
    route = Route(() if target else Queue.objects.all(), target, addresses())
    columns = ("queue_id", "topic", "partition", "key", "raw_key", "origin")
    numbers: Counter[tuple[UUID, int]] = Counter()
    for queue, topic, partition, key, raw, origin in ready.order_by().values_list(*columns).iterator(chunk_size=5_000):
        info = route.info(queue, topic, partition, key_of(key, raw), origin=origin)
        numbers[target.id if target else queue, info.partition or 0] += 1
    return numbers


def _warnings(targets: Sequence[TargetCount], target: Queue | None, settings: ReplaySettings) -> Iterator[str]:
    if not targets:
        return
    queues = {count.queue.id for count in targets}
    for pause in Pause.objects.filter(queue__in=queues).select_related("queue", "tenant"):
        yield f"paused is {pause}"
    if not living().exists():
        yield "nobody consumes at the moment: what is sent waits, and so does each step of the ramp"
    if target is not None:
        yield f"the letters are handled by {target}'s handler {target.handler}, not by that of the queue they came from"
    is_careful = settings.ramp or settings.rate_per_s is not None
    if not is_careful and sum(count.letters for count in targets) > settings.abort_min:
        yield "without a rate or a ramp all letters may be sent before the first failure is known"
