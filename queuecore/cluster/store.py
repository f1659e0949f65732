"""Where a cluster remembers who is there and who has what.

Every method may raise StoreUnavailable. All are atomic and safe from any thread. Leases are measured by one clock, the
store's; whoever holds one measures it by its own from before it asked, and so gives up first.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from queuecore.cluster.rebalances import Rebalance
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.cluster.view import ClusterView
from queuecore.routing import RoutingTable

# How many routing versions are remembered, and those still acknowledged by somebody.
KEPT_VERSIONS: Final = 100


class Member(NamedTuple):
    """One life of a service instance: who comes after it under the same id has another incarnation."""

    service_id: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class Holdings:
    """What there is for one member.

    held     partitions that it owns, each with its epoch
    leaving  those of them that it is to release
    free     those that it may take
    """

    version: int
    held: Mapping[str, int] = field(default_factory=dict)
    leaving: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()


class MemberStore(Protocol):
    """What every instance needs."""

    def join(
        self, service: ServiceInfo, *, host: str, pid: int, lease_s: float, former: Member | None = None
    ) -> Member:
        """Announce an instance, with a lease. Who had its id until now is out, and what that one owned is free.
        `former` is who it was itself until it lost its lease: Superseded where another has come under its id since."""

    def renew(self, member: Member, lease_s: float) -> None:
        """Superseded where another has joined with the id; LeaseLost where the lease was over before."""

    def leave(self, member: Member) -> None:
        """Go, and release everything. One that is out already is fine."""

    def version(self) -> int:
        """Rises with every change of who is there, who owns what and who should. Leases are none."""

    def view(self) -> ClusterView: ...

    def holdings(self, member: Member) -> Holdings: ...

    def release(self, member: Member, idle_s: Mapping[str, float]) -> None:
        """Own these no longer; how long they have not been consumed. One that the member does not own is fine.
        LeaseLost, with nothing changed, without a lease."""

    def take(self, member: Member) -> dict[str, int]:
        """Own what is free for this member: what it took, each under an epoch above all before. LeaseLost without a
        lease."""

    def renew_epochs(self, member: Member, newest: Mapping[str, int]) -> dict[str, int]:
        """Partitions of this member's that were met with commits of these epochs, which this store knows nothing of: it
        has forgotten them. Higher ones, for all that it still owns under none higher. LeaseLost without a lease."""

    def close(self) -> None:
        """The thread that calls this needs the store no longer."""

    def gone(self) -> Mapping[str, float]:
        """Instances that were here, and how many seconds ago they left or were declared dead."""


class CoordinatorStore(Protocol):
    """What the one instance needs that coordinates. `term` proves that it still does: NotCoordinator, and nothing has
    changed, where it does not."""

    def lead(self, member: Member, lease_s: float) -> int | None:
        """Become the coordinator where there is none, or stay it: the term. None where another is."""

    def resign(self, member: Member) -> None:
        """Let another lead at once."""

    def bury(self, term: int) -> tuple[str, ...]:
        """Declare dead whose lease is over, and free what they owned; who that was."""

    def forget(self, term: int, after_s: float) -> tuple[str, ...]:
        """Know nothing any more of instances that have been gone for so long; who that was."""

    def set_partitions(self, term: int, partitions: Collection[ClusterPartition]) -> bool:
        """These are all there are. One that is no longer among them is to be released by its owner. Whether anything
        changed."""

    def planned_for(self) -> str:
        """What the targets were last planned for, as `apply` was told."""

    def apply(
        self,
        term: int,
        planned_for: str,
        targets: Mapping[str, str | None],
        rebalance: Rebalance | None,
        unassigned: Mapping[str, str] | None = None,
    ) -> None:
        """Let these partitions have these targets from now on, and keep the rebalance they belong to. `unassigned` says
        of all that nobody may have why that is so; None leaves what was said before."""

    def open_rebalance(self) -> Rebalance | None:
        """The one that is under way, else the oldest that waits."""

    def save_rebalance(self, term: int, rebalance: Rebalance) -> None:
        """As it is now. That somebody wants its end is kept."""

    def pauses_ms(self, names: Collection[str]) -> list[int]:
        """For how long each of these was consumed by nobody when it was last taken."""


class OperatorStore(Protocol):
    """What people and automation ask for."""

    def set_draining(self, service_id: str, *, draining: bool) -> None:
        """Whether an instance is to have nothing, as it will be stopped. UnknownService."""

    def request_rebalance(self, reason: str, requested_by: str) -> Rebalance: ...

    def cancel_rebalance(self, rebalance_id: UUID) -> Rebalance:
        """Ask for its end; as it was then. UnknownRebalance."""

    def find_rebalance(self, rebalance_id: UUID) -> Rebalance | None: ...


class RoutingStore(Protocol):
    """Where messages go, by version, and which version each producer goes by. Versions rise by one from 1."""

    def publish_routing(self, table: RoutingTable) -> int:
        """Let messages go by this table: its version. That is the latest one where it routes alike, and nothing is
        written; else the next. What the table itself says of its version does not matter."""

    def publish_routing_after(self, version: int, table: RoutingTable) -> int | None:
        """The same, but None and nothing has changed where that version is not the latest. Whoever makes tables of
        something that others change too asks for the version first, then reads that: no table is followed by one that
        is older."""

    def routing_version(self) -> int:
        """The latest. 0: none was published."""

    def routing(self, version: int | None = None) -> RoutingTable | None:
        """The table of that version, or the latest. None where there is none, or none any more."""

    def acknowledge(self, producer_id: str, version: int, lease_s: float) -> None:
        """This producer routes by that version from now on, and is there for so long. 0: it knows none."""

    def acknowledgements(self) -> Mapping[str, int]:
        """The producers that are there, and by which version each routes."""

    def yet_to_acknowledge(self, version: int) -> tuple[str, ...]:
        """Those that are there and route by an earlier one, in order."""

    def forget_producer(self, producer_id: str) -> None:
        """It sends nothing any more. One that is not known is fine."""

    def close(self) -> None:
        """The thread that calls this needs the store no longer."""


class ClusterStore(MemberStore, CoordinatorStore, OperatorStore, RoutingStore, Protocol):
    """The whole of it."""
