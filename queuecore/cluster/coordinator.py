"""The one instance that says who should have what."""

import hashlib
import logging
from collections.abc import Callable, Collection
from dataclasses import asdict, replace
from typing import Final

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.cluster.assignment import AssignmentPlan, plan
from queuecore.cluster.options import ClusterOptions
from queuecore.cluster.rebalances import MAX_LISTED_MOVES, Cause, Rebalance, RebalanceState
from queuecore.cluster.services import ClusterPartition, named_services
from queuecore.cluster.store import ClusterStore, Member
from queuecore.cluster.view import ClusterView

logger = logging.getLogger(__name__)

# However long the coming and going lasts, it is planned for after so many times the usual wait.
_MOST_WAITS: Final = 5
_FORGET_EVERY_S: Final = 60.0

Partitions = Callable[[], Collection[ClusterPartition] | None]


class Coordinator:
    """Every instance has one and lets it `step`; that of the leader acts. For one thread.

    It keeps nothing that another could not find in the store: whoever leads next goes on where it stopped.
    """

    def __init__(
        self,
        store: ClusterStore,
        partitions: Partitions,
        options: ClusterOptions,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`partitions` says which there are; None where it cannot be known just now."""
        self._store = store
        self._partitions = partitions
        self._options = options
        self._clock = clock
        self._term: int | None = None
        self._known: frozenset[ClusterPartition] | None = None
        self._known_digest = ""
        self._view = ClusterView(version=-1)
        self._wait = _Wait(options.debounce_s, clock)
        self._try_until = float("inf")
        self._forget_at = float("-inf")

    @property
    def is_leading(self) -> bool:
        return self._term is not None

    def step(self, member: Member) -> None:
        """Lead, if nobody else does, and see to what is to be done. NotCoordinator where another leads since."""
        term = self._store.lead(member, self._options.coordinator_lease_s)
        if term != self._term:
            self._begin_term(member, term)
        if term is None:
            return
        for dead in self._store.bury(term):
            logger.warning("%s is declared dead, its lease has ended; its partitions go to others", dead)
            # It was waited for long enough.
            self._wait.skip()
        if not self._learn_partitions(term):
            return
        self._forget(term)
        if self._view.version != self._store.version():
            self._view = self._store.view()
        self._act(term, self._view)

    def _begin_term(self, member: Member, term: int | None) -> None:
        if term is not None:
            logger.info("%s coordinates the cluster from now on (term %d)", member.service_id, term)
        self._term, self._known = term, None
        self._view = ClusterView(version=-1)
        self._wait.end()
        self._try_until = float("inf")

    def _learn_partitions(self, term: int) -> bool:
        """Whether it is known which there are."""
        found = self._partitions()
        if found is None:
            return self._known is not None
        if (partitions := frozenset(found)) != self._known:
            self._store.set_partitions(term, partitions)
            names = sorted(repr(one) for one in partitions)
            self._known, self._known_digest = partitions, hashlib.sha256("\n".join(names).encode()).hexdigest()
        return True

    def _forget(self, term: int) -> None:
        if (now := self._clock.monotonic()) >= self._forget_at:
            self._forget_at = now + _FORGET_EVERY_S
            self._store.forget(term, self._options.forget_after_s)

    def _act(self, term: int, view: ClusterView) -> None:
        rebalance = self._store.open_rebalance()
        situation = self._situation(view)
        planned_for = self._store.planned_for()
        if rebalance is not None and rebalance.is_unwanted:
            self._cancel(term, view, rebalance, situation)
        elif situation != planned_for:
            self._wait.see(situation)
            if self._wait.is_over:
                self._plan_for_change(term, view, rebalance, situation, planned_for)
        elif rebalance is None:
            return
        elif rebalance.state is RebalanceState.PLANNED:
            self._plan(term, view, rebalance, situation)
        else:
            self._follow(term, view, rebalance, situation)

    def _situation(self, view: ClusterView) -> str:
        """All that a plan depends on, but for who has what."""
        services = sorted(repr(info) for name, info in view.services.items() if name not in view.draining)
        digest = hashlib.sha256("\n".join(services).encode()).hexdigest()
        return f"{self._options.assignor}:{digest}:{self._known_digest}"

    def _plan_for_change(
        self, term: int, view: ClusterView, rebalance: Rebalance | None, situation: str, planned_for: str
    ) -> None:
        self._wait.end()
        if rebalance is None:
            # Only what comes after the last colon is about partitions.
            is_same_cluster = planned_for.rsplit(":", 1)[0] == situation.rsplit(":", 1)[0]
            cause = Cause.PARTITIONS if is_same_cluster else Cause.MEMBERSHIP
            reason = "There are other partitions" if is_same_cluster else self._who_changed(view)
            rebalance = Rebalance(reason, cause=cause, created_ms=self._clock.now_ms())
        self._plan(term, view, rebalance, situation)

    def _who_changed(self, view: ClusterView) -> str:
        """In words, from who has or should have something and is not there, and who is there and has nothing."""
        known = {one for owner in view.owners.values() for one in (owner.owner, owner.target) if one is not None}
        usable = view.services.keys() - view.draining
        drained = known & view.services.keys() & view.draining
        changes = {"left": known - usable - drained, "drained": drained, "joined": usable - known}
        said = [f"{named_services(sorted(who))} {what}" for what, who in changes.items() if who]
        return " and ".join(said) or "services are otherwise than before"

    def _plan(self, term: int, view: ClusterView, rebalance: Rebalance, situation: str) -> None:
        """Plan, and have everybody act on it: for the first time, or once more."""
        planned = self._assign(view)
        assignment = planned.assignment
        targets = {
            name: assignment.get(name) for name, owner in view.owners.items() if owner.target != assignment.get(name)
        }
        pending = [name for name, target in assignment.items() if view.owners[name].owner != target]
        self._try_until = self._clock.monotonic() + self._options.rebalance_timeout_s
        for reason in sorted(set(planned.unassigned.values())):
            logger.warning("partitions that nobody consumes, and whose messages wait: %s", reason)
        if not pending and rebalance.cause is not Cause.REQUEST and not rebalance.tries:
            # Nothing changes hands: nothing that anybody would want to hear of.
            return self._store.apply(term, situation, targets, None, planned.unassigned)
        if rebalance.tries:
            # What was done before it is planned once more counts as done.
            rebalance = replace(rebalance, done=max(rebalance.done, rebalance.total - len(_pending(view))))
        begun = self._begun(rebalance, planned, len(pending))
        logger.info("%s: %d partitions change hands, %d are placed", begun, begun.moves, begun.placements)
        self._store.apply(term, situation, targets, begun, planned.unassigned)
        return None

    def _assign(self, view: ClusterView) -> AssignmentPlan:
        services = [info for name, info in view.services.items() if name not in view.draining]
        return plan(
            self._options.assignor,
            services,
            view.partitions.values(),
            view.current,
            hash_name=self._options.hash_name,
        )

    def _begun(self, rebalance: Rebalance, planned: AssignmentPlan, pending: int) -> Rebalance:
        now_ms, moves = self._clock.now_ms(), min(len(planned.moves), pending)
        state = RebalanceState.RETRYING if rebalance.tries else RebalanceState.RUNNING
        return replace(
            rebalance,
            state=state if pending else RebalanceState.DONE,
            started_ms=rebalance.started_ms or now_ms,
            finished_ms=None if pending else now_ms,
            tries=rebalance.tries + 1,
            moves=moves,
            placements=pending - moves,
            total=rebalance.done + pending,
            balance={"before": asdict(planned.before), "after": asdict(planned.after)},
            listed=planned.moves[:MAX_LISTED_MOVES],
        )

    def _follow(self, term: int, view: ClusterView, rebalance: Rebalance, situation: str) -> None:
        pending = _pending(view)
        done = max(rebalance.done, rebalance.total - len(pending))
        if not pending:
            return self._finish(term, rebalance, RebalanceState.DONE, done=rebalance.total)
        if self._clock.monotonic() >= self._try_until:
            return self._try_again(term, view, rebalance, situation, pending)
        if done != rebalance.done:
            self._store.save_rebalance(term, replace(rebalance, done=done))
        return None

    def _try_again(
        self, term: int, view: ClusterView, rebalance: Rebalance, situation: str, pending: list[str]
    ) -> None:
        error = _held_up(view, pending)
        if rebalance.tries < self._options.rebalance_tries:
            logger.warning("%s is planned once more: %s", rebalance, error)
            return self._plan(term, view, replace(rebalance, error=error), situation)
        logger.error("%s is given up: %s", rebalance, error)
        return self._leave_as_is(term, view, rebalance, situation, RebalanceState.FAILED, error)

    def _cancel(self, term: int, view: ClusterView, rebalance: Rebalance, situation: str) -> None:
        logger.info("%s is cancelled; what has not moved stays", rebalance)
        self._leave_as_is(term, view, rebalance, situation, RebalanceState.CANCELLED, rebalance.error)

    def _leave_as_is(
        self,
        term: int,
        view: ClusterView,
        rebalance: Rebalance,
        situation: str,
        state: RebalanceState,
        error: str,
    ) -> None:
        """What has an owner stays with it; what was released goes on to whom it was planned for."""
        alive = view.services.keys()
        kept = {name: owner.owner for name in _pending(view) if (owner := view.owners[name]).owner in alive}
        ended = replace(rebalance, state=state, error=error, finished_ms=self._clock.now_ms())
        if not rebalance.tries:
            # It was not begun: nothing was planned for it.
            return self._store.save_rebalance(term, ended)
        return self._store.apply(term, situation, kept, ended)

    def _finish(self, term: int, rebalance: Rebalance, state: RebalanceState, done: int) -> None:
        pauses = sorted(self._store.pauses_ms([move.partition for move in rebalance.listed]))
        ended = replace(
            rebalance,
            state=state,
            done=done,
            finished_ms=self._clock.now_ms(),
            pauses_ms=(pauses[len(pauses) // 2], pauses[-1]) if pauses else None,
        )
        logger.info("%s is done", rebalance)
        self._store.save_rebalance(term, ended)


class _Wait:
    """Until nobody has come or gone for a while: who restarts a whole cluster has it planned once."""

    def __init__(self, wait_s: float, clock: Clock) -> None:
        self._wait_s = wait_s
        self._clock = clock
        self._seen: str | None = None
        self._first_at = self._last_at = 0.0
        self._is_skipped = False

    def see(self, situation: str) -> None:
        now = self._clock.monotonic()
        if self._seen is None:
            self._first_at = now
        if situation != self._seen:
            self._seen, self._last_at = situation, now

    @property
    def is_over(self) -> bool:
        now = self._clock.monotonic()
        waited_s, longest_s = now - self._last_at, now - self._first_at
        return self._is_skipped or waited_s >= self._wait_s or longest_s >= _MOST_WAITS * self._wait_s

    def skip(self) -> None:
        """Wait for nobody this time."""
        self._is_skipped = True

    def end(self) -> None:
        self._seen, self._is_skipped = None, False


def _pending(view: ClusterView) -> list[str]:
    """Partitions that have yet to come where they should be."""
    return [name for name, owner in view.owners.items() if owner.target is not None and owner.owner != owner.target]


def _held_up(view: ClusterView, pending: list[str]) -> str:
    """Who keeps them from it, in words."""
    keepers = sorted({owner for name in pending if (owner := view.owners[name].owner) is not None})
    takers = sorted({view.owners[name].target or "" for name in pending if view.owners[name].owner is None})
    said = [f"{named_services(keepers)} did not release in time"] if keepers else []
    said += [f"{named_services(takers)} did not take in time"] if takers else []
    return f"{len(pending)} partitions have not changed hands: {' and '.join(said)}"
