"""The whole cluster at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from queuecore.cluster.layout import Layout, layout_of
from queuecore.cluster.services import ClusterPartition, ServiceInfo


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose a partition is, since which epoch, and whose it should be. An owner that is not the target gives it up; the
    target takes it once it has no owner."""

    owner: str | None = None
    epoch: int = 0
    target: str | None = None

    @property
    def is_settled(self) -> bool:
        return self.owner == self.target


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Every change gives it a higher version. `owners` has an entry for each of `partitions`."""

    version: int = 0
    services: Mapping[str, ServiceInfo] = field(default_factory=dict)
    partitions: Mapping[str, ClusterPartition] = field(default_factory=dict)
    owners: Mapping[str, Ownership] = field(default_factory=dict)
    # Services that are to have nothing, as they will be stopped.
    draining: frozenset[str] = frozenset()
    # Why nobody may have these partitions.
    unassigned: Mapping[str, str] = field(default_factory=dict)

    @property
    def current(self) -> dict[str, str]:
        """Who has each partition, or is about to take it. One that neither is so for is absent. Made anew each time."""
        found = {}
        for name, ownership in self.owners.items():
            if (holder := ownership.owner or ownership.target) is not None:
                found[name] = holder
        return found

    @property
    def spread(self) -> "Spread":
        """Made anew each time."""
        layout = layout_of(self.partitions.values())
        return Spread(self.services, self.draining, layout, layout.holders(self.current))


@dataclass(frozen=True, slots=True)
class Spread:
    """Of the cluster what a plan is made from: who is there, and who has what, as columns.

    draining  services that are to have nothing, as they will be stopped
    holders   by place of the layout who has each partition, or is about to take it; None: nobody
    """

    services: Mapping[str, ServiceInfo]
    draining: frozenset[str]
    layout: Layout
    holders: Sequence[str | None]
