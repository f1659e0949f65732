"""What a rebalance would do, before anything is changed: now, or if services came or went, or a queue had other
partitions."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from queuecore.cluster.assignment import AssignmentPlan, plan
from queuecore.cluster.balance import Balance, balance_of, shares_of
from queuecore.cluster.eligibility import divide
from queuecore.cluster.services import ClusterPartition, ServiceInfo, named_services, unknown_service
from queuecore.cluster.view import ClusterView
from queuecore.errors import ConfigurationError, UnknownQueue
from queuecore.hashing import DEFAULT_HASH

# How long a partition that moves is taken to be consumed by nobody, where no rebalance has shown it.
ASSUMED_PAUSE_MS: Final = 500
MAX_PARTITIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class WhatIf:
    """
    plan        who would have what, and what would move for it; `before` is of the services that are there now
    placements  partitions that nobody has, and somebody would take
    pause_ms    for how long each partition that moves would be consumed by nobody
    is_assumed  no rebalance has shown yet how long that takes
    warnings    what to think of first, in words
    """

    plan: AssignmentPlan
    placements: int
    pause_ms: int
    is_assumed: bool
    warnings: tuple[str, ...]


def what_if(
    view: ClusterView,
    *,
    assignor: str,
    hash_name: str = DEFAULT_HASH,
    joining: Sequence[ServiceInfo] = (),
    leaving: Collection[str] = (),
    partitions: Mapping[str, int] | None = None,
    pause_ms: int | None = None,
) -> WhatIf:
    """What a rebalance would do with these services more, without those, and with as many partitions for queues named
    as `queue_key` has them. `pause_ms` is what recent rebalances have shown.

    UnknownService, UnknownQueue for what is not there; ConfigurationError for a service that is there already and does
    not leave, and for a number of partitions that cannot be. Any thread may call.
    """
    usable = _services(view, joining, frozenset(leaving))
    wanted = _partitions(view.partitions.values(), partitions or {})
    current = view.current
    planned = plan(assignor, usable, wanted, current, hash_name=hash_name)
    planned = replace(planned, before=_balance_now(view, current))
    return WhatIf(
        planned,
        placements=len(planned.assignment.keys() - current.keys()),
        pause_ms=ASSUMED_PAUSE_MS if pause_ms is None else pause_ms,
        is_assumed=pause_ms is None,
        warnings=tuple(_warnings(view, planned, leaving, partitions or {})),
    )


def queue_key(partition: ClusterPartition) -> str:
    """The queue of a partition, by the name that its partitions share."""
    return partition.name.removesuffix(_suffix(partition, partition.number))


def _suffix(like: ClusterPartition, number: int) -> str:
    """Partitions are topics of their own, or are inside of one."""
    return f"[{number}]" if like.name.endswith("]") else f".{number}"


def _services(view: ClusterView, joining: Sequence[ServiceInfo], leaving: frozenset[str]) -> list[ServiceInfo]:
    for unknown in sorted(leaving - view.services.keys()):
        raise unknown_service(unknown, view.services)
    staying = {name: info for name, info in view.services.items() if name not in leaving}
    for service in joining:
        if service.service_id in staying:
            raise ConfigurationError(
                f"service {service.service_id!r} is there already; choose another id, or let that one leave"
            )
    return [*(info for name, info in staying.items() if name not in view.draining), *joining]


def _partitions(known: Collection[ClusterPartition], counts: Mapping[str, int]) -> list[ClusterPartition]:
    found = list(known)
    for key, count in counts.items():
        mine = sorted((one for one in found if queue_key(one) == key), key=lambda one: one.number)
        if not mine:
            raise UnknownQueue(f"no queue of the cluster has partitions called {key!r}; look up what they are called")
        if not 1 <= count <= MAX_PARTITIONS:
            raise ConfigurationError(f"{key} cannot have {count} partitions; use 1 to {MAX_PARTITIONS}")
        found = [one for one in found if queue_key(one) != key or one.number < count]
        found += [
            replace(mine[0], name=f"{key}{_suffix(mine[0], number)}", number=number)
            for number in range(mine[-1].number + 1, count)
        ]
    return found


def _balance_now(view: ClusterView, current: Mapping[str, str]) -> Balance:
    """A service that is draining has a share of nothing."""
    usable = [info for name, info in view.services.items() if name not in view.draining]
    pools, _ = divide(usable, view.partitions.values())
    shares = shares_of(usable, pools) | dict.fromkeys(view.draining & view.services.keys(), 0.0)
    return balance_of(dict(sorted(shares.items())), (current.get(name) for name in view.partitions))


def _warnings(
    view: ClusterView, planned: AssignmentPlan, leaving: Collection[str], counts: Mapping[str, int]
) -> Iterator[str]:
    if not planned.after.services:
        yield "no service is left to consume anything: messages wait unread until one is started"
    else:
        for reason, number in sorted(Counter(planned.unassigned.values()).items()):
            yield f"{_partitions_are(number)} consumed by nobody: {reason}"
    yield from _idle_warnings(planned.after)
    if draining := view.draining - frozenset(leaving):
        yield f"{_are(draining, 'draining')} already, and left out: {named_services(draining)}"
    known = Counter(queue_key(one) for one in view.partitions.values())
    for key, count in sorted(counts.items()):
        if count != known[key]:
            yield (
                f"{key} would have {count} partitions instead of {known[key]}: entities move to other partitions, and "
                "keep their order only once what waits in the old ones is consumed"
            )


def _idle_warnings(after: Balance) -> Iterator[str]:
    unfit = [name for name, load in after.services.items() if not load.share]
    spare = [name for name, load in after.services.items() if load.share and not load.count]
    if spare:
        yield f"there are more services than partitions, so {_are(spare, 'left')} without any: {named_services(spare)}"
    if unfit:
        yield (
            f"{_are(unfit, 'left')} without any partition, as none fits by type, label and dedication: "
            f"{named_services(unfit)}"
        )


def _partitions_are(number: int) -> str:
    return "1 partition is" if number == 1 else f"{number} partitions are"


def _are(services: Collection[str], what: str) -> str:
    return f"1 service is {what}" if len(services) == 1 else f"{len(services)} services are {what}"
