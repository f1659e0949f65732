"""One stay in a group, from joining to leaving: read, have it handled, settle. For the thread that reads.

Handlers run on other threads. Meanwhile this one polls, so that the group hears of it however long a message takes and
a partition can be given away in the middle of a pack; and it reads ahead, a pack or two for each partition. A partition
that has as much is paused, and the others go on.
"""

import logging
from collections.abc import Collection, Iterable
from typing import Final

from queuecore.consuming.attempt import Run
from queuecore.consuming.desk import Finished
from queuecore.consuming.giving_up import KILLED, STUCK
from queuecore.consuming.partition import PartitionWork
from queuecore.consuming.places import by_place
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.consuming.state import PartitionState
from queuecore.consuming.states import RESTORING
from queuecore.consuming.surroundings import Surroundings
from queuecore.consuming.work import Work
from queuecore.errors import HandlersStuck, QueueError, StaleEpoch
from queuecore.providers.base import Epochs, QueueConsumer
from queuecore.topics import ProviderPartition, TopicPartitionInfo

# How often what is done is settled while handlers work.
_SETTLE_EVERY_S: Final = 0.1
# How long the group may hear nothing of us. Not shorter: what a provider has fetched ahead may be lost by a pause, and
# fetched again.
_SILENCE_S: Final = 1.0
# A pack that is not over by then gets all handlers' threads; waking them for less would cost more than it gains.
_HELP_AFTER_S: Final = 0.002
_LONGEST_WAIT_S: Final = 0.1
# A provider that is asked is not woken by what operators want meanwhile.
_LONGEST_POLL_MS: Final = 500

logger = logging.getLogger(__name__)

_NONE: Final[frozenset[ProviderPartition]] = frozenset()


class Stay:
    """Told by the consumer, as its AssignmentListener, what the group gives and takes."""

    def __init__(self, consumer: QueueConsumer, around: Surroundings, plan: ConsumptionPlan) -> None:
        """`plan` says which partitions may be given."""
        self._consumer = consumer
        self._around = around
        self._clock = around.clock
        self._infos: dict[ProviderPartition, TopicPartitionInfo] = {}
        self._epochs: Epochs = {}
        self._parts: dict[ProviderPartition, PartitionWork] = {}
        self._unsettled: dict[ProviderPartition, Finished] = {}
        self._paused: set[ProviderPartition] = set()
        self._polled_at = self._settled_at = self._clock.monotonic()
        self._silence_s = min(_SILENCE_S, around.plan().hand_over_s / 4)
        self._epoch = 0
        self._is_advancing = False
        self._is_settling = False
        self._takes_no_more = False
        self._holds = around.holds()
        # Whether messages that were committed were left unfinished.
        self._has_dropped = False
        self.attend(plan)

    @property
    def held(self) -> frozenset[ProviderPartition]:
        return frozenset(self._parts)

    @property
    def is_behind(self) -> bool:
        """Whether something that is committed may still have to be handled, or to be counted. From any thread: messages
        go from one of these to the next, and are seen in the next before they leave the one."""
        if not self._around.settling.commits_first:
            return self._is_settling
        is_open = any(part.open for part in list(self._parts.values()))
        return is_open or self._is_advancing or bool(self._unsettled) or self._is_settling

    @property
    def paused(self) -> dict[TopicPartitionInfo, str]:
        """Partitions that stand still by themselves, and why."""
        return {part.info: part.paused for part in list(self._parts.values()) if part.paused}

    def attend(self, plan: ConsumptionPlan) -> None:
        """From now on these partitions may be given, under these epochs. What is held of others will be revoked."""
        self._infos = {info.place: info for info in plan.infos}
        self._epochs = plan.epochs_by_place()

    def take_no_more(self) -> None:
        """Hand over nothing from now on, but what counts as done already. From any thread."""
        if self._around.settling.commits_first:
            return
        # First: either this finds the attempt that is being made, or its maker finds this.
        self._takes_no_more = True
        self._withdraw_all()

    def _withdraw_all(self) -> None:
        for part in list(self._parts.values()):
            if (attempt := part.attempt) is not None:
                attempt.withdraw()

    def turn(self) -> None:
        """One round: what is over is judged, what is due handed over, what is done settled, and more is read."""
        if (error := self._around.pool.error) is not None:
            raise error
        self._around.changed.clear()
        now = self._clock.monotonic()
        self._follow_holds()
        self._advance(now)
        if any(part.is_stuck(now) for part in self._parts.values()):
            self._end_stuck(now)
        if self._unsettled and (now - self._settled_at >= _SETTLE_EVERY_S or not self._is_busy):
            self._settle()
        if (halt := self._around.giving_up.halt) is not None:
            self._settle()
            self._around.giving_up.halt = None
            raise halt
        self._around.stalls.look(self._parts.values(), self._holds, now)
        self._read(now)

    def resume(self, partitions: Collection[int] | None = None) -> None:
        """Have partitions that stand still by themselves go on; all of them, or these of the queue's."""
        for place, part in self._parts.items():
            if part.paused not in ("", RESTORING) and (partitions is None or (part.info.partition or 0) in partitions):
                part.paused = ""
                self._around.giving_up.resume(place)

    def finish(self, deadline: float) -> bool:
        """Hand over no more, and settle what is done. False when a handler took longer than to `deadline`."""
        is_done = self._drain(list(self._parts.values()), deadline)
        self._settle(deadline)
        return is_done and not self._has_dropped

    def leave(self, deadline: float) -> bool:
        """It has ended, in good order or not: nothing under way counts any more. Only what counts as done already is
        still brought to its end, up to `deadline`, as nobody else will get it. False where some of that was dropped."""
        if self._around.settling.commits_first:
            self._drain(list(self._parts.values()), deadline)
            self._around.settling.settle_outside(list(self._unsettled.values()))
            self._unsettled.clear()
        else:
            # All of them before any is put away, which may take its time.
            self._withdraw_all()
        for part in self._parts.values():
            self._drop_unfinished(part)
            self._replace(part.close())
        self._parts.clear()
        if self._around.states is not None:
            self._around.states.close()
        return not self._has_dropped

    def _drop_unfinished(self, part: PartitionWork) -> None:
        """What counts as done already and is not, nobody will get again."""
        if self._around.settling.commits_first and (unfinished := part.open):
            self._has_dropped = True
            self._around.counter.add("dropped", unfinished)
            part.recorder.dropped(unfinished)
            logger.error("%s: %d messages were committed, and are dropped unfinished", part.info, unfinished)

    def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
        self._epoch += 1
        self._around.settling.take(partitions)
        for place in partitions:
            plan = self._around.plan()
            mark = self._around.marks.open(plan.group, place)
            info, states = self._infos[place], self._around.states
            self._parts[place] = PartitionWork(
                info,
                plan,
                self._clock,
                self._around.changed.set,
                self._epochs.get(place, self._epoch),
                mark,
                None if states is None else states.take(info),
                is_fenced=place in self._epochs,
                recorder=self._around.recording.partition(plan.queue, plan.queue_id or plan.queue, plan.group, info),
            )

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        deadline = self._drain_some(partitions)
        if not self._is_settling:
            # Else in the middle of it, as the consumer is kept alive: what is done since must not be committed first.
            self._settle(deadline)
        self._forget(partitions)

    def lost(self, partitions: frozenset[ProviderPartition]) -> None:
        if self._around.settling.commits_first:
            # Their next owner will not get what is under way.
            self._drain_some(partitions)
        self._forget(partitions)

    def _drain_some(self, partitions: frozenset[ProviderPartition]) -> float:
        """Until when that may take, and may take what follows."""
        deadline = self._clock.monotonic() + self._around.plan().hand_over_s
        self._drain([self._parts[place] for place in partitions if place in self._parts], deadline)
        return deadline

    @property
    def _is_busy(self) -> bool:
        return any(part.is_busy for part in self._parts.values())

    def _follow_holds(self) -> None:
        """Of what is paused from now on nothing more is handed over, but what counts as done already."""
        holds = self._around.holds()
        if holds is self._holds:
            return
        self._holds = holds
        if self._around.settling.commits_first:
            return
        for part in self._parts.values():
            part.withdraw(None if holds.has(part.info.partition) else holds.tenants)

    def _end_stuck(self, now: float) -> None:
        """A process is needed in which none of these handlers runs. Their messages are given up first: it would only
        get stuck with them, too. Always raises HandlersStuck."""
        stuck = [part for part in self._parts.values() if part.is_stuck(now)]
        for part in stuck:
            works = part.take_stuck(now)
            for work in works:
                work.trouble.reason = STUCK
            self._unsettle(part, self._around.giving_up.judge(part, 0, works, now))
        self._settle()
        places = ", ".join(str(part.info) for part in stuck)
        raise HandlersStuck(
            f"handlers of {places} overran their time and still run, so that what is in sequence with their messages "
            "cannot go on; end this process, and give what they wait for a time-out"
        )

    def _held_by_operators(self) -> frozenset[ProviderPartition]:
        holds = self._holds
        if not holds.queue and not holds.partitions:
            return _NONE
        return frozenset(place for place, part in self._parts.items() if holds.has(part.info.partition))

    def _advance(self, now: float) -> None:
        self._is_advancing = True
        held = self._held_by_operators()
        for part in self._parts.values():
            if part.attempt is not None:
                self._look_at(part, now)
            if part.state is not None and not part.state.is_restored:
                self._restore(part, part.state)
        free = [part for place, part in self._parts.items() if part.attempt is None and place not in held]
        if not self._try_suspect(free, now):
            for part in free:
                self._begin(part, now)
        self._is_advancing = False

    def _try_suspect(self, free: list[PartitionWork], now: float) -> bool:
        """A message that may kill the process is handled with nothing beside it, so that no other is blamed, and when
        all before it is settled, so that no other has to be found again. Whether the rest has to wait for that."""
        if any(part.is_suspect and part.is_busy for part in self._parts.values()):
            return True
        suspect = next((part for part in free if part.has_suspect(now, self._holds.tenants)), None)
        if suspect is None:
            return False
        if not self._is_busy:
            self._settle()
            self._begin(suspect, now)
        return True

    def _restore(self, part: PartitionWork, state: PartitionState) -> None:
        """Before its first message is handled, and once that is here."""
        if self._around.states is not None and not part.is_idle:
            part.paused = "" if self._around.states.restore(state) else RESTORING

    def _look_at(self, part: PartitionWork, now: float) -> None:
        if part.attempt is not None and not part.attempt.is_over:
            late = part.expire(now)
            self._around.counter.add("overruns", len(late))
            self._replace(late)
        if part.attempt is not None and part.attempt.is_over:
            self._conclude(part, now)
        elif now - self._settled_at >= _SETTLE_EVERY_S and (done := part.take_succeeded()):
            self._around.giving_up.judge(part, len(done), (), now)
            self._unsettle(part, done)

    def _conclude(self, part: PartitionWork, now: float) -> None:
        attempt, verdict = part.attempt, part.conclude(now)
        if attempt is not None:
            took_s = attempt.took_s(now)
            self._around.counter.attempt(attempt.tenants, verdict, took_s)
            part.recorder.attempted(attempt.tenants, verdict, took_s)
        self._unsettle(part, verdict.done)
        self._unsettle(part, self._around.giving_up.judge(part, len(verdict.done), verdict.given_up, now))

    def _begin(self, part: PartitionWork, now: float) -> None:
        if self._parts.get(part.info.place) is not part:
            # Taken from us just now, as what others did was settled.
            return
        part.follow(self._around.plan())
        attempt = part.begin(now, self._holds.tenants)
        if part.begun:
            try:
                self._around.settling.begin(self._consumer, part, part.begun)
            except BaseException:
                part.forget_begun()
                raise
            part.recorder.packed()
        if (killer := part.take_killer()) is not None:
            self._give_up_killer(part, killer, now)
            self._settle()
        if attempt is not None:
            if self._takes_no_more:
                attempt.withdraw()
            self._around.pool.submit(attempt)

    def _give_up_killer(self, part: PartitionWork, killer: Work, now: float) -> None:
        killer.trouble.reason = KILLED
        killer.trouble.error = QueueError(
            f"{part.info}@{killer.record.offset}: the process of its handler was killed while this message was the "
            "only one under way; find out why before it is replayed"
        )
        if accepted := self._around.giving_up.judge(part, 0, [killer], now):
            self._unsettle(part, accepted)
        else:
            part.accuse(killer.record.offset)

    def _unsettle(self, part: PartitionWork, works: list[Work]) -> None:
        if works:
            self._unsettled.setdefault(part.info.place, (part, []))[1].extend(works)

    def _read(self, now: float) -> None:
        """Poll, as far as there is room; wait for handlers where there is none, or nothing to read."""
        is_busy = self._is_busy
        full = {place for place, part in self._parts.items() if part.is_full}
        if self._parts and len(full) == len(self._parts):
            self._be_heard(now)
            self._wait(now)
            self._around.stopwatch.spent_on("back_pressure")
            return
        self._pause_only(full)
        got = self._poll(0 if is_busy or self._around.changed.is_set() else self._poll_ms(now))
        self._around.stopwatch.spent_on("poll")
        if is_busy and not got:
            self._wait(now)
            self._around.stopwatch.spent_on("process")
        elif not is_busy and not got:
            self._around.progressed()

    def _poll_ms(self, now: float) -> int:
        """Until something that waits is due."""
        due = [due for part in self._parts.values() if (due := part.next_due(now)) is not None]
        interval_ms = min(self._around.plan().poll_interval_ms, _LONGEST_POLL_MS)
        return min(interval_ms, max(0, round((min(due) - now) * 1000))) if due else interval_ms

    def _wait(self, now: float) -> None:
        """For the end of an attempt, in vain for no longer than is good for everything else."""
        changed = self._around.changed
        if changed.wait(_HELP_AFTER_S):
            return
        now = self._clock.monotonic()
        for part in self._parts.values():
            if part.attempt is not None and part.attempt.is_slow(now):
                self._around.pool.help(part.attempt)
        if self._around.pool.is_stuck:
            raise HandlersStuck(
                f"{self._around.pool.overruns} handlers overran their time and still run, so that none can be started; "
                "end this process, and give what they wait for a time-out"
            )
        longest_s = min(_LONGEST_WAIT_S, self._around.plan().poll_interval_ms / 1000)
        changed.wait(longest_s if self._is_busy else min(longest_s, self._poll_ms(now) / 1000))

    def _be_heard(self, now: float) -> None:
        """Poll with all partitions paused, now and then."""
        if now - self._polled_at >= self._silence_s:
            self._pause_only(self.held)
            # Gives only what a partition brings that the group gave us just now.
            self._poll(0)

    def _poll(self, duration_ms: int) -> bool:
        """Whether there was something, which is in the intake of its partition now."""
        try:
            records = self._consumer.poll(duration_ms)
        except StaleEpoch as error:
            if self._is_settling:
                raise  # it was a commit, of what was just given away
            self._around.counter.add("stale_refused")
            self._around.found_stale(error)
            return False
        self._polled_at = self._clock.monotonic()
        if not records:
            return False
        self._around.counter.add("polled", len(records))
        if len(self._parts) == 1:
            [part] = self._parts.values()
            part.offer(records)
        else:
            for place, those in by_place(records):
                self._parts[place].offer(those)
        return True

    def _drain(self, parts: list[PartitionWork], deadline: float) -> bool:
        """Bring what these have under way to an end. False when that took longer than to `deadline`."""
        commits_first = self._around.settling.commits_first
        for part in parts:
            if part.attempt is not None and not commits_first:
                part.attempt.withdraw()
        done = [self._drain_one(part, deadline) for part in parts]
        return all(done)

    def _drain_one(self, part: PartitionWork, deadline: float) -> bool:
        """With the handlers that overran their time: who is next in their lanes is not to run beside them."""
        commits_first = self._around.settling.commits_first
        is_done = True
        now = self._clock.monotonic()
        while part.attempt is not None or part.is_lingering(now) or (commits_first and part.open):
            if part.attempt is not None and part.attempt.is_over:
                self._conclude(part, now)
            elif part.attempt is None and commits_first and (attempt := part.begin(now, take_new=False)) is not None:
                self._around.pool.submit(attempt)
            elif now >= deadline or part.paused:
                is_done = False
                break
            else:
                self._wait_in_drain(part, deadline - now)
            now = self._clock.monotonic()
        self._unsettle(part, part.take_succeeded())
        return is_done

    def _wait_in_drain(self, part: PartitionWork, at_most_s: float) -> None:
        changed = self._around.changed
        if not changed.wait(min(_HELP_AFTER_S, at_most_s)):
            if part.attempt is not None:
                self._around.pool.help(part.attempt)
            changed.wait(min(_LONGEST_WAIT_S, at_most_s))
        changed.clear()
        now = self._clock.monotonic()
        for other in self._parts.values():
            if other.attempt is not None:
                self._look_at(other, now)

    def _settle(self, deadline: float | None = None) -> None:
        finished = list(self._unsettled.values())
        if finished:
            self._is_settling = True
            self._unsettled.clear()
            self._around.stopwatch.spent_on("process")
            self._around.settling.settle(self._consumer, finished, deadline)
            self._around.stopwatch.spent_on("commit")
            self._is_settling = False
            self._around.progressed()
            # There may be room now for what waits.
            self._around.changed.set()
        self._settled_at = self._clock.monotonic()

    def _forget(self, partitions: frozenset[ProviderPartition]) -> None:
        for place in partitions:
            if not self._around.settling.commits_first:
                # What is committed already is settled whoever has the partition.
                self._unsettled.pop(place, None)
            self._around.giving_up.forget(place)
            self._around.stalls.forget(place)
            if self._around.states is not None:
                self._around.states.forget(place)
            if (part := self._parts.pop(place, None)) is not None:
                self._drop_unfinished(part)
                self._replace(part.close())
        self._paused -= partitions
        self._around.settling.forget(partitions)

    def _replace(self, runs: Iterable[Run]) -> None:
        for run in runs:
            self._around.pool.replace(run)

    def _pause_only(self, places: Collection[ProviderPartition]) -> None:
        wanted = set(places)
        if more := wanted - self._paused:
            self._consumer.pause(more)
        if fewer := self._paused - wanted:
            self._consumer.resume(fewer)
        self._paused = wanted
