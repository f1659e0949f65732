"""Where a replay would send letters, and how many: by partition as far as each letter can be looked at, else by queue.
Of very many the tallies tell, without those few that are refused or are not ours."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Count, QuerySet, Sum

from queueapi.addressing import addresses
from queueapi.choices import LetterState
from queueapi.models import DeadLetter, DeadLetterGroup, Queue
from queueapi.replay_messages import Route, key_of
from queueapi.replaying import ReplaySettings
from queueapi.selectors.dead_letters import COUNTED, tallies
from queueapi.selectors.letter_filter import LetterFilter, Selection, counted
from queueapi.selectors.replay_readiness import OWN, queues_deleted, ready_letters, why_refused_themselves

# Of more queues those are told that get most.
_TOLD: Final = 100

Place = tuple[UUID, int | None]


@dataclass(frozen=True, slots=True)
class TargetCount:
    """How many letters go to one partition of a queue. Where there are too many to look at each, the partition is None:
    how many go to the whole queue."""

    queue: Queue
    partition: int | None
    letters: int

    @property
    def told(self) -> str:
        return str(self.queue) if self.partition is None else f"partition {self.partition} of {self.queue}"


@dataclass(frozen=True, slots=True)
class Targets:
    """`queues` are all that get any; `counts` are of those that get most."""

    counts: tuple[TargetCount, ...]
    letters: int
    queues: Collection[UUID]

    @property
    def left_out(self) -> int:
        return max(0, len(self.queues) - _TOLD)


def find_targets(selection: Selection, target: Queue | None, settings: ReplaySettings) -> Targets:
    numbers = _numbers(selection, target, settings)
    by_queue: Counter[UUID] = Counter()
    for (queue, _partition), letters in numbers.items():
        by_queue[queue] += letters
    told = Queue.objects.select_related("tenant").in_bulk([queue for queue, _ in by_queue.most_common(_TOLD)])
    counts = [
        TargetCount(told[queue], partition, letters) for (queue, partition), letters in numbers.items() if queue in told
    ]
    counts.sort(key=lambda count: (count.queue.name, -1 if count.partition is None else count.partition))
    return Targets(tuple(counts), numbers.total(), by_queue.keys())


def _numbers(selection: Selection, target: Queue | None, settings: ReplaySettings) -> Counter[Place]:
    ready = ready_letters(selection, target, settings)
    if target is not None:
        return _routed(ready, target)
    every = _open_by_queue(selection)
    if isinstance(selection, LetterFilter) and every.total() > COUNTED:
        own = _by_queue(every, selection, settings)
    else:
        own = _by_partition(ready.filter(OWN), selection)
    return own + _routed(ready.exclude(OWN), None)


def _open_by_queue(selection: Selection) -> Counter[UUID]:
    """By tallies, or by an index alone where a time is asked for as well; none where each letter has to be read."""
    if not isinstance(selection, LetterFilter) or selection.is_searching:
        return Counter()
    if selection.state not in (None, LetterState.OPEN):
        return Counter()
    if selection.is_tallied:
        rows = tallies(selection).filter(state=LetterState.OPEN).exclude(group__queue__in=queues_deleted())
        return Counter(dict(rows.values_list("group__queue").annotate(number=Sum("letters"))))
    letters = selection.rows().filter(state=LetterState.OPEN).exclude(queue__in=queues_deleted()).order_by()
    return Counter(dict(letters.values_list("queue").annotate(number=Count("*"))))


def _by_queue(every: Counter[UUID], wanted: LetterFilter, settings: ReplaySettings) -> Counter[Place]:
    """Those of our own that are not refused: the few others are looked up, and were counted along."""
    rows, others = wanted.rows().filter(state=LetterState.OPEN).order_by(), dict[UUID, UUID]()
    for condition in (*(each for each, _reason in why_refused_themselves(settings)), ~OWN):
        others |= rows.filter(condition).values_list("pk", "queue_id")
    every.subtract(queue for queue in others.values() if queue in every)
    return Counter({(queue, None): letters for queue, letters in every.items()})


def _by_partition(ready: QuerySet[DeadLetter], selection: Selection) -> Counter[Place]:
    """Where each letter is looked at they are counted by group, whose number is sorted in less time than its queue's
    id."""
    if not (isinstance(selection, LetterFilter) and selection.is_searching):
        found = counted(ready, selection, "queue_id", "partition")
        return Counter({(queue, partition): letters for queue, partition, letters in found})
    places, numbers = list(counted(ready, selection, "group_id", "partition")), Counter[Place]()
    groups = DeadLetterGroup.objects.order_by()
    if len(places) <= _TOLD:
        groups = groups.filter(pk__in={group for group, _, _ in places})
    queues = dict(groups.values_list("pk", "queue_id"))
    for group, partition, letters in places:
        numbers[queues[group], partition] += letters
    return numbers


def _routed(ready: QuerySet[DeadLetter], target: Queue | None) -> Counter[Place]:
    """By the keys that the letters had: few are edited."""
    numbers: Counter[Place] = Counter()
    if target is None and not ready.exists():
        return numbers
    route = Route(() if target else Queue.objects.all(), target, addresses())
    columns = ("queue_id", "topic", "partition", "key", "raw_key", "origin")
    for queue, topic, partition, key, raw, origin in ready.order_by().values_list(*columns).iterator(chunk_size=5_000):
        info = route.info(queue, topic, partition, key_of(key, raw), origin=origin)
        numbers[target.id if target else queue, info.partition or 0] += 1
    return numbers
