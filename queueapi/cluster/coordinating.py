"""What the coordinator does with the cluster's rows."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Final
from uuid import uuid4

from django.db.models import Case, When
from django.db.models.functions import Now

from queueapi.choices import FINAL_REBALANCE_STATES, RebalanceState
from queueapi.cluster import models
from queueapi.cluster.models import ClusterState, Partition, ServiceInstance
from queueapi.cluster.rebalance_rows import from_row, save_row
from queueapi.cluster.rows import Change, changing, reaching
from queuecore.cluster.rebalances import Rebalance
from queuecore.cluster.services import ClusterPartition
from queuecore.cluster.store import Member

_INFO_FIELDS: Final = ("service_type", "queue", "number", "tenant", "profile", "label")
# For how long it is remembered what was rebalanced and why.
_HISTORY: Final = timedelta(days=90)
# What one statement may name.
_AT_ONCE: Final = 500


class CoordinatorRows:
    """A CoordinatorStore."""

    def lead(self, member: Member, lease_s: float) -> int | None:
        """Nearly always it is enough to look."""
        lease = timedelta(seconds=lease_s)
        with reaching():
            state = ClusterState.objects.annotate(now=Now()).filter(id=1).first()
        if state is not None and state.coordinator_until is not None:
            remaining, is_me = state.coordinator_until - state.now, _leader(state) == member
            if remaining > (lease * 2 / 3 if is_me else timedelta()):
                return state.term if is_me else None
        return self._try_to_lead(member, lease)

    def _try_to_lead(self, member: Member, lease: timedelta) -> int | None:
        with changing() as change:
            change.require(member)
            state = change.state
            if _leader(state) != member:
                if state.coordinator_until is not None and state.coordinator_until > change.now:
                    return None
                state.coordinator, state.coordinator_incarnation = member
                state.term += 1
            state.coordinator_until = change.now + lease
            return state.term

    def resign(self, member: Member) -> None:
        with changing() as change:
            change.step_down(member)

    def bury(self, term: int) -> tuple[str, ...]:
        dead = ServiceInstance.objects.filter(gone_at__isnull=True, lease_expires_at__lte=Now())
        with reaching():
            if not dead.exists():
                return ()
        with changing() as change:
            change.require_term(term)
            rows = list(dead.order_by("service_id"))
            for row in rows:
                change.end(row, is_lost=True)
        return tuple(row.service_id for row in rows)

    def forget(self, term: int, after_s: float) -> tuple[str, ...]:
        with changing() as change:
            change.require_term(term)
            old = ServiceInstance.objects.filter(gone_at__lte=change.now - timedelta(seconds=after_s))
            names = tuple(old.order_by("service_id").values_list("service_id", flat=True))
            ServiceInstance.objects.filter(service_id__in=names).delete()
            models.Rebalance.objects.filter(finished_at__lt=change.now - _HISTORY).delete()
        return names

    def set_partitions(self, term: int, partitions: Collection[ClusterPartition]) -> bool:
        with changing() as change:
            change.require_term(term)
            wanted = {one.name: one for one in partitions}
            known = {row.name: row for row in Partition.objects.all()}
            removed = [row for name, row in known.items() if name not in wanted and not row.is_removed]
            changed = [row for name, row in known.items() if name in wanted and _differs(row, wanted[name])]
            new = [one for name, one in wanted.items() if name not in known]
            if not removed and not changed and not new:
                change.state.stamp = change.state.stamp or uuid4().hex
                return False
            for row in removed:
                row.is_removed, row.target = True, None
            for row in changed:
                row.is_removed = False
                for field in _INFO_FIELDS:
                    setattr(row, field, getattr(wanted[row.name], field))
            owned = [row for row in removed if row.owner is not None]
            fields = ["is_removed", "target", *_INFO_FIELDS]
            Partition.objects.bulk_update([*owned, *changed], fields, batch_size=50)
            for names in _portions([row.name for row in removed if row.owner is None]):
                Partition.objects.filter(name__in=names).delete()
            Partition.objects.bulk_create([_new_row(one, change) for one in new], batch_size=100)
            change.state.stamp = uuid4().hex
            change.touch()
        return True

    def planned_for(self) -> str:
        with reaching():
            return ClusterState.objects.filter(id=1).values_list("planned_for", flat=True).first() or ""

    def apply(
        self,
        term: int,
        planned_for: str,
        targets: Mapping[str, str | None],
        rebalance: Rebalance | None,
        unassigned: Mapping[str, str] | None = None,
    ) -> None:
        by_target: defaultdict[str | None, list[str]] = defaultdict(list)
        for name, target in targets.items():
            by_target[target].append(name)
        with changing() as change:
            change.require_term(term)
            change.state.planned_for = planned_for
            for target, those in by_target.items():
                for names in _portions(those):
                    Partition.objects.filter(name__in=names, is_removed=False).update(target=target)
            if unassigned is not None:
                _say_why(unassigned)
            if rebalance is not None:
                save_row(rebalance)
            change.touch()

    def open_rebalance(self) -> Rebalance | None:
        with reaching():
            rows = models.Rebalance.objects.exclude(state__in=FINAL_REBALANCE_STATES)
            waits = Case(When(state=RebalanceState.PLANNED, then=1), default=0)
            row = rows.order_by(waits, "created_at").first()
        return None if row is None else from_row(row)

    def save_rebalance(self, term: int, rebalance: Rebalance) -> None:
        with changing() as change:
            change.require_term(term)
            save_row(rebalance)

    def pauses_ms(self, names: Collection[str]) -> list[int]:
        with reaching():
            found: list[int] = []
            for portion in _portions(list(names)):
                found += Partition.objects.filter(name__in=portion).values_list("paused_ms", flat=True)
        return found


def _leader(state: ClusterState) -> Member:
    return Member(state.coordinator, state.coordinator_incarnation)


def _say_why(unassigned: Mapping[str, str]) -> None:
    Partition.objects.exclude(unassigned="").update(unassigned="")
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for name, why in unassigned.items():
        by_reason[why].append(name)
    for why, those in by_reason.items():
        for names in _portions(those):
            Partition.objects.filter(name__in=names).update(unassigned=why)


def _differs(row: Partition, wanted: ClusterPartition) -> bool:
    return row.is_removed or any(getattr(row, field) != getattr(wanted, field) for field in _INFO_FIELDS)


def _new_row(one: ClusterPartition, change: Change) -> Partition:
    info = {field: getattr(one, field) for field in _INFO_FIELDS}
    return Partition(name=one.name, idle_since=change.now, **info)


def _portions(names: list[str]) -> Iterator[list[str]]:
    return (names[at : at + _AT_ONCE] for at in range(0, len(names), _AT_ONCE))
