"""Where a consumer goes on when its queue's partitions were read by other groups before.

A queue has one consumer for all partitions or one for each, in groups of different names. When that is changed, the new
groups begin where the old ones ended.
"""

from collections.abc import Iterable

from queuecore.consuming.plan import ConsumptionPlan
from queuecore.providers.base import QueueAdmin


def inherit_offsets(admin: QueueAdmin, plan: ConsumptionPlan, former: Iterable[str]) -> None:
    """Take over what the former groups committed, which they then have no longer: so what an operator resets later
    stays as it is. GroupActive while a former group still reads. Repeatable."""
    places = [info.place for info in plan.infos]
    committed = admin.committed_offsets(dict.fromkeys((plan.group, *former), places))
    ours = dict(committed[plan.group])
    left = {group: offsets for group in former if (offsets := committed[group])}
    if not left:
        return
    best = dict(ours)
    for offsets in left.values():
        for place, offset in offsets.items():
            best[place] = max(offset, best.get(place, offset))
    if best != ours:
        admin.alter_group_offsets(plan.group, best)
    for group, offsets in left.items():
        admin.delete_group_offsets(group, offsets)
