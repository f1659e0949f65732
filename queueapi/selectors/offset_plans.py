"""What a reset of a group's offsets would do, for the command and for REST alike."""

from collections.abc import Iterable

from queueapi import runtime
from queueapi.errors import InvalidInput
from queueapi.plans import whole_queue_group
from queueapi.selectors.groups import group_owners
from queuecore.errors import UnknownTopic
from queuecore.groups.resetting import ResetPlan, Target, plan_reset
from queuecore.providers.base import QueueAdmin
from queuecore.topics import ProviderPartition


def plan_offsets(
    group: str, target: Target, *, topic: str | None = None, partitions: Iterable[int] | None = None
) -> ResetPlan:
    """Of these partitions of a topic, or of all that the group has committed; where that is nothing, of all of the
    queue that it is for. Changes nothing. As `plan_reset`; InvalidInput where it is not clear which are meant."""
    admin = runtime.provider().admin()
    if topic is not None:
        places = places_of(admin, topic, partitions)
    elif partitions is not None:
        raise InvalidInput("a partition is a number inside a topic; name the topic as well")
    else:
        places = committed_places(admin, group) or _places_of_queue(group)
    return plan_reset(admin, group, places, target)


def committed_places(admin: QueueAdmin, group: str) -> list[ProviderPartition]:
    """Where the group has committed, in order."""
    return sorted(admin.committed_offsets({group: None})[group])


def places_of(admin: QueueAdmin, topic: str, partitions: Iterable[int] | None) -> list[ProviderPartition]:
    """These partitions of a topic, or all of them, in order. UnknownTopic where there is none."""
    if (spec := admin.topics().get(topic)) is None:
        raise UnknownTopic(f"there is no topic {topic!r}; check its name", topic=topic)
    wanted = range(spec.partitions) if partitions is None else sorted(set(partitions))
    for number in wanted:
        if not 0 <= number < spec.partitions:
            raise UnknownTopic(
                f"topic {topic!r} has partitions 0 to {spec.partitions - 1}; there is no {number}", topic=topic
            )
    return [ProviderPartition(topic, number) for number in wanted]


def _places_of_queue(group: str) -> list[ProviderPartition]:
    owner = group_owners([group]).owner(group)
    if owner is None:
        raise InvalidInput(f"group {group!r} has committed nothing; name the topic whose offsets to set")
    number = group.removeprefix(whole_queue_group(owner)).removeprefix("-")
    infos = [owner.partition_info(int(number))] if number else owner.partition_infos()
    return [info.place for info in infos]
