"""A queue's partitions: how far behind each is, why, and who consumes it."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import BooleanField, ExpressionWrapper, QuerySet

from queueapi.cluster.models import Partition
from queueapi.errors import InvalidInput
from queueapi.models import LagCurrent, Queue
from queueapi.models.lag import KNOWN_LAG_S
from queueapi.selectors.lag import BADNESS, QueueLag, still_sampled

PARTITIONS_SHOWN: Final = 100

_ADDED_UP: Final = ("lag_messages", "produced_per_s", "consumed_per_s", "trend_per_s")
_LONGEST: Final = ("lag_seconds", "oldest_age_s", "drain_eta_s")


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """`lag` is as that of a queue with this partition alone. `owner` is None where nobody consumes it."""

    sample: LagCurrent
    lag: QueueLag
    owner: str | None


@dataclass(frozen=True, slots=True)
class QueuePartitions:
    """lag         of all of them together that are sampled still; where none is, as they were
    rows        each; of very many those that do worst
    count       how many were ever sampled
    unsampled   how many of them are left out of `lag`
    unassigned  numbers of those that no service may have, by the reason
    """

    lag: QueueLag
    rows: list[PartitionRow]
    count: int
    unsampled: int
    unassigned: dict[str, list[int]]


def check_partition(queue: Queue, number: int) -> None:
    """InvalidInput where it has none of that number."""
    if number not in (numbers := queue.partition_numbers):
        raise InvalidInput(f"queue {queue.name} has no partition {number}; name one from {numbers[0]} to {numbers[-1]}")


def partitions_of(queue: Queue) -> QueuePartitions:
    """Two queries."""
    is_sampled = ExpressionWrapper(still_sampled(), output_field=BooleanField())
    samples = list(LagCurrent.objects.filter(queue=queue).annotate(is_sampled=is_sampled).order_by("partition"))
    sampled = [one for one in samples if one.is_sampled] or samples
    owners, unassigned = _owners(queue)
    shown = samples if len(samples) <= PARTITIONS_SHOWN else sorted(samples, key=_badness)[:PARTITIONS_SHOWN]
    rows = [PartitionRow(one, lag_of(queue, [one]), owners.get(one.partition)) for one in shown]
    unsampled = len(samples) - len(sampled)
    return QueuePartitions(lag_of(queue, sampled), rows, len(samples), unsampled, unassigned)


def samples_of(queue: Queue) -> QuerySet[LagCurrent]:
    """Of each of its partitions, with what lists are ordered by."""
    return LagCurrent.objects.filter(queue=queue).annotate(badness=BADNESS, known_lag_s=KNOWN_LAG_S)


def partition_rows(queue: Queue, samples: Sequence[LagCurrent]) -> list[PartitionRow]:
    """These, in their order. One query."""
    names = [queue.partition_info(one.partition).full_topic_name for one in samples]
    owners = dict(Partition.objects.filter(name__in=names).values_list("number", "owner"))
    return [PartitionRow(one, lag_of(queue, [one]), owners.get(one.partition)) for one in samples]


def numbers_owned(queue: Queue, owner: str | None) -> list[int]:
    """Of those of its partitions that this service instance has; None: that nobody has."""
    rows = Partition.objects.filter(tenant=queue.tenant_id, queue=queue.name, owner=owner, is_removed=False)
    return list(rows.values_list("number", flat=True))


def lag_of(queue: Queue, samples: Sequence[LagCurrent]) -> QueueLag:
    """Of these of the queue's partitions together: as `queue_lags`, of rows that are there already."""
    added: dict[str, Any] = {name: _known(samples, name) for name in _ADDED_UP}
    longest: dict[str, Any] = {name: max(_known(samples, name), default=None) for name in _LONGEST}
    if any(one.drain_eta_s is None and one.lag_messages for one in samples):
        longest["drain_eta_s"] = None
    return QueueLag(
        **{name: sum(known) if known else None for name, known in added.items()},
        **longest,
        partitions=len(samples),
        statuses=dict(Counter(one.status for one in samples)),
        as_of=min((one.as_of for one in samples), default=None),
        queue=queue,
        worst=min(samples, key=_badness, default=None),
    )


def _known(samples: Sequence[LagCurrent], name: str) -> list[float]:
    return [value for one in samples if (value := getattr(one, name)) is not None]


def _badness(sample: LagCurrent) -> tuple[float, ...]:
    """The worst is the least."""
    seconds = -1.0 if sample.lag_seconds is None else sample.lag_seconds
    return -sample.status_choice.badness, -seconds, -sample.lag_messages, sample.partition


def _owners(queue: Queue) -> tuple[dict[int, str | None], dict[str, list[int]]]:
    """Who has which, and which nobody may have."""
    owners: dict[int, str | None] = {}
    unassigned: defaultdict[str, list[int]] = defaultdict(list)
    rows = Partition.objects.filter(name__in=queue.topic_names()).order_by("number")
    for number, owner, why in rows.values_list("number", "owner", "unassigned"):
        owners[number] = owner
        if why:
            unassigned[why].append(number)
    return owners, dict(unassigned)
