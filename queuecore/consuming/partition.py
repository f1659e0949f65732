"""One partition: what was read of it and is not yet done. Knows no thread and no provider."""

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import islice, takewhile

from queuecore.clock import Clock
from queuecore.consuming.attempt import Attempt, Run
from queuecore.consuming.lingering import Lingering
from queuecore.consuming.marks import NoMark, PartitionMark
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.consuming.state import PartitionState
from queuecore.consuming.stateful_attempt import StatefulAttempt
from queuecore.consuming.tracker import OffsetTracker
from queuecore.consuming.work import Outcome, Work
from queuecore.delivery import Delivery
from queuecore.messages import TENANT_ID, Record, text_header
from queuecore.metrics.consumed import UNRECORDED, ConsumedRecorder
from queuecore.processing.strategies import Verdict
from queuecore.topics import TopicPartitionInfo

NO_TENANTS: frozenset[str] = frozenset()


class PartitionWork:
    """From the poll to the verdict on each message. For the thread that reads.

    A record waits in the intake until it becomes part of a pack. From then on it is open: in the attempt under way, or
    waiting for a later one because it was not submitted, is to be tried again, or is behind such a one. Messages that
    wait hold back what is in sequence with them, and nothing else: meanwhile new packs go on.
    """

    def __init__(
        self,
        info: TopicPartitionInfo,
        plan: ConsumptionPlan,
        clock: Clock,
        on_over: Callable[[], None],
        epoch: int = 0,
        mark: PartitionMark | None = None,
        state: PartitionState | None = None,
        *,
        is_fenced: bool = False,
        recorder: ConsumedRecorder = UNRECORDED,
    ) -> None:
        """`epoch` counts how often the partition was given; `is_fenced`: not by us, but by whoever assigns it."""
        self.info = info
        self.plan = plan
        self.tracker = OffsetTracker(epoch)
        # Of the assignment, for letters; None: nobody said.
        self.epoch = epoch if is_fenced else None
        # What its handlers remember, where they do.
        self.state = state
        # Who is told of what is done with it.
        self.recorder = recorder
        self.attempt: Attempt | None = None
        # Why it stands still; empty: it does not.
        self.paused = ""
        # How many messages were finished.
        self.progress = 0
        self._clock = clock
        self._on_over = on_over
        # What the last call of `begin` took of the intake.
        self.begun: Sequence[Work] = ()
        self._intake: deque[Record] = deque()
        self._open: list[Work] = []
        self._attempted: Sequence[Work] = ()
        # Whether some of the attempt were finished before it was over.
        self._has_early = False
        self._bytes = 0
        # Handlers that overran their time: what is in sequence with their messages waits for them.
        self._lingering = Lingering()
        self._mark: PartitionMark = mark or NoMark()
        found = self._mark.left_behind()
        # A crash left the messages up to this offset suspect; -1: none.
        self._suspect_until = found.last if found else -1
        # This one was alone when its process was killed; -1: none was.
        self._killer = found.first if found and found.alone and not found.accompanied else -1
        # Or not quite alone, and is to be, before it is blamed.
        self._accompanied = found.first if found and found.alone and found.accompanied else -1
        self._caught: Work | None = None

    @property
    def is_busy(self) -> bool:
        return self.attempt is not None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left of what was read."""
        return not self._intake and not self._open

    @property
    def open(self) -> int:
        """How many messages of packs are not done."""
        return sum(not work.is_finished for work in self._open)

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be read for now."""
        plan = self.plan
        return (
            len(self._intake) >= 2 * plan.pack_size
            or (self._bytes >= plan.max_open_bytes and bool(self._intake))
            or bool(self.paused)
        )

    def follow(self, plan: ConsumptionPlan) -> None:
        """Go on by this plan, which may have changed. What is open keeps its place among what comes."""
        if plan.submit != self.plan.submit:
            for work in self._open:
                work.lane = plan.submit.lane_of(work.record)
            self._lingering.follow(plan.submit)
        self.plan = plan

    @property
    def is_suspect(self) -> bool:
        """Whether the next messages were under way when an earlier process was killed."""
        return self._suspect_until >= 0

    def has_suspect(self, now: float, paused_tenants: Collection[str] = NO_TENANTS) -> bool:
        """Whether such a message could be handed over now."""
        if not self.is_suspect or self.attempt is not None or self.paused or self.is_lingering(now):
            return False
        if self._open and self._open[0].due_at > now:
            return False
        first = self._first
        return first is not None and not (paused_tenants and _tenant_of(first) in paused_tenants)

    def is_held(self, paused_tenants: Collection[str]) -> bool:
        """Whether its oldest message is of a tenant that is paused."""
        first = self._first if paused_tenants else None
        return first is not None and _tenant_of(first) in paused_tenants

    @property
    def _first(self) -> Record | None:
        """The oldest message that is not done."""
        if (work := next((work for work in self._open if not work.is_finished), None)) is not None:
            return work.record
        return self._intake[0] if self._intake else None

    def is_lingering(self, now: float) -> bool:
        """Whether a handler that overran its time still holds back its lane."""
        return self._lingering.is_any(now)

    def is_stuck(self, now: float) -> bool:
        """Whether a lane has waited for such a handler as long as it may: only another process can go on with it."""
        return bool(self._lingering) and bool(self._stuck(now))

    def take_stuck(self, now: float) -> list[Work]:
        """The messages of such handlers that would be tried again: another process would get stuck with them as
        well. No further attempt at these."""
        offsets = self._stuck(now)
        stuck = [work for work in self._open if work.record.offset in offsets and not work.is_finished]
        self.finish(stuck)
        self._open = [work for work in self._open if work not in stuck]
        return stuck

    def _stuck(self, now: float) -> set[int]:
        """The offsets of their messages. What is part of the attempt under way is decided on with that."""
        stuck = self._lingering.stuck(now)
        return stuck - {work.record.offset for work in self._attempted} if stuck else stuck

    def withdraw(self, tenants: Collection[str] | None = None) -> None:
        """Hand over nothing more of the attempt under way, where it has messages of these tenants; without any: in any
        case."""
        attempt = self.attempt
        if attempt is None or not attempt.is_open:
            return
        if tenants is None or (tenants and any(_tenant_of(work.record) in tenants for work in self._attempted)):
            attempt.withdraw()

    def offer(self, records: Sequence[Record]) -> None:
        """Polled just now, in order."""
        self._intake.extend(records)
        size = sum([len(record[2]) for record in records])
        self._bytes += size
        self.recorder.polled(records, size)

    def begin(
        self, now: float, paused_tenants: Collection[str] = NO_TENANTS, *, take_new: bool = True
    ) -> Attempt | None:
        """The next attempt, if something is due. The caller has it worked on and, once it is over, calls `conclude`."""
        self.begun = ()
        if self.attempt is not None or self.paused:
            return None
        new = self._take_pack(paused_tenants) if take_new else []
        self.begun = new
        if not self._open and not self._lingering and not paused_tenants and not self.is_suspect:
            # As it is nearly always.
            self._open = new
            selected = new
        else:
            self._open.extend(new)
            if self._catch_killer():
                # The mark stays its own until its letter is stored: else it would have to be found again.
                return None
            selected = self._select(now, paused_tenants)
        return self._attempt(selected) if selected else None

    def accuse(self, offset: int) -> None:
        """This one is not to be handed over."""
        self._killer = offset

    def forget_begun(self) -> None:
        """What `begin` took just now is not to be handled after all: the group gets it again."""
        if self.attempt is not None:
            self.attempt.close()
            self.attempt, self._attempted = None, ()
        begun = set(self.begun)
        self._open = [work for work in self._open if work not in begun]

    def take_killer(self) -> Work | None:
        """The message that was alone with its handler when an earlier process was killed, once it was read: it is not
        handed over again, and nothing else is before the caller has taken it."""
        caught, self._caught = self._caught, None
        return caught

    def conclude(self, now: float) -> Verdict:
        """The attempt is over: what becomes of its messages. What was finished before is not told again."""
        attempt, attempted = self.attempt, self._attempted
        self.attempt, self._attempted = None, ()
        self._mark.release()
        if attempt is not None and attempt.is_complete and not self._has_early and len(self._open) == len(attempted):
            # As it is nearly always.
            self._open = []
            self._bytes -= sum([work.size for work in attempted])
            self.progress += len(attempted)
            self._mark.clear()
            return Verdict(list(attempted))
        verdict = self.plan.processing.decide(attempted, now, self._clock.now_ms())
        if self.state is not None and verdict.again:
            self.state.undo([work.record.offset for work in verdict.again])
        done = [work for work in verdict.done if not work.is_finished]
        self.finish(done)
        self.finish(verdict.given_up)
        self._open = [work for work in self._open if not work.is_finished]
        if not self._lingering:
            self._mark.clear()
        return replace(verdict, done=done)

    def take_succeeded(self) -> list[Work]:
        """What succeeded while the attempt goes on. Nothing where it may have to be handled again."""
        if self.attempt is None or self.plan.processing.retries_pack:
            return []
        succeeded = [work for work in self.attempt.take_succeeded() if not work.is_finished]
        self._has_early = True
        self.finish(succeeded)
        return succeeded

    def finish(self, works: Sequence[Work]) -> None:
        """No further attempt at these."""
        self.progress += len(works)
        for work in works:
            work.is_finished = True
        self._bytes -= sum([work.size for work in works])

    def reopen(self, works: Sequence[Work]) -> None:
        """These were finished, and are not: they begin anew."""
        for work in works:
            work.is_finished = False
            work.trouble.reason = ""
            work.trouble.failures = 0
            work.outgoing = ()
        self._bytes += sum([work.size for work in works])
        self._open = sorted([*self._open, *works], key=lambda work: work.record.offset)

    def expire(self, now: float) -> list[Run]:
        """Leave behind handlers whose time is up."""
        timeout_ms = self.plan.timeout_ms
        if self.attempt is None or timeout_ms is None:
            return []
        late = self.attempt.expire(now, timeout_ms / 1000, cancel=self.plan.processing.cancels_overruns)
        for work, run in late:
            if work.lane is not None or self.is_suspect:
                self._lingering.add(work, run, now + self.plan.overrun_limit_ms / 1000)
        return [run for _, run in late]

    def next_due(self, now: float) -> float | None:
        """When a message that waits may be handed over, if that is a matter of time. What was due before is not told:
        it waits for something else."""
        if self.attempt is not None or self.paused:
            return None
        times = [work.due_at for work in self._open if work.due_at > now]
        if (until := self._lingering.next_until(now)) is not None:
            times.append(until)
        return min(times, default=None)

    def close(self) -> list[Run]:
        """The partition is another's, or will be: nothing that is under way counts any more."""
        runs = [] if self.attempt is None else self.attempt.close()
        self._mark.clear()
        self._mark.close()
        self.recorder.release()
        return runs

    def _take_pack(self, paused_tenants: Collection[str]) -> list[Work]:
        if not self._intake or (self._open and self._must_wait_for_open(paused_tenants)):
            return []
        plan, intake = self.plan, self._intake
        room = min(len(intake), plan.pack_size, plan.max_open - self.tracker.open)
        if room <= 0:
            return []
        if paused_tenants and plan.delivery is not Delivery.AT_LEAST_ONCE:
            # What is taken is committed, or what comes after it is not settled before it.
            room = _before_tenants(islice(intake, room), paused_tenants)
        records = [intake.popleft() for _ in range(room)]
        self.tracker.give([record[0] for record in records])
        lane_of = plan.submit.lane_of
        return [Work(record, lane_of(record)) for record in records]

    def _must_wait_for_open(self, paused_tenants: Collection[str]) -> bool:
        """Whether nothing new could be handed over before what is open is done, or memory is short."""
        plan = self.plan
        if plan.submit.holds_all or self._is_memory_short():
            return True
        # A pack is tried again as a whole; of a tenant that is paused nothing is tried for now.
        return plan.processing.retries_pack and any(
            not paused_tenants or _tenant_of(work.record) not in paused_tenants for work in self._open
        )

    def _is_memory_short(self) -> bool:
        """What is only read does not count: it waits to be taken."""
        most = self.plan.max_open_bytes
        return self._bytes >= most and sum(work.size for work in self._open if not work.is_finished) >= most

    def _catch_killer(self) -> bool:
        if self._killer < 0:
            return False
        self._caught = next((work for work in self._open if work.record.offset == self._killer), None)
        if self._caught is not None:
            self._killer = -1
            self.finish([self._caught])
            self._open.remove(self._caught)
        return self._caught is not None

    def _select(self, now: float, paused_tenants: Collection[str]) -> list[Work]:
        """What is due, less what is behind something that is not."""
        blocked = self._lingering.lanes(now)
        if self.is_suspect and blocked:
            # One that still runs may yet kill the process: no other must be blamed for it.
            return []
        settles_in_order = self.plan.delivery is Delivery.EXACTLY_ONCE
        selected: list[Work] = []
        for work in self._open:
            is_held = bool(paused_tenants) and _tenant_of(work.record) in paused_tenants
            if is_held or work.due_at > now:
                if self.plan.submit.holds_all or self.is_suspect or (is_held and settles_in_order):
                    break
                blocked.add(work.lane)
            elif work.lane is None or work.lane not in blocked:
                selected.append(work)
                if self.is_suspect:
                    return self._only(selected[0])
        return selected

    def _only(self, work: Work) -> list[Work]:
        """One message at a time while messages are suspect, and one of all that the process has."""
        if work.record.offset > self._suspect_until:
            self._suspect_until = -1
            return [work]
        return [work] if self._mark.claim(exclusive=work.record.offset == self._accompanied) else []

    def _attempt(self, selected: list[Work]) -> Attempt | None:
        """None while another partition of the process has to be by itself."""
        if not self._mark.set(selected[0].record[0], selected[-1].record[0], alone=self.is_suspect):
            return None
        plan = self.plan
        self._has_early = False
        for work in selected:
            if work.deliveries:
                work.outcome = Outcome.NOT_SUBMITTED
                work.trouble.due_at = 0.0
        self._attempted = selected
        submit_s = float("inf") if plan.timeout_ms is None else plan.timeout_ms / 1000
        stages = plan.submit.stages(_lanes(selected))
        kind = Attempt if self.state is None else StatefulAttempt
        # What is committed already is given up for good.
        holds_given_up = plan.letters.may_stand_still and plan.delivery is not Delivery.AT_MOST_ONCE
        self.attempt = kind(stages, plan.processing, self._on_over, submit_s, holds_given_up=holds_given_up)
        return self.attempt


def _lanes(works: Sequence[Work]) -> list[list[Work]]:
    lanes: list[list[Work]] = []
    by_key: dict[Hashable, list[Work]] = {}
    for work in works:
        if work.lane is None:
            lanes.append([work])
        elif (lane := by_key.get(work.lane)) is not None:
            lane.append(work)
        else:
            by_key[work.lane] = lane = [work]
            lanes.append(lane)
    return lanes


def _before_tenants(records: Iterable[Record], tenants: Collection[str]) -> int:
    """How many come before the first of these tenants'."""
    return sum(1 for _ in takewhile(lambda record: _tenant_of(record) not in tenants, records))


def _tenant_of(record: Record) -> str:
    return text_header(record.headers, TENANT_ID) or ""
