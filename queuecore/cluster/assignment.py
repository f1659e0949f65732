"""Who should have which partition: a plan, made by one of two assignors.

`sticky`       balanced by weight to within one, with the fewest moves of all such plans
`thingsboard`  that platform's modulo, for clusters in which it takes part

Both give a partition only to services that may have it (`eligibility`). A plan is a pure function of what is given, in
whatever order: instances that know the same make the same plan.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from queuecore.cluster.balance import Balance, balance_of, shares_of
from queuecore.cluster.eligibility import divide
from queuecore.cluster.layout import Layout, layout_of
from queuecore.cluster.services import ClusterPartition, Move, ServiceInfo
from queuecore.cluster.sticky import assign_sticky
from queuecore.cluster.thingsboard import assign_thingsboard
from queuecore.errors import ConfigurationError
from queuecore.hashing import DEFAULT_HASH


class Assignor(StrEnum):
    STICKY = "sticky"
    THINGSBOARD = "thingsboard"

    @classmethod
    def of(cls, text: str) -> "Assignor":
        """The assignor of that name; ConfigurationError lists those there are."""
        try:
            return cls(text)
        except ValueError:
            raise ConfigurationError(f"there is no assignor {text!r}; choose one of {', '.join(cls)}") from None


ASSIGNORS: Final = tuple(Assignor)


@dataclass(frozen=True, slots=True)
class AssignmentPlan:
    """What would change, and how things are then.

    names       of all partitions
    owners      for each of them the service that should have it; None: no service may
    moves       partitions that had an owner, alive or gone, and get another; by name
    placed      how many had none, and get one, by the service that they get
    unassigned  partitions that no service may have, each with the reason in words
    before      how evenly they are spread over the services that are alive
    after       the same when the plan is carried out
    """

    names: Sequence[str]
    owners: Sequence[str | None]
    moves: tuple[Move, ...]
    placed: Mapping[str, int]
    unassigned: dict[str, str]
    before: Balance
    after: Balance

    @property
    def placements(self) -> int:
        """How many had no owner, and get one."""
        return sum(self.placed.values())

    @property
    def assignment(self) -> dict[str, str]:
        """The service's id for each partition's name. Made anew each time."""
        return {name: owner for name, owner in zip(self.names, self.owners, strict=True) if owner is not None}


def plan(
    assignor: str,
    services: Collection[ServiceInfo],
    partitions: Collection[ClusterPartition],
    current: Mapping[str, str],
    *,
    hash_name: str = DEFAULT_HASH,
) -> AssignmentPlan:
    """Who should have what, given the services that are alive and who has what now (service ids by partition names).

    `hash_name` is what `thingsboard` finds a tenant's services by. ConfigurationError for an assignor or a hash
    function that does not exist, two services with the same id, two partitions with the same name. Any thread may call.
    """
    layout = layout_of(partitions)
    return plan_layout(assignor, services, layout, layout.holders(current), hash_name=hash_name)


def plan_layout(
    assignor: str,
    services: Collection[ServiceInfo],
    layout: Layout,
    holders: Sequence[str | None],
    *,
    hash_name: str = DEFAULT_HASH,
) -> AssignmentPlan:
    """As `plan`, of partitions that are laid out already; `holders` say by place who has each now."""
    chosen = Assignor.of(assignor)
    pools, unassigned = divide(services, layout)
    match chosen:
        case Assignor.STICKY:
            owners = assign_sticky(pools, layout, holders)
        case Assignor.THINGSBOARD:
            owners = assign_thingsboard(pools, layout, hash_name)
    shares = shares_of(services, pools)
    return AssignmentPlan(
        layout.names,
        owners,
        _moves(layout.names, holders, owners),
        placed=_placed(holders, owners),
        unassigned=unassigned,
        before=balance_of(shares, holders),
        after=balance_of(shares, owners),
    )


def _placed(holders: Sequence[str | None], owners: Sequence[str | None]) -> Mapping[str, int]:
    pairs = zip(holders, owners, strict=True)
    return Counter(owner for holder, owner in pairs if holder is None and owner is not None)


def _moves(names: Sequence[str], holders: Sequence[str | None], owners: Sequence[str | None]) -> tuple[Move, ...]:
    triples = zip(names, holders, owners, strict=True)
    moving = [
        (name, holder, owner)
        for name, holder, owner in triples
        if holder != owner and holder is not None and owner is not None
    ]
    return tuple(Move(*one) for one in sorted(moving))
