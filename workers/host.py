"""Hosting consumers, kept in step with what the cluster gives to this instance and with the configuration."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import close_old_connections, connections

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.pauses import LONGEST_REASON, pause_queue
from queueapi.actions.processes import count_stale_commits, forget_standings, record_standings
from queueapi.addressing import addresses
from queueapi.choices import CONSUMED_QUEUE_STATES, QueueState
from queueapi.config import config
from queueapi.models import Queue
from queueapi.reporting import Reporting
from queuecore.consuming.marks import FileMarks
from queuecore.errors import Superseded
from queuecore.queues.composing import Composer
from workers.cluster import open_agent
from workers.consumers import DRAIN_S, Equipment, HostedConsumer, Wanted
from workers.hosted import Hosted, told
from workers.indexing import LetterIndexing
from workers.notifications import HostNotifications
from workers.provisioning import QueueTopics
from workers.wanting import wanted_consumers

logger = logging.getLogger(__name__)

RECONCILE_S: Final = 1.0
TELL_S: Final = 3.0
# What messages under way may take of a partition that goes to another instance.
HAND_OVER_S: Final = 5.0
# What leaving groups may take beyond what handlers may.
LEAVING_S: Final = 5.0
# Of who gives way at once: time to leave the groups, so that others need not wait for them.
GIVING_WAY_S: Final = 1.0
_LOOK_S: Final = 0.1

Key = tuple[UUID, str]


class ConsumerHost:
    """Consumes those partitions that the cluster gives to this instance, and enters dead letters into the index."""

    def __init__(
        self,
        service_id: str,
        on_death: Callable[[str], None],
        gives_way: Callable[[], bool] = lambda: False,
    ) -> None:
        """As soon as `gives_way` says so, nothing more is handed over or waited for: whoever runs the host may be long
        in coming to stop it."""
        self._on_death = on_death
        self._gives_way = gives_way
        self._stopping = threading.Event()
        # Set when there is something to look at before the next round.
        self._wake = threading.Event()
        self._agent = open_agent(service_id, self)
        self.service_id = self._agent.service.service_id
        # Since when partitions are to be released.
        self._leaving_since: dict[str, float] = {}
        self._marks = FileMarks(config().folder("marks"))
        self._reporting = Reporting(self.service_id)
        self._queues: dict[UUID, Queue] = {}
        self._with_letters: list[Queue] = []
        self._topics: dict[UUID, QueueTopics] = {}
        self._consumers: dict[Key, HostedConsumer] = {}
        # No longer wanted, and on their way out.
        self._leaving: list[HostedConsumer] = []
        self._indexing = LetterIndexing()
        self._notifications = HostNotifications(self._agent)
        # Queues that cannot be consumed as they are, and why: said once. Pauses that cannot be stored as well.
        self._refused: dict[UUID, str] = {}
        self._unstored: dict[tuple[UUID, int | None], str] = {}
        # Commits that were refused, by their queues, and are not in the database yet.
        self._stale: Counter[UUID] = Counter()
        self._tell_at = float("-inf")
        self._thread = threading.Thread(target=self._run, name="consumer-host", daemon=True)

    def start(self) -> None:
        self._agent.start()
        self._reporting.start()
        self._thread.start()

    def holdings_changed(self) -> None:
        self._wake.set()

    def lease_ending(self, remaining_s: float) -> None:
        logger.error(
            "the lease ends in %.1f s and cannot be renewed: what is consumed is brought to an end", remaining_s
        )
        for consumer in self._everyone():
            consumer.stop(remaining_s)

    def lease_over(self) -> None:
        for consumer in self._everyone():
            consumer.abandon()

    def superseded(self, error: Superseded) -> None:
        self.lease_over()
        self._stopping.set()
        self._on_death(error.message)

    def stop(self) -> None:
        """Nothing more is handed over; what is under way is finished and committed, all at once and under one
        deadline."""
        deadline = time.monotonic() + DRAIN_S
        self._stopping.set()
        self._stop_all(deadline)
        self._thread.join(LEAVING_S)
        # What its last round began.
        self._stop_all(deadline)
        while not self._wait_for_end(_LOOK_S) and time.monotonic() < deadline + LEAVING_S:
            if self._gives_way():
                self._give_way()
                break
        self._leave()
        self._reporting.stop()
        runtime.close_provider()

    def give_way(self) -> None:
        """Stop at once: nothing under way is waited for or committed, and comes again elsewhere."""
        self._stopping.set()
        self._give_way()
        self._leave()
        self._reporting.stop()

    def _stop_all(self, deadline: float) -> None:
        for consumer in self._everyone():
            consumer.stop(max(0.0, deadline - time.monotonic()))
        self._indexing.stop()

    def _give_way(self) -> None:
        self._abandon_all()
        self._wait_for_end(GIVING_WAY_S)

    def _abandon_all(self) -> None:
        for consumer in self._everyone():
            consumer.abandon()
        self._indexing.stop()

    def _wait_for_end(self, timeout_s: float) -> bool:
        """Whether everything has ended in this time."""
        deadline = time.monotonic() + timeout_s
        everything: list[HostedConsumer | Hosted] = [*self._everyone(), *self._indexing.indexers]
        return all(one.wait_for_end(max(0.0, deadline - time.monotonic())) for one in everything)

    def _leave(self) -> None:
        self._notifications.stop()
        self._agent.stop()
        try:
            forget_standings(self.service_id)
        except DatabaseError as error:
            logger.warning("how this host's consumers were stays to be read: %s", error)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._look()
                self._rest()
            if self._gives_way():
                # Others need not wait for who comes to stop this one.
                self._agent.stop()
        except BaseException as error:
            # Whatever it is: a worker without this thread must not look alive.
            logger.exception("the consumer host failed")
            self._on_death(f"consumer host: {told(error)}")
        finally:
            connections.close_all()

    def _rest(self) -> None:
        """Until the next round, or until there is something to look at; with an eye on whether to give way."""
        until = time.monotonic() + RECONCILE_S
        while not self._is_over() and time.monotonic() < until and not self._wake.wait(_LOOK_S):
            # What ends meanwhile is released at once: somebody waits for it.
            self._release()
        self._wake.clear()

    def _is_over(self) -> bool:
        """Whether nothing more is to be begun. Who is to give way does so here."""
        if not self._stopping.is_set() and self._gives_way():
            self._stopping.set()
            self._abandon_all()
        return self._stopping.is_set()

    def _look(self) -> None:
        """One round. A database that is away is waited for; what is consumed goes on meanwhile, as long as there is a
        lease, and nothing else is begun: a tenant may be held back by now."""
        is_known = True
        try:
            close_old_connections()
            self._write_pauses()
            self._read_configuration()
        except DatabaseError as error:
            logger.warning("cannot read the configuration, the consumers go on by the last one: %s", error)
            connections.close_all()
            is_known = False
        self._reconcile(begins=is_known)
        for consumer in self._everyone():
            if self._is_over():
                return
            consumer.look()
        self._release()
        self._notifications.look()
        self._tell()
        self._check_alive()

    def _write_pauses(self) -> None:
        """What paused itself stays so, whoever restarts, until somebody lifts it."""
        for (queue_id, _), consumer in self._consumers.items():
            for partition, reason in consumer.new_pauses().items():
                if self._write_pause(queue_id, partition, reason):
                    consumer.pause_written(partition)

    def _write_pause(self, queue_id: UUID, partition: int | None, reason: str) -> bool:
        """False where it cannot be stored: it holds in this process, and is tried again in the next round."""
        try:
            pause_queue(SYSTEM, self._queues[queue_id], partition=partition, reason=reason[:LONGEST_REASON])
        except Exception as error:
            if self._unstored.get((queue_id, partition)) != (why := told(error)):
                logger.error(
                    "queue %s has paused itself, which a restart would forget: the pause cannot be stored: %s; pause "
                    "it by hand",
                    self._queues[queue_id].name,
                    why,
                )
            self._unstored[queue_id, partition] = why
            return False
        self._unstored.pop((queue_id, partition), None)
        return True

    def _read_configuration(self) -> None:
        rows = list(Queue.objects.select_related("tenant").prefetch_related("pauses"))
        # What is deleted is consumed no longer; letters that its consumers wrote are still entered.
        self._with_letters = [queue for queue in rows if queue.state != QueueState.CREATING]
        queues = [queue for queue in rows if queue.state in CONSUMED_QUEUE_STATES]
        self._queues = {queue.id: queue for queue in queues}
        for queue in queues:
            self._topics.setdefault(queue.id, QueueTopics(queue)).queue = queue

    def _reconcile(self, *, begins: bool) -> None:
        """Stop what is not this instance's or no longer wanted, change what is wanted otherwise, start what is not
        there."""
        queues, held = list(self._queues.values()), self._agent.held
        wanted = {(one.queue_id, one.plan.group): one for queue in queues for one in self._wanted(queue, held)}
        for key, consumer in list(self._consumers.items()):
            if key not in wanted or consumer.is_stopped:
                del self._consumers[key]
                consumer.stop(HAND_OVER_S if key[0] in self._queues else DRAIN_S)
                self._leaving.append(consumer)
        for key, one in wanted.items():
            if begins or key in self._consumers:
                self._want(key, one)
        if held and not self._agent.held:
            # Whoever said that the lease ends may have come before those that were made just now.
            self.lease_ending(self._agent.lease_remaining_s)
        if not self._stopping.is_set():
            self._indexing.want(self._with_letters)

    def _release(self) -> None:
        """Let go of what is to be released, and is consumed no longer."""
        ended = [one for one in self._leaving if one.wait_for_end(0)]
        self._count_stale(ended)
        self._leaving = [one for one in self._leaving if one not in ended]
        leaving, now = self._agent.leaving, time.monotonic()
        self._leaving_since = {name: self._leaving_since.get(name, now) for name in leaving}
        consumed = {name for one in self._everyone() for name in one.reads}
        for name in leaving - consumed:
            self._agent.release([name], now - self._leaving_since[name])
        newer = {name: epoch for one in self._consumers.values() for name, epoch in one.take_newer().items()}
        if newer:
            self._agent.met_newer(newer)

    def _wanted(self, queue: Queue, held: Mapping[str, int]) -> list[Wanted]:
        """Nothing of a queue that nobody could consume as it is: its messages wait."""
        numbers = {info.partition or 0: held[str(info)] for info in queue.partition_infos() if str(info) in held}
        try:
            wanted = wanted_consumers(queue, self.service_id, numbers)
        except Exception as error:
            # Whatever is wrong with one row is not the other queues' trouble.
            if self._refused.get(queue.id) != (why := told(error)):
                logger.error("queue %s is not consumed, its messages wait: %s", queue.name, why)
            self._refused[queue.id] = why
            return []
        self._refused.pop(queue.id, None)
        return wanted

    def _want(self, key: Key, wanted: Wanted) -> None:
        if key in self._consumers:
            self._consumers[key].want(wanted)
        elif not any(one.wanted.queue_id == wanted.queue_id for one in self._leaving):
            # Else whoever reads the queue's partitions otherwise is to be gone first.
            self._consumers[key] = HostedConsumer(wanted, self._equipment(self._queues[wanted.queue_id]))

    def _equipment(self, queue: Queue) -> Equipment:
        composer = Composer(addresses().seen_by(queue.tenant_id), self.service_id)
        topics, recorder = self._topics[queue.id], self._reporting.recorder
        return Equipment(runtime.provider(), composer, addresses(), self._marks, topics, recorder)

    def _count_stale(self, consumers: Iterable[HostedConsumer]) -> None:
        for one in consumers:
            if refused := one.take_refused():
                self._stale[one.wanted.queue_id] += refused

    def _tell(self) -> None:
        """How this host's consumers are."""
        if time.monotonic() < self._tell_at:
            return
        self._count_stale(self._everyone())
        try:
            if self._stale:
                count_stale_commits(self._stale)
                self._stale.clear()
            record_standings(self.service_id, [one.standing() for one in self._consumers.values()])
        except DatabaseError as error:
            logger.warning("cannot tell the database how the consumers are: %s", error)
            connections.close_all()
            self._tell_at = time.monotonic() + RECONCILE_S
        else:
            self._tell_at = time.monotonic() + TELL_S

    def _check_alive(self) -> None:
        stuck = next((one.stuck for one in self._everyone() if one.stuck is not None), None)
        dead = next((hosted.name for hosted in self._indexing.indexers if hosted.is_dead), None)
        if reason := f"the thread of {dead} is gone" if dead else stuck and stuck.message:
            self._on_death(reason)
            self._stopping.set()

    def _everyone(self) -> Sequence[HostedConsumer]:
        return [*self._consumers.values(), *self._leaving]
