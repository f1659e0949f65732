"""Who should have which partition: a plan, made by one of two assignors.

`sticky`       balanced by weight to within one, with the fewest moves of all such plans
`thingsboard`  that platform's modulo, for clusters in which it takes part

Both give a partition only to services that may have it (`eligibility`). A plan is a pure function of what is given, in
whatever order: instances that know the same make the same plan.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from queuecore.cluster.balance import Balance, balance_of, shares_of
from queuecore.cluster.eligibility import divide
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

    assignment  the service's id for each partition's name
    moves       partitions that had an owner, alive or gone, and get another; by name
    unassigned  partitions that no service may have, each with the reason in words
    before      how evenly they are spread over the services that are alive
    after       the same when the plan is carried out
    """

    assignment: dict[str, str]
    moves: tuple[Move, ...]
    unassigned: dict[str, str]
    before: Balance
    after: Balance


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
    chosen = Assignor.of(assignor)
    pools, unassigned = divide(services, partitions)
    match chosen:
        case Assignor.STICKY:
            assignment = assign_sticky(pools, current)
        case Assignor.THINGSBOARD:
            assignment = assign_thingsboard(pools, hash_name)
    shares = shares_of(services, pools)
    return AssignmentPlan(
        assignment,
        _moves(current, assignment),
        unassigned,
        before=balance_of(shares, (current.get(partition.name) for partition in partitions)),
        after=balance_of(shares, assignment.values()),
    )


def _moves(current: Mapping[str, str], assignment: Mapping[str, str]) -> tuple[Move, ...]:
    changed = sorted(name for name, target in assignment.items() if current.get(name, target) != target)
    return tuple(map(Move, changed, map(current.__getitem__, changed), map(assignment.__getitem__, changed)))
