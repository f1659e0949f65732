"""One consumer of a queue, for as long as its host wants it."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from queueapi.choices import ConsumerState
from queueapi.models import ConsumerStanding
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.consumption import Consumption
from queuecore.consuming.context import Composer
from queuecore.consuming.counting import ConsumptionCounts, TimeBudget
from queuecore.consuming.handlers import bind
from queuecore.consuming.holds import Holds
from queuecore.consuming.marks import MarkStore
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.consuming.posting import Routing
from queuecore.deadletter.policy import OnLimit
from queuecore.errors import HandlersStuck, QueueError, UnknownTopic
from queuecore.metrics.recorder import Recording
from queuecore.providers.base import Provider
from workers.backoff import BackOff
from workers.hosted import told
from workers.inheriting import inherit_offsets
from workers.observing import HostObserver
from workers.provisioning import QueueTopics
from workers.standings import Gauge, StateSince, told_tenants

logger = logging.getLogger(__name__)

# How long a consumer that is to begin anew, or to end, waits for the messages under way.
DRAIN_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """How the configuration wants a consumer to be.

    queue_id      whose messages it reads
    options       of its handler
    holds         what is paused of the queue
    held_because  the reason of the pause that would have it stand still, for people
    former        the groups that read the queue when its consumers were divided otherwise
    version       of the queue's row that all of this was read from: one of its own makes no difference
    """

    queue_id: UUID
    plan: ConsumptionPlan
    options: Mapping[str, Any]
    holds: Holds
    held_because: str
    former: tuple[str, ...]
    version: int = field(default=0, compare=False)

    def has_handler_of(self, other: "Wanted") -> bool:
        return (self.plan.handler_name, self.options) == (other.plan.handler_name, other.options)


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a host gives a queue's consumers."""

    provider: Provider
    composer: Composer
    routing: Routing
    marks: MarkStore
    topics: QueueTopics
    recording: Recording


class HostedConsumer:
    """Whatever ends its consumption, it alone stands still for a while and begins anew: one partition's damage must not
    stop the others'. For the host's thread; others may end it and wait for that."""

    def __init__(self, wanted: Wanted, equipment: Equipment, clock: Clock = SYSTEM_CLOCK) -> None:
        self.wanted = wanted
        # Why no handler can be run any more in this process.
        self.stuck: HandlersStuck | None = None
        self._applied = wanted
        self._equipment = equipment
        self._consumption: Consumption | None = None
        self._observer = HostObserver()
        self._backoff = BackOff(clock)
        self._gauge = Gauge(clock)
        self._state = StateSince()
        # Held where a consumption becomes this consumer's, and where it is wanted no longer: none is left running.
        self._changing = threading.Lock()
        self._is_wanted = True
        # Told to end, to begin anew or for good.
        self._is_ending = False
        # Partitions that paused themselves, with the reason; and those of them whose pause is in the database.
        self._unwritten: dict[int, str] = {}
        self._written: set[int] = set()
        self._newer: dict[str, int] = {}
        # Commits that were refused: of consumptions that have ended, and how many of all are counted elsewhere.
        self._refused_before = self._refused_taken = 0

    @property
    def name(self) -> str:
        return f"{self.wanted.plan.queue}[{', '.join(map(str, self._partitions))}]"

    @property
    def is_stopped(self) -> bool:
        """Whether it ends, or has ended, for good."""
        return not self._is_wanted

    @property
    def reads(self) -> set[str]:
        """The partitions of which something may still be handled or committed, by their names."""
        consumption, plan = self._consumption, self._applied.plan
        if consumption is None or consumption.ended.is_set():
            return set()
        numbers = {info.partition for info in plan.infos} | consumption.partitions
        # A queue's partitions differ by their numbers alone.
        return {str(replace(plan.infos[0], partition=number)) for number in numbers}

    def take_newer(self) -> dict[str, int]:
        """Partitions that were met with commits of a newer epoch than this instance has, and which; each once."""
        newer, self._newer = self._newer, {}
        if self._consumption is not None:
            newer |= self._named(self._consumption.stale)
        return newer

    def take_refused(self) -> int:
        """How many commits were refused since this was asked, as another has the partition."""
        now = 0 if self._consumption is None else self._consumption.counts.stale_refused
        refused = self._refused_before + now - self._refused_taken
        self._refused_taken += refused
        return refused

    def _named(self, by_number: Mapping[int, int]) -> dict[str, int]:
        names = {info.partition or 0: str(info) for info in self._applied.plan.infos}
        return {names[number]: value for number, value in by_number.items() if number in names}

    @property
    def _partitions(self) -> list[int]:
        return [info.partition or 0 for info in self.wanted.plan.infos]

    def want(self, wanted: Wanted) -> None:
        """Be like this: from the next pack on, or in a new consumption where it needs one."""
        if wanted != self.wanted:
            self._backoff.forgive()
        self.wanted = wanted
        lifted = self._written - wanted.holds.partitions
        self._written -= lifted
        if self._consumption is None or self._is_ending:
            return
        if lifted:
            self._consumption.resume(lifted)
        if wanted == self._applied:
            self._applied = wanted
            return
        if (
            wanted.has_handler_of(self._applied)
            and self._is_ready_for(wanted)
            and self._consumption.change(wanted.plan)
        ):
            self._consumption.hold(self._holds())
            self._applied = wanted
        else:
            logger.info("%s begins anew, as its configuration has changed", self.name)
            self._end(DRAIN_S)

    def _is_ready_for(self, wanted: Wanted) -> bool:
        """Whether partitions that come in addition can be read from where they were left. Where that is not to be had
        while others are read, all begin anew."""
        plan = wanted.plan
        new = plan.without([info.partition or 0 for info in self._applied.plan.infos])
        if not new.infos or new.group != self._applied.plan.group:
            return True
        try:
            self._equipment.topics.ensure()
            inherit_offsets(self._equipment.provider.admin(), new, wanted.former)
        except QueueError as error:
            logger.info("%s cannot read more while it reads: %s", self.name, error)
            return False
        return True

    def look(self) -> None:
        """See whether it has ended, and begin where it is wanted and may."""
        if self._consumption is not None and self._consumption.ended.is_set():
            self._bury(self._consumption)
        if self._consumption is None and self._is_wanted and self.stuck is None and self._backoff.is_over:
            self._begin()

    def stop(self, timeout_s: float) -> None:
        """End for good, after the messages under way. Does not wait."""
        with self._changing:
            self._is_wanted = False
            self._end(timeout_s)

    def abandon(self) -> None:
        """End for good, at once."""
        with self._changing:
            self._is_wanted = False
            if self._consumption is not None:
                self._consumption.abandon()

    def wait_for_end(self, timeout_s: float) -> bool:
        return self._consumption is None or self._consumption.ended.wait(timeout_s)

    def new_pauses(self) -> dict[int | None, str]:
        """What paused itself and is not in the database yet: partitions, or None for the whole queue."""
        self._hear()
        if self._unwritten and self.wanted.plan.letters.on_limit is OnLimit.HALT:
            return {None: next(iter(self._unwritten.values()))}
        return dict(self._unwritten.items())

    def pause_written(self, partition: int | None) -> None:
        """It is in the database now; who removes it there lifts it."""
        if partition is None:
            self._unwritten.clear()
        elif self._unwritten.pop(partition, None) is not None:
            self._written.add(partition)

    def standing(self) -> ConsumerStanding:
        """Not saved, and without whose and of when it is."""
        counts, budget, tenants = ConsumptionCounts(), TimeBudget(), {}
        if self._consumption is not None:
            counts, budget = self._consumption.counts, self._consumption.budget
            tenants = told_tenants(self._consumption.counts_by_tenant)
        handled_per_s, shares = self._gauge.read(counts, budget)
        self._tell_state()
        return ConsumerStanding(
            queue_id=self.wanted.queue_id,
            consumer_group=self.wanted.plan.group,
            partitions=self._partitions,
            queue_version=(self.wanted if self._consumption is None else self._applied).version,
            state=self._state.state,
            reason=self._state.reason,
            since=self._state.since,
            counts=asdict(counts),
            tenants=tenants,
            handled_per_s=handled_per_s,
            budget=shares,
        )

    def _begin(self) -> None:
        self._backoff.begin()
        wanted, equipment = self.wanted, self._equipment
        try:
            handler = bind(wanted.plan.handler_name, wanted.options)
            equipment.topics.ensure()
            inherit_offsets(equipment.provider.admin(), wanted.plan, wanted.former)
            consumption = Consumption(
                wanted.plan,
                equipment.provider,
                handler,
                composer=equipment.composer,
                routing=equipment.routing,
                observer=self._observer,
                marks=equipment.marks,
                recording=equipment.recording,
            )
        except BaseException as error:
            # Also where somebody's handler would have the process exit: only its queue stands still.
            self._stand_still(error)
            return
        consumption.hold(self._holds())
        with self._changing:
            if not self._is_wanted:
                # Told to end while the provider was asked: it starts only to release what it has opened.
                consumption.abandon()
            consumption.start()
            self._consumption, self._applied = consumption, wanted
        self._gauge.reset()
        self._state.become(ConsumerState.WAITING)

    def _end(self, timeout_s: float) -> None:
        if self._consumption is not None:
            self._is_ending = True
            self._consumption.tell_to_stop(timeout_s)

    def _bury(self, ended: Consumption) -> None:
        self._consumption, self._is_ending = None, False
        self._observer.forget_stalls()
        if isinstance(ended.error, HandlersStuck):
            self.stuck = ended.error
        self._newer |= self._named(ended.stale)
        self._refused_before += ended.counts.stale_refused
        if ended.error is not None:
            self._stand_still(ended.error)

    def _stand_still(self, error: BaseException) -> None:
        if isinstance(error, UnknownTopic):
            self._equipment.topics.miss()
        pause_s, reason = self._backoff.failed(), told(error)
        # Said once: what is tried in vain after that is no news.
        is_known = (self._state.state, self._state.reason) == (ConsumerState.STANDING_STILL, reason)
        level = logging.DEBUG if is_known else logging.ERROR
        logger.log(level, "%s stands still and tries again in %g s: %s", self.name, pause_s, reason)
        self._state.become(ConsumerState.STANDING_STILL, reason)

    def _holds(self) -> Holds:
        self._hear()
        holds = self.wanted.holds
        is_halted = bool(self._unwritten) and self.wanted.plan.letters.on_limit is OnLimit.HALT
        return Holds(holds.queue or is_halted, holds.tenants, holds.partitions | self._unwritten.keys())

    def _hear(self) -> None:
        self._unwritten |= self._observer.take_pauses()

    def _tell_state(self) -> None:
        consumption, holds = self._consumption, self._holds()
        if consumption is None:
            return
        if all(holds.has(partition) for partition in self._partitions):
            self._state.become(ConsumerState.PAUSED, self.wanted.held_because)
        elif stall := self._observer.longest_stall():
            self._state.become(ConsumerState.STALLED, stall.reason)
        elif not consumption.partitions:
            self._state.become(ConsumerState.WAITING)
        else:
            self._state.become(ConsumerState.RUNNING)
