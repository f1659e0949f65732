"""Moving what a queue has left to another one: each message once, and those of an entity in their order.

A transaction holds messages for the other queue and, for this queue's own groups, the offsets behind where they were
read. So the groups' committed offsets are the ledger of how far each partition has been moved: whoever goes on after a
crash begins there, and what a transaction had not committed was never sent. All messages of an entity are in one
partition, which is read in order, and go to one partition.
"""

from contextlib import closing
from typing import Final

from queueapi import runtime
from queueapi.addressing import addresses
from queueapi.backlog import messages_left
from queueapi.models import Queue
from queueapi.plans import consumption_plans, other_groups
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.messages import QueueMessage, Record
from queuecore.providers.base import QueueConsumer, TransactionalProducer
from queuecore.topics import ProviderPartition
from workers.inheriting import inherit_offsets
from workers.operations.emptying import note_left
from workers.operations.run import OperationRun
from workers.operations.waiting import wait_until_done

CHUNK: Final = 2_000

_POLL_MS: Final = 250


class QueueMover:
    """Of one queue, for one runner. Nobody consumes the queue meanwhile: who still does is displaced, or displaces this
    one, which is then put off."""

    def __init__(self, run: OperationRun, queue: Queue, successor: Queue, reserved: int) -> None:
        self._run = run
        self._queue = queue
        self._successor = successor
        self._reserved = reserved

    def move(self) -> None:
        """All that is left. QueueError, NotYet."""
        if not messages_left(self._queue):
            # Perhaps as an earlier runner has moved them, and its topics are gone already.
            return
        # Opening it fences whoever moved before, and ends what they left open.
        with closing(_Producer(f"move-{self._queue.pk}")) as producer:
            for plan in consumption_plans(self._queue, ""):
                self._begin_at_the_beginning(plan)
                self._move_all(plan, producer.opened)

    def _begin_at_the_beginning(self, plan: ConsumptionPlan) -> None:
        """Where nobody has read yet, whatever the settings say of new groups."""
        admin = runtime.provider().admin()
        inherit_offsets(admin, plan, other_groups(self._queue))
        places = [info.place for info in plan.infos]
        new = [place for place in places if place not in admin.committed_offsets({plan.group: places})[plan.group]]
        if new:
            admin.alter_group_offsets(plan.group, admin.beginning_offsets(new))

    def _move_all(self, plan: ConsumptionPlan, producer: TransactionalProducer) -> None:
        consumer = runtime.provider().consumer(plan.group, member_id=plan.member_id, max_poll_records=CHUNK)
        numbers = {info.partition or 0 for info in plan.infos}
        try:
            consumer.subscribe(plan.infos)

            def why_not_yet() -> str:
                while records := consumer.poll(_POLL_MS):
                    self._send(consumer, producer, records)
                left = messages_left(self._queue, numbers)
                return f"{left:,} messages of partitions {sorted(numbers)} cannot be read yet" if left else ""

            wait_until_done(self._run, why_not_yet, is_stoppable=False)
            consumer.unsubscribe()
        finally:
            consumer.stop()

    def _send(self, consumer: QueueConsumer, producer: TransactionalProducer, records: list[Record]) -> None:
        target = self._successor
        with producer.begin() as chunk:
            for record in records:
                info = addresses().resolve_exactly(target.tenant_id, target.name, record.key)
                chunk.send(info, QueueMessage(record.key, record.data, record.headers))
            offsets = {ProviderPartition(record.topic, record.partition): record.offset + 1 for record in records}
            chunk.commit_offsets(consumer, offsets)
            self._run.check_lease()
        note_left(self._run, messages_left(self._queue), self._reserved)


class _Producer:
    def __init__(self, transactional_id: str) -> None:
        self.opened = runtime.provider().transactional_producer(transactional_id)

    def close(self) -> None:
        self.opened.stop()
