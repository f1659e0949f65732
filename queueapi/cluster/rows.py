"""Changing the cluster's rows: one at a time, and by the database's clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import Error as DatabaseError
from django.db import connections, transaction
from django.db.models.functions import Now

from queueapi.cluster.databases import cluster_database
from queueapi.cluster.models import ClusterState, Partition, ServiceInstance
from queueapi.config import config
from queuecore.cluster.leases import lease_lost, not_coordinator, superseded
from queuecore.cluster.store import Member
from queuecore.errors import StoreUnavailable


@contextmanager
def reaching() -> Iterator[None]:
    """StoreUnavailable where the database cannot be reached, or is kept busy for too long."""
    try:
        yield
    except DatabaseError as error:
        # A connection that failed is not used again.
        connections[cluster_database()].close()
        reason = " ".join(str(error).split())
        raise StoreUnavailable(f"the cluster's database cannot be used: {reason}; mend that") from error


@dataclass(slots=True)
class Change:
    """A turn at the cluster's rows, which nobody else has meanwhile. `now` is the database's time."""

    state: ClusterState
    now: datetime

    def next_epoch(self) -> int:
        self.state.epoch += 1
        return self.state.epoch

    def touch(self) -> None:
        """Something that others look at has changed."""
        self.state.version += 1

    def require(self, member: Member) -> ServiceInstance:
        """Its row. Superseded or LeaseLost without a lease."""
        return living(member, self.now)

    def require_term(self, term: int) -> None:
        state = self.state
        if state.term != term or not state.coordinator or not _is_after(state.coordinator_until, self.now):
            raise not_coordinator(term)

    def free(self, rows: list[Partition], since: datetime) -> None:
        """Nobody owns these any more."""
        for row in rows:
            row.owner, row.idle_since, row.taken_at = None, since, None
        Partition.objects.bulk_update(
            [row for row in rows if not row.is_removed], ["owner", "idle_since", "taken_at"], batch_size=200
        )
        Partition.objects.filter(name__in=[row.name for row in rows if row.is_removed]).delete()
        if rows:
            self.touch()

    def disown(self, service_id: str) -> None:
        self.free(list(Partition.objects.filter(owner=service_id)), self.now)

    def end(self, instance: ServiceInstance, *, is_lost: bool) -> None:
        """It has left, or is dead."""
        instance.gone_at, instance.is_lost = self.now, is_lost
        instance.save(update_fields=["gone_at", "is_lost"])
        self.disown(instance.service_id)
        self.touch()

    def step_down(self, member: Member) -> None:
        if (self.state.coordinator, self.state.coordinator_incarnation) == member:
            self.state.coordinator = self.state.coordinator_incarnation = ""
            self.state.coordinator_until = None


@contextmanager
def changing() -> Iterator[Change]:
    """All of what is done within takes effect, or nothing."""
    with reaching(), transaction.atomic(using=cluster_database()):
        _wait_for_no_silence()
        state = _locked_state()
        if state is None:
            ClusterState.objects.bulk_create([ClusterState(id=1)], ignore_conflicts=True)
            state = _locked_state() or ClusterState.objects.get(id=1)
        yield Change(state, _now())
        state.save()


@contextmanager
def holding() -> Iterator[None]:
    """Nobody else changes the cluster's rows meanwhile; what is called within may. Both databases, where there are two:
    the other one first, as everywhere."""
    with transaction.atomic(), reaching(), transaction.atomic(using=cluster_database()):
        _wait_for_no_silence()
        _locked_state()
        yield


def _wait_for_no_silence() -> None:
    """One that falls silent in the middle of a change, as it is suspended or cut off, would keep all others from theirs
    for as long: PostgreSQL ends its session, and so its lock. With SQLite it is on the same machine, to be ended there.
    """
    connection = connections[cluster_database()]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            silence = f"{config().cluster.coordinator_lease_ms}ms"
            cursor.execute("select set_config('idle_in_transaction_session_timeout', %s, true)", [silence])


def _locked_state() -> ClusterState | None:
    return ClusterState.objects.select_for_update().filter(id=1).first()


def _now() -> datetime:
    """Asked for when the row is ours: a statement that waited for it has the time from before."""
    now: datetime = ClusterState.objects.annotate(now=Now()).values_list("now", flat=True).get(id=1)
    return now


def living(member: Member, now: datetime | None = None) -> ServiceInstance:
    """The row of a member with a lease. Superseded or LeaseLost without one."""
    row = ServiceInstance.objects.annotate(now=Now()).filter(service_id=member.service_id).first()
    if row is not None and row.incarnation != member.incarnation:
        raise superseded(member.service_id)
    if row is None or row.gone_at is not None or row.lease_expires_at <= (now or row.now):
        raise lease_lost(member.service_id)
    return row


def _is_after(until: datetime | None, now: datetime) -> bool:
    return until is not None and until > now
