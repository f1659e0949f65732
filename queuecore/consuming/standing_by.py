"""What one does whose place in a group was taken: wait until it is free. Two that both insist would take it from each
other for ever."""

import threading
from typing import Final

from queuecore.consuming.plan import ConsumptionPlan
from queuecore.providers.base import Provider

# How often it is looked whether the place is free, where the provider would not tell.
_LOOK_EVERY_S: Final = 2.0


def stand_by(provider: Provider, plan: ConsumptionPlan, stopping: threading.Event) -> None:
    """Until the group is free, or `stopping` is set. An ordinary member of the group is given a partition when the
    other is gone. Inside a topic that has more partitions Kafka might give it sooner, in return for another that nobody
    reads; so there this one stays out of the group."""
    if any(info.use_internal_partition for info in plan.infos) or len(plan.infos) > 1:
        while _has_members(provider, plan.group) and not stopping.wait(_LOOK_EVERY_S):
            pass
        return
    consumer = provider.consumer(plan.group)
    try:
        consumer.subscribe(plan.infos)
        while not stopping.is_set() and not consumer.partitions:
            # What it gives is not committed, and comes again.
            consumer.poll(plan.poll_interval_ms)
    finally:
        consumer.unsubscribe()
        consumer.stop()


def _has_members(provider: Provider, group: str) -> bool:
    found = provider.admin().groups().get(group)
    return found is not None and bool(found.members)
