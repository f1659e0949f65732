"""How evenly a queue's messages are spread, drawn: each partition's share, what it is made of, what would change it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from queueapi.config import config
from queueapi.models import PartitionHeat, Queue, QueueSkew, Tenant
from queueapi.selectors.heat import QueueHeat

MOST_SHARES: Final = 10
_LEVELS: Final = 5
# A skew up to that is what chance gives.
EVEN: Final = 1.25
# What the fullest partition has left, of what it has now, where that is clearly less.
_CLEARLY_LESS: Final = 0.9


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A partition. `level` is 0 to 5, the hotter the higher; 3 is a partition that has its even share."""

    partition: int
    messages: int
    share: float
    level: int
    is_hot: bool


@dataclass(frozen=True, slots=True)
class Share:
    """What an entity or a tenant has of the messages that were counted."""

    name: str
    messages: int
    share: float
    partitions: tuple[int, ...]
    tenant: Tenant | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """What a count and hash give to the entities seen.

    fullest     the fullest partition's share of their messages, 0 to 1: what it has to handle, however many others
                there are
    is_present  whether it is so now
    is_better   whether the fullest would have clearly less than now; None where nothing is known of now
    """

    partitions: int
    hash_function: str
    skew: float
    fullest: float
    moved: float
    is_present: bool
    is_better: bool | None


@dataclass(frozen=True, slots=True)
class HeatPage:
    skew: QueueSkew | None
    hash_function: str
    cells: list[HeatCell]
    partition_count: int
    hot: list[PartitionHeat]
    entities: list[Share]
    tenants: list[Share]
    what_if: list[Spread]

    @property
    def is_even(self) -> bool:
        return self.skew is not None and self.skew.skew <= EVEN


def heat_page(queue: Queue, heat: QueueHeat) -> HeatPage:
    rows = heat.partitions
    total = sum(row.messages for row in rows)
    tenants = Tenant.objects.in_bulk(_tenant_ids(rows))
    even = 1 / max(heat.partition_count, 1)
    cells = [_cell(row, even) for row in sorted(rows, key=lambda row: row.partition)]
    hash_function = config().queue.partitions.hash_function_name
    return HeatPage(
        skew=heat.skew,
        hash_function=hash_function,
        cells=cells,
        partition_count=heat.partition_count,
        hot=[row for row in rows if row.is_hot],
        entities=_shares(rows, "entities", "key", total, tenants),
        tenants=_shares(rows, "tenants", "tenant_id", total, tenants),
        what_if=_spreads(heat.skew.what_if, queue.partitions, hash_function) if heat.skew else [],
    )


def _cell(row: PartitionHeat, even: float) -> HeatCell:
    level = 0 if not row.messages else max(1, min(_LEVELS, round(3 * row.share / even)))
    return HeatCell(row.partition, row.messages, row.share, level, row.is_hot)


def _shares(
    rows: Iterable[PartitionHeat], kind: str, name: str, total: int, tenants: Mapping[UUID, Tenant]
) -> list[Share]:
    """Those with most messages. Of each partition the most frequent are known, so these are the least it may be."""
    counts: Counter[str] = Counter()
    where: dict[str, set[int]] = {}
    owners: dict[str, str] = {}
    for row in rows:
        for one in getattr(row, kind):
            key = str(one[name])
            counts[key] += one["messages"]
            where.setdefault(key, set()).add(row.partition)
            owners[key] = one.get("tenant_id") or ""
    return [
        Share(key, count, count / max(total, 1), tuple(sorted(where[key])), tenants.get(_id(owners[key])))
        for key, count in counts.most_common(MOST_SHARES)
    ]


def _tenant_ids(rows: Sequence[PartitionHeat]) -> set[UUID]:
    named = (one.get("tenant_id") for row in rows for one in (*row.entities, *row.tenants))
    return {found for one in named if one and (found := _id(one)) is not None}


def _id(text: str) -> Any:
    try:
        return UUID(text)
    except ValueError:
        return None


def _spreads(what_if: Sequence[Mapping[str, Any]], partitions: int, hash_function: str) -> list[Spread]:
    """The present one among them: what the entities seen would do is compared with what they do, as they are seldom all
    there are."""
    present = next((one for one in what_if if _is_present(one, partitions, hash_function)), None)
    most = None if present is None else _fullest(present) * _CLEARLY_LESS
    return [
        Spread(
            partitions=one["partitions"],
            hash_function=one["hash_function"],
            skew=one["skew"],
            fullest=_fullest(one),
            moved=one["moved"],
            is_present=one is present,
            is_better=None if most is None else _fullest(one) < most,
        )
        for one in what_if
    ]


def _fullest(one: Mapping[str, Any]) -> float:
    return float(one["skew"] / one["partitions"])


def _is_present(one: Mapping[str, Any], partitions: int, hash_function: str) -> bool:
    """Of what was computed before the queue was resized, none is."""
    return one["partitions"] == partitions and one["hash_function"] == hash_function and not one["moved"]
