"""A service instance's life in its cluster: joining, renewing, taking and releasing, noticing when it is out."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from queuecore.cluster.coordinator import Coordinator
from queuecore.cluster.events import NOTHING_SEEN, EventBus, diff
from queuecore.cluster.leases import Lease, boot_time
from queuecore.cluster.options import ClusterOptions
from queuecore.cluster.services import ServiceInfo
from queuecore.cluster.store import ClusterStore, Holdings, Member
from queuecore.cluster.view import ClusterView
from queuecore.errors import LeaseLost, NotCoordinator, QueueError, StoreUnavailable, Superseded

logger = logging.getLogger(__name__)

# How often the whole cluster is looked at, which costs more than looking at one's own part.
_VIEW_EVERY_S: Final = 1.0
_GUARD_EVERY_S: Final = 0.05
_ENDING_S: Final = 5.0


class AgentListener(Protocol):
    """Called from the agent's threads, and must not keep them waiting."""

    def holdings_changed(self) -> None:
        """`held` or `leaving` are otherwise than before."""

    def lease_ending(self, remaining_s: float) -> None:
        """It could not be renewed for long: begin nothing, and bring what is under way to an end by then."""

    def lease_over(self) -> None:
        """Nothing more may be done with what was held."""

    def superseded(self, error: Superseded) -> None:
        """Another instance has this one's id: end."""


class ClusterAgent:
    """Its methods are safe from any thread. Started once.

    Three threads: one talks to the store for this instance, one lets the coordinator step, as planning may take its
    time, and one watches the lease without ever waiting for anything.
    """

    def __init__(
        self,
        store: ClusterStore,
        service: ServiceInfo,
        listener: AgentListener,
        *,
        host: str,
        pid: int,
        options: ClusterOptions,
        coordinator: Coordinator,
        events: EventBus | None = None,
        now: Callable[[], float] = boot_time,
    ) -> None:
        self.service = service
        self.events = events or EventBus()
        self._store = store
        self._listener = listener
        self._host, self._pid = host, pid
        self._options = options
        self._coordinator = coordinator
        self._lease = Lease(now)
        self._lock = threading.Lock()
        self._member: Member | None = None
        # Who it is, or was before it lost its lease.
        self._former: Member | None = None
        self._holdings = Holdings(version=-1)
        # What the host no longer consumes, and since when; and what it met commits of newer epochs for.
        self._released: dict[str, float] = {}
        self._newest: dict[str, int] = {}
        self._view = NOTHING_SEEN
        self._renew_at = self._view_at = float("-inf")
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._is_away = False
        names = {"cluster-agent": self._run, "cluster-coordinator": self._coordinate, "cluster-guard": self._guard}
        self._threads = [threading.Thread(target=run, name=name, daemon=True) for name, run in names.items()]

    @property
    def held(self) -> Mapping[str, int]:
        """Partitions that this instance may consume now, with their epochs; none without a lease that lasts a while."""
        holdings = self._holdings
        if self._lease.remaining_s <= self._options.ending_s:
            return {}
        return {name: epoch for name, epoch in holdings.held.items() if name not in holdings.leaving}

    @property
    def leaving(self) -> frozenset[str]:
        """What it is to stop consuming, and then to `release`."""
        return self._holdings.leaving

    @property
    def lease_remaining_s(self) -> float:
        return self._lease.remaining_s

    @property
    def is_member(self) -> bool:
        return self._member is not None

    @property
    def is_coordinator(self) -> bool:
        return self._coordinator.is_leading

    @property
    def view(self) -> ClusterView:
        """The whole cluster, as it was seen last."""
        return self._view

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def look_now(self) -> None:
        """Somebody says that something has changed."""
        self._wake.set()

    def release(self, names: Iterable[str], idle_s: float = 0.0) -> None:
        """These are consumed no longer, and have not been for so long."""
        since = self._lease.now() - idle_s
        with self._lock:
            for name in names:
                self._released.setdefault(name, since)
        self._wake.set()

    def met_newer(self, newest: Mapping[str, int]) -> None:
        """Commits under these epochs were found where this instance has an older one: it may ask for a newer still."""
        with self._lock:
            self._newest.update(newest)
        self._wake.set()

    def stop(self) -> None:
        """Leave. What was held is to be consumed no longer when this is called."""
        self._stopping.set()
        self._wake.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_ENDING_S)
        self._lease.end()
        member, self._member = self._member, None
        if member is not None:
            try:
                self._store.leave(member)
            except StoreUnavailable as error:
                logger.warning("could not take leave, the lease will run out by itself: %s", error)

    def _run(self) -> None:
        try:
            self._live()
        finally:
            self._store.close()

    def _live(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self._turn()
                self._is_away = False
            except Superseded as error:
                self._out()
                logger.critical("%s", error)
                self._listener.superseded(error)
                return
            except LeaseLost as error:
                logger.warning("%s", error)
                self._out()
            except StoreUnavailable as error:
                self._tell_away(error)
            except Exception:
                # Whatever it is: the lease ends unless a later turn does better, and with it the consuming.
                logger.exception("the cluster agent failed, and tries again")
            self._wake.wait(self._options.look_every_s)

    def _tell_away(self, error: QueueError) -> None:
        """Said once: what is tried in vain after that is no news."""
        level = logging.DEBUG if self._is_away else logging.WARNING
        self._is_away = True
        logger.log(level, "%s; consuming goes on for %.1f s", error, self.lease_remaining_s)

    def _turn(self) -> None:
        now = self._lease.now()
        if self._member is None:
            member = self._store.join(
                self.service, host=self._host, pid=self._pid, lease_s=self._options.lease_s, former=self._former
            )
            self._lease.extend(now, self._options.lease_s)
            self._member = self._former = member
            self._renew_at = now + self._options.renew_every_s
            logger.info("%s has joined the cluster", self.service.service_id)
        elif now >= self._renew_at:
            self._store.renew(self._member, self._options.lease_s)
            self._lease.extend(now, self._options.lease_s)
            self._renew_at = now + self._options.renew_every_s
        self._settle(self._member)
        self._look_around()

    def _settle(self, member: Member) -> None:
        """Give up what is to be given up, take what is free, and learn what is held."""
        with self._lock:
            released, newest = dict(self._released), dict(self._newest)
        if released:
            now = self._lease.now()
            self._store.release(member, {name: now - since for name, since in released.items()})
        if newest:
            self._store.renew_epochs(member, newest)
        with self._lock:
            self._released = {name: at for name, at in self._released.items() if released.get(name) != at}
            self._newest = {name: epoch for name, epoch in self._newest.items() if newest.get(name) != epoch}
        if released or newest or self._store.version() != self._holdings.version:
            self._learn(member)

    def _learn(self, member: Member) -> None:
        holdings = self._store.holdings(member)
        if holdings.free:
            self._store.take(member)
            holdings = self._store.holdings(member)
        before, self._holdings = self._holdings, holdings
        if (before.held, before.leaving) != (holdings.held, holdings.leaving):
            self._listener.holdings_changed()

    def _look_around(self) -> None:
        now = self._lease.now()
        if self._view.version == self._holdings.version or now < self._view_at:
            return
        self._view_at = now + _VIEW_EVERY_S
        before, self._view = self._view, self._store.view()
        for event in diff(before, self._view, self.service.service_id):
            self.events.publish(event)

    def _out(self) -> None:
        """No longer a member, as far as it is known."""
        self._lease.end()
        self._member = None
        self._holdings = Holdings(version=-1)
        with self._lock:
            self._released.clear()
            self._newest.clear()

    def _coordinate(self) -> None:
        while not self._stopping.is_set():
            member = self._member
            try:
                if member is not None:
                    self._coordinator.step(member)
            except (LeaseLost, NotCoordinator, StoreUnavailable) as error:
                logger.debug("not coordinating: %s", error)
            except Exception:
                logger.exception("the coordinator failed, and tries again")
            self._stopping.wait(self._options.look_every_s)
        self._store.close()

    def _guard(self) -> None:
        """Whatever the other threads wait for, what is consumed ends before the lease does."""
        is_ending = is_over = True
        while not self._stopping.wait(_GUARD_EVERY_S):
            remaining_s = self._lease.remaining_s
            if remaining_s > self._options.ending_s:
                if is_ending:
                    self._listener.holdings_changed()
                is_ending = is_over = False
            elif remaining_s > self._options.over_s:
                if not is_ending:
                    self._listener.lease_ending(remaining_s - self._options.over_s)
                is_ending = True
            elif not is_over:
                self._listener.lease_over()
                is_ending = is_over = True
