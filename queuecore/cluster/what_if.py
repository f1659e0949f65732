"""What a rebalance would do, before anything is changed: now, or if services came or went, or a queue had other
partitions."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from queuecore.cluster.assignment import AssignmentPlan, plan_layout
from queuecore.cluster.balance import Balance, balance_of, shares_of
from queuecore.cluster.eligibility import divide
from queuecore.cluster.resizing import partitions_called, resized
from queuecore.cluster.services import ServiceInfo, named_services, unknown_service
from queuecore.cluster.view import Spread
from queuecore.errors import ConfigurationError
from queuecore.hashing import DEFAULT_HASH

# How long a partition that moves is taken to be consumed by nobody, where no rebalance has shown it.
ASSUMED_PAUSE_MS: Final = 500


@dataclass(frozen=True, slots=True)
class WhatIf:
    """
    plan        who would have what, and what would move for it; `before` is of the services that are there now
    pause_ms    for how long each partition that moves would be consumed by nobody
    is_assumed  no rebalance has shown yet how long that takes
    warnings    what to think of first, in words
    """

    plan: AssignmentPlan
    pause_ms: int
    is_assumed: bool
    warnings: tuple[str, ...]

    @property
    def placements(self) -> int:
        """Partitions that nobody has, and somebody would take."""
        return self.plan.placements


def what_if(
    spread: Spread,
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
    usable = _services(spread, joining, frozenset(leaving))
    then = resized(spread, partitions or {})
    planned = plan_layout(assignor, usable, then.layout, then.holders, hash_name=hash_name)
    planned = replace(planned, before=_balance_now(spread))
    return WhatIf(
        planned,
        pause_ms=ASSUMED_PAUSE_MS if pause_ms is None else pause_ms,
        is_assumed=pause_ms is None,
        warnings=tuple(_warnings(spread, planned, leaving, partitions or {})),
    )


def _services(spread: Spread, joining: Sequence[ServiceInfo], leaving: frozenset[str]) -> list[ServiceInfo]:
    for unknown in sorted(leaving - spread.services.keys()):
        raise unknown_service(unknown, spread.services)
    staying = {name: info for name, info in spread.services.items() if name not in leaving}
    for service in joining:
        if service.service_id in staying:
            raise ConfigurationError(
                f"service {service.service_id!r} is there already; choose another id, or let that one leave"
            )
    return [*(info for name, info in staying.items() if name not in spread.draining), *joining]


def _balance_now(spread: Spread) -> Balance:
    """A service that is draining has a share of nothing."""
    usable = [info for name, info in spread.services.items() if name not in spread.draining]
    pools, _ = divide(usable, spread.layout)
    shares = shares_of(usable, pools) | dict.fromkeys(spread.draining & spread.services.keys(), 0.0)
    return balance_of(dict(sorted(shares.items())), spread.holders)


def _warnings(
    spread: Spread, planned: AssignmentPlan, leaving: Collection[str], counts: Mapping[str, int]
) -> Iterator[str]:
    if not planned.after.services:
        yield "no service is left to consume anything: messages wait unread until one is started"
    else:
        for reason, number in sorted(Counter(planned.unassigned.values()).items()):
            yield f"{_partitions_are(number)} consumed by nobody: {reason}"
    yield from _idle_warnings(planned.after)
    if draining := spread.draining - frozenset(leaving):
        yield f"{_are(draining, 'draining')} already, and left out: {named_services(draining)}"
    for key, count in sorted(counts.items()):
        if count != (known := partitions_called(spread.layout, key)):
            yield (
                f"the queue of topic {key} would have {count} new partitions instead of its {known}, consumed once "
                "what waits in those is done: entities keep their order"
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
