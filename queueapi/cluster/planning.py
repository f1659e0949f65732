"""The cluster's rows as plans are made from: columns, which are kept as long as nothing has changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import CharField, QuerySet
from django.db.models.functions import Cast, Coalesce

from queueapi.cluster.models import ClusterState, Partition, ServiceInstance
from queueapi.cluster.rows import reaching
from queuecore.cluster.layout import Layout, lay_out
from queuecore.cluster.services import ClusterPartition
from queuecore.cluster.view import Spread
from queuecore.topics import ServiceType

# Read as text: an object for each of very many ids takes long, and few differ.
_TENANT: Final = Cast("tenant", CharField())
_HOLDER: Final = Coalesce("owner", "target")
_KIND: Final = ("service_type", "queue", _TENANT, "profile", "label")


@dataclass(frozen=True, slots=True)
class _Kept:
    """What partitions there are, as of a stamp, and who has them, as of a version.

    names  as the database sorts them
    order  for each place of the layout, the index of its name there
    """

    stamp: str
    version: int
    layout: Layout
    names: list[str]
    order: list[int]
    holders: list[str | None]


class PlanningRows:
    """What plans are made from. Safe from any thread."""

    # One for the process: twelve megabytes with a hundred thousand partitions.
    _kept: _Kept | None = None

    def spread(self) -> Spread:
        """As it is now. Stamp and version are read first: whatever changes meanwhile is read once more."""
        with reaching():
            state = ClusterState.objects.filter(id=1).values_list("stamp", "version").first()
            alive = list(ServiceInstance.objects.filter(gone_at__isnull=True))
            kept = self._known(*state) if state is not None else None
            if kept is None:
                kept = _read(*(state or ("", 0)))
            # Of a cluster whose coordinator has not said so yet, nobody knows when there are other partitions.
            PlanningRows._kept = kept if kept.stamp else None
        services = {row.service_id: row.info for row in alive}
        draining = frozenset(row.service_id for row in alive if row.is_draining)
        return Spread(services, draining, kept.layout, kept.holders)

    def _known(self, stamp: str, version: int) -> _Kept | None:
        """None where there are other partitions than those that are kept."""
        kept = PlanningRows._kept
        if kept is None or kept.stamp != stamp:
            return None
        if kept.version == version:
            return kept
        rows = list(_partitions().values_list("name", _HOLDER))
        # They may have become others since the stamp was read.
        if [name for name, _ in rows] != kept.names:
            return None
        return _Kept(stamp, version, kept.layout, kept.names, kept.order, _holders(rows, kept.order))


def _read(stamp: str, version: int) -> _Kept:
    """All of it in one statement, and so as of one moment."""
    rows = list(_partitions().values_list("name", _HOLDER, "number", *_KIND))
    layout = lay_out(((tuple(kind), number, name) for name, _, number, *kind in rows), _like)
    names = [name for name, *_ in rows]
    index_of = dict(zip(names, range(len(names)), strict=True))
    order = [index_of[name] for name in layout.names]
    return _Kept(stamp, version, layout, names, order, _holders(rows, order))


def _holders(rows: Sequence[tuple[Any, ...]], order: Iterable[int]) -> list[str | None]:
    """In the order of a layout. The same text is the same object: they are many, and compared often."""
    same: dict[str | None, str | None] = {}
    return [same.setdefault(holder, holder) for holder in (rows[index][1] for index in order)]


def _partitions() -> QuerySet[Partition]:
    return Partition.objects.filter(is_removed=False).order_by("name")


def _like(kind: tuple[Any, ...]) -> ClusterPartition:
    service_type, queue, tenant, profile, label = kind
    return ClusterPartition("", ServiceType(service_type), queue, 0, UUID(tenant), profile, label)
