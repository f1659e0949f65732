"""Which consumers the configuration wants, from the rows of queues and their pauses."""

from collections.abc import Iterable, Mapping
from itertools import chain

from queueapi.models import Pause, Queue
from queueapi.plans import consumption_plans, other_groups
from queuecore.consuming.holds import Holds
from queuecore.consuming.plan import ConsumptionPlan
from workers.consumers import Wanted


def wanted_consumers(queue: Queue, service_id: str, epochs: Mapping[int, int]) -> list[Wanted]:
    """Of those of the queue's partitions that this instance has, each under its epoch. QueueError for a queue that
    nobody could consume as it is."""
    plans = consumption_plans(queue, service_id, epochs)
    pauses = list(queue.pauses.all())
    holds, former = holds_of(pauses), tuple(other_groups(queue))
    return [
        Wanted(queue.id, plan, queue.handler_options, holds, held_because(pauses, plan), former, queue.version)
        for plan in plans
    ]


def held_because(pauses: Iterable[Pause], plan: ConsumptionPlan) -> str:
    """Why a consumer by this plan would stand still: the reason of the whole queue's pause, else that of one of its
    partitions. A tenant's pause keeps none from the others' messages."""
    rows, partitions = list(pauses), {info.partition or 0 for info in plan.infos}
    of_queue = (pause.reason for pause in rows if pause.partition is None and pause.tenant_id is None)
    of_partition = (pause.reason for pause in rows if pause.partition in partitions)
    return next(chain(of_queue, of_partition), "")


def holds_of(pauses: Iterable[Pause]) -> Holds:
    """What is not to be handled while these last."""
    rows = list(pauses)
    return Holds(
        queue=any(pause.tenant_id is None and pause.partition is None for pause in rows),
        tenants=frozenset(str(pause.tenant_id) for pause in rows if pause.tenant_id is not None),
        partitions=frozenset(pause.partition for pause in rows if pause.partition is not None),
    )
