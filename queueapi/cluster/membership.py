"""What every instance does with the cluster's rows."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import uuid4

from django.db import connections
from django.db.models import Q
from django.db.models.functions import Now

from queueapi.cluster.models import ClusterState, Partition, ServiceInstance
from queueapi.cluster.rows import changing, living, reaching
from queuecore.cluster.leases import superseded
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.cluster.store import Holdings, Member
from queuecore.cluster.view import ClusterView, Ownership
from queuecore.topics import ServiceType

# Of a view, as values: there may be a hundred thousand partitions, and an object of Django's for each takes longest.
_OF_PARTITION: Final = ("name", "service_type", "queue", "number", "tenant", "profile", "label")
_OF_OWNERSHIP: Final = ("owner", "epoch", "target", "unassigned")


class MemberRows:
    """A MemberStore."""

    def join(
        self, service: ServiceInfo, *, host: str, pid: int, lease_s: float, former: Member | None = None
    ) -> Member:
        with changing() as change:
            before = ServiceInstance.objects.filter(service_id=service.service_id).first()
            is_ours = before is not None and former is not None and before.incarnation == former.incarnation
            is_there = before is not None and before.gone_at is None
            if is_there and former is not None and not is_ours:
                raise superseded(service.service_id)
            member = Member(service.service_id, uuid4().hex)
            change.disown(service.service_id)
            ServiceInstance.objects.update_or_create(
                service_id=service.service_id,
                defaults={
                    "incarnation": member.incarnation,
                    "service_types": [kind.value for kind in service.service_types],
                    "weight": service.weight,
                    "labels": sorted(service.labels),
                    "dedicated_to": sorted(service.dedicated_to),
                    "host": host,
                    "pid": pid,
                    # A lost lease does not end it; a new process under the id of one that is gone does.
                    "is_draining": before is not None and before.is_draining and (is_there or is_ours),
                    "started_at": change.now,
                    "heartbeat_at": change.now,
                    "lease_expires_at": change.now + timedelta(seconds=lease_s),
                    "gone_at": None,
                    "is_lost": False,
                },
            )
            change.touch()
        return member

    def renew(self, member: Member, lease_s: float) -> None:
        """Waits for nobody that changes other rows, where the database can tell them apart."""
        with reaching():
            valid = ServiceInstance.objects.filter(
                service_id=member.service_id,
                incarnation=member.incarnation,
                gone_at__isnull=True,
                lease_expires_at__gt=Now(),
            )
            lease = timedelta(seconds=lease_s)
            if not valid.update(heartbeat_at=Now(), lease_expires_at=Now() + lease):
                living(member)

    def leave(self, member: Member) -> None:
        with changing() as change:
            row = ServiceInstance.objects.filter(
                service_id=member.service_id, incarnation=member.incarnation, gone_at__isnull=True
            ).first()
            if row is not None:
                change.end(row, is_lost=False)
            change.step_down(member)

    def version(self) -> int:
        with reaching():
            return ClusterState.objects.filter(id=1).values_list("version", flat=True).first() or 0

    def view(self) -> ClusterView:
        """The version is read first: whatever changes meanwhile is seen once more."""
        with reaching():
            version = self.version()
            alive = list(ServiceInstance.objects.filter(gone_at__isnull=True))
            rows = list(Partition.objects.filter(is_removed=False).values_list(*_OF_PARTITION, *_OF_OWNERSHIP))
        partitions, owners, unassigned = {}, {}, {}
        for name, kind, queue, number, tenant, profile, label, owner, epoch, target, reason in rows:
            partitions[name] = ClusterPartition(name, ServiceType(kind), queue, number, tenant, profile, label)
            owners[name] = Ownership(owner, epoch, target)
            if reason:
                unassigned[name] = reason
        draining = frozenset(row.service_id for row in alive if row.is_draining)
        services = {row.service_id: row.info for row in alive}
        return ClusterView(version, services, partitions, owners, draining, unassigned)

    def holdings(self, member: Member) -> Holdings:
        me = member.service_id
        with reaching():
            version = self.version()
            rows = Partition.objects.filter(Q(owner=me) | Q(target=me)).values_list("name", "owner", "epoch", "target")
            mine = list(rows)
        return Holdings(
            version,
            {name: epoch for name, owner, epoch, _ in mine if owner == me},
            frozenset(name for name, owner, _, target in mine if owner == me != target),
            frozenset(name for name, owner, _, target in mine if owner is None and target == me),
        )

    def release(self, member: Member, idle_s: Mapping[str, float]) -> None:
        with changing() as change:
            change.require(member)
            for row in Partition.objects.filter(owner=member.service_id, name__in=list(idle_s)):
                change.free([row], change.now - timedelta(seconds=idle_s[row.name]))

    def take(self, member: Member) -> dict[str, int]:
        with changing() as change:
            change.require(member)
            rows = list(Partition.objects.filter(target=member.service_id, owner__isnull=True).order_by("name"))
            for row in rows:
                idle = change.now - (row.idle_since or change.now)
                row.owner, row.epoch, row.taken_at = member.service_id, change.next_epoch(), change.now
                row.paused_ms, row.idle_since = max(0, round(idle.total_seconds() * 1000)), None
            fields = ["owner", "epoch", "taken_at", "paused_ms", "idle_since"]
            Partition.objects.bulk_update(rows, fields, batch_size=100)
            if rows:
                change.touch()
        return {row.name: row.epoch for row in rows}

    def renew_epochs(self, member: Member, newest: Mapping[str, int]) -> dict[str, int]:
        with changing() as change:
            change.require(member)
            change.state.epoch = max([change.state.epoch, *newest.values()])
            mine = Partition.objects.filter(owner=member.service_id, name__in=list(newest)).order_by("name")
            rows = [row for row in mine if row.epoch <= newest[row.name]]
            for row in rows:
                row.epoch = change.next_epoch()
            Partition.objects.bulk_update(rows, ["epoch"], batch_size=100)
            if rows:
                change.touch()
        return {row.name: row.epoch for row in rows}

    def close(self) -> None:
        """All of its databases: who coordinates reads what queues there are as well."""
        connections.close_all()

    def gone(self) -> Mapping[str, float]:
        with reaching():
            rows = ServiceInstance.objects.filter(gone_at__isnull=False).annotate(now=Now())
            return {row.service_id: (row.now - row.gone_at).total_seconds() for row in rows if row.gone_at}
