"""A store within one process: for tests, and for programs that are a cluster by themselves."""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.cluster.leases import lease_lost, not_coordinator, superseded, unknown_rebalance
from queuecore.cluster.memory_routing import MemoryRouting
from queuecore.cluster.rebalances import Rebalance, RebalanceState
from queuecore.cluster.services import ClusterPartition, ServiceInfo, unknown_service
from queuecore.cluster.store import Holdings, Member
from queuecore.cluster.view import ClusterView, Ownership


@dataclass(slots=True)
class _Instance:
    info: ServiceInfo
    incarnation: str
    expires_at: float
    is_draining: bool = False
    gone_at: float | None = None


@dataclass(slots=True)
class _Partition:
    info: ClusterPartition
    owner: str | None = None
    epoch: int = 0
    target: str | None = None
    # Since when nobody consumes it, and for how long nobody did before its owner took it.
    idle_since: float = 0.0
    paused_ms: int = 0
    is_removed: bool = False


@dataclass(slots=True)
class _Coordinator:
    member: Member | None = None
    term: int = 0
    expires_at: float = 0.0


@dataclass(slots=True)
class _State:
    version: int = 0
    epoch: int = 0
    planned_for: str = ""
    instances: dict[str, _Instance] = field(default_factory=dict)
    partitions: dict[str, _Partition] = field(default_factory=dict)
    coordinator: _Coordinator = field(default_factory=_Coordinator)
    rebalances: dict[UUID, Rebalance] = field(default_factory=dict)
    unassigned: dict[str, str] = field(default_factory=dict)


class MemoryStore(MemoryRouting):
    """A ClusterStore."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(clock)
        self._clock = clock
        self._lock = threading.Lock()
        self._state = _State()

    def join(
        self,
        service: ServiceInfo,
        *,
        host: str,  # noqa: ARG002
        pid: int,  # noqa: ARG002
        lease_s: float,
        former: Member | None = None,
    ) -> Member:
        with self._lock:
            now = self._clock.monotonic()
            before = self._state.instances.get(service.service_id)
            is_ours = before is not None and former is not None and before.incarnation == former.incarnation
            is_there = before is not None and before.gone_at is None
            if is_there and former is not None and not is_ours:
                raise superseded(service.service_id)
            member = Member(service.service_id, uuid4().hex)
            # A lost lease does not end it; a new process under the id of one that is gone does.
            is_draining = before is not None and before.is_draining and (is_there or is_ours)
            self._disown(service.service_id, now)
            self._state.instances[service.service_id] = _Instance(
                service, member.incarnation, now + lease_s, is_draining
            )
            self._state.version += 1
            return member

    def renew(self, member: Member, lease_s: float) -> None:
        with self._lock:
            self._require(member).expires_at = self._clock.monotonic() + lease_s

    def leave(self, member: Member) -> None:
        with self._lock:
            instance = self._state.instances.get(member.service_id)
            if instance is not None and instance.incarnation == member.incarnation and instance.gone_at is None:
                self._end(instance)
            self._step_down(member)

    def version(self) -> int:
        with self._lock:
            return self._state.version

    def view(self) -> ClusterView:
        with self._lock:
            state = self._state
            alive = {name: one for name, one in state.instances.items() if one.gone_at is None}
            parts = {name: one for name, one in state.partitions.items() if not one.is_removed}
            return ClusterView(
                state.version,
                {name: one.info for name, one in alive.items()},
                {name: one.info for name, one in parts.items()},
                {name: Ownership(one.owner, one.epoch, one.target) for name, one in parts.items()},
                frozenset(name for name, one in alive.items() if one.is_draining),
                {name: why for name, why in state.unassigned.items() if name in parts},
            )

    def holdings(self, member: Member) -> Holdings:
        with self._lock:
            me, parts = member.service_id, self._state.partitions
            held = {name: one.epoch for name, one in parts.items() if one.owner == me}
            return Holdings(
                self._state.version,
                held,
                frozenset(name for name in held if parts[name].target != me),
                frozenset(name for name, one in parts.items() if one.target == me and one.owner is None),
            )

    def release(self, member: Member, idle_s: Mapping[str, float]) -> None:
        with self._lock:
            self._require(member)
            now = self._clock.monotonic()
            for name, idle in idle_s.items():
                part = self._state.partitions.get(name)
                if part is not None and part.owner == member.service_id:
                    self._free(part, now - idle)

    def take(self, member: Member) -> dict[str, int]:
        with self._lock:
            self._require(member)
            now, taken = self._clock.monotonic(), {}
            for name, part in sorted(self._state.partitions.items()):
                if part.target == member.service_id and part.owner is None:
                    part.owner, part.paused_ms = member.service_id, round((now - part.idle_since) * 1000)
                    taken[name] = part.epoch = self._next_epoch()
            self._state.version += bool(taken)
            return taken

    def renew_epochs(self, member: Member, newest: Mapping[str, int]) -> dict[str, int]:
        with self._lock:
            self._require(member)
            self._state.epoch = max([self._state.epoch, *newest.values()])
            mine = [name for name in sorted(newest) if self._is_outdone(member.service_id, name, newest[name])]
            for name in mine:
                self._state.partitions[name].epoch = self._next_epoch()
            self._state.version += bool(mine)
            return {name: self._state.partitions[name].epoch for name in mine}

    def close(self) -> None:
        """There is nothing to release."""

    def gone(self) -> Mapping[str, float]:
        with self._lock:
            now = self._clock.monotonic()
            found = self._state.instances.items()
            return {name: now - one.gone_at for name, one in found if one.gone_at is not None}

    def lead(self, member: Member, lease_s: float) -> int | None:
        with self._lock:
            self._require(member)
            now, leader = self._clock.monotonic(), self._state.coordinator
            if leader.member != member:
                if leader.member is not None and leader.expires_at > now:
                    return None
                leader.member = member
                leader.term += 1
            leader.expires_at = now + lease_s
            return leader.term

    def resign(self, member: Member) -> None:
        with self._lock:
            self._step_down(member)

    def bury(self, term: int) -> tuple[str, ...]:
        with self._lock:
            self._require_term(term)
            now, found = self._clock.monotonic(), self._state.instances.items()
            dead = sorted(name for name, one in found if one.gone_at is None and one.expires_at <= now)
            for name in dead:
                self._end(self._state.instances[name])
            return tuple(dead)

    def forget(self, term: int, after_s: float) -> tuple[str, ...]:
        with self._lock:
            self._require_term(term)
            limit, found = self._clock.monotonic() - after_s, self._state.instances.items()
            old = sorted(name for name, one in found if one.gone_at is not None and one.gone_at <= limit)
            for name in old:
                del self._state.instances[name]
            return tuple(old)

    def set_partitions(self, term: int, partitions: Collection[ClusterPartition]) -> bool:
        with self._lock:
            self._require_term(term)
            now, known = self._clock.monotonic(), self._state.partitions
            before = {name: one.info for name, one in known.items() if not one.is_removed}
            wanted = {one.name: one for one in partitions}
            if before == wanted:
                return False
            for name in before.keys() - wanted.keys():
                known[name].is_removed, known[name].target = True, None
                if known[name].owner is None:
                    del known[name]
            for name, info in wanted.items():
                part = known.setdefault(name, _Partition(info, idle_since=now))
                part.info, part.is_removed = info, False
            self._state.version += 1
            return True

    def planned_for(self) -> str:
        with self._lock:
            return self._state.planned_for

    def apply(
        self,
        term: int,
        planned_for: str,
        targets: Mapping[str, str | None],
        rebalance: Rebalance | None,
        unassigned: Mapping[str, str] | None = None,
    ) -> None:
        with self._lock:
            self._require_term(term)
            self._state.planned_for = planned_for
            for name, target in targets.items():
                if name in self._state.partitions:
                    self._state.partitions[name].target = target
            if unassigned is not None:
                self._state.unassigned = dict(unassigned)
            if rebalance is not None:
                self._keep(rebalance)
            self._state.version += 1

    def open_rebalance(self) -> Rebalance | None:
        with self._lock:
            waiting = [one for one in self._state.rebalances.values() if not one.state.is_final]
            under_way = [one for one in waiting if one.state is not RebalanceState.PLANNED]
            return next(iter(under_way or waiting), None)

    def save_rebalance(self, term: int, rebalance: Rebalance) -> None:
        with self._lock:
            self._require_term(term)
            self._keep(rebalance)

    def pauses_ms(self, names: Collection[str]) -> list[int]:
        with self._lock:
            found = [self._state.partitions.get(name) for name in names]
            return [one.paused_ms for one in found if one is not None]

    def set_draining(self, service_id: str, *, draining: bool) -> None:
        with self._lock:
            instance = self._state.instances.get(service_id)
            if instance is None or instance.gone_at is not None:
                alive = [name for name, one in self._state.instances.items() if one.gone_at is None]
                raise unknown_service(service_id, alive)
            instance.is_draining = draining
            self._state.version += 1

    def request_rebalance(self, reason: str, requested_by: str) -> Rebalance:
        with self._lock:
            rebalance = Rebalance(reason, requested_by=requested_by, created_ms=self._clock.now_ms())
            self._state.rebalances[rebalance.id] = rebalance
            return rebalance

    def cancel_rebalance(self, rebalance_id: UUID) -> Rebalance:
        with self._lock:
            before = self._state.rebalances.get(rebalance_id)
            if before is None:
                raise unknown_rebalance(rebalance_id)
            if not before.state.is_final:
                self._state.rebalances[rebalance_id] = replace(before, is_unwanted=True)
            return before

    def find_rebalance(self, rebalance_id: UUID) -> Rebalance | None:
        with self._lock:
            return self._state.rebalances.get(rebalance_id)

    def _require(self, member: Member) -> _Instance:
        instance = self._state.instances.get(member.service_id)
        if instance is not None and instance.incarnation != member.incarnation:
            raise superseded(member.service_id)
        if instance is None or instance.gone_at is not None or instance.expires_at <= self._clock.monotonic():
            raise lease_lost(member.service_id)
        return instance

    def _require_term(self, term: int) -> None:
        leader = self._state.coordinator
        if leader.term != term or leader.member is None or leader.expires_at <= self._clock.monotonic():
            raise not_coordinator(term)

    def _is_outdone(self, service_id: str, name: str, newest: int) -> bool:
        """Whether this one owns it, under no newer epoch than that."""
        part = self._state.partitions.get(name)
        return part is not None and part.owner == service_id and part.epoch <= newest

    def _keep(self, rebalance: Rebalance) -> None:
        known = self._state.rebalances.get(rebalance.id)
        is_unwanted = rebalance.is_unwanted or (known is not None and known.is_unwanted)
        self._state.rebalances[rebalance.id] = replace(rebalance, is_unwanted=is_unwanted)

    def _next_epoch(self) -> int:
        self._state.epoch += 1
        return self._state.epoch

    def _end(self, instance: _Instance) -> None:
        now = self._clock.monotonic()
        instance.gone_at = now
        self._disown(instance.info.service_id, now)
        self._state.version += 1

    def _disown(self, service_id: str, now: float) -> None:
        for part in list(self._state.partitions.values()):
            if part.owner == service_id:
                self._free(part, now)

    def _free(self, part: _Partition, since: float) -> None:
        part.owner, part.idle_since = None, since
        self._state.version += 1
        if part.is_removed:
            del self._state.partitions[part.info.name]

    def _step_down(self, member: Member) -> None:
        leader = self._state.coordinator
        if leader.member == member:
            leader.member = None
