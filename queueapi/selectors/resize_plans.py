"""What another number of partitions would do to a queue, shown before it is done."""

from collections.abc import Iterator

from queueapi.choices import QueueState
from queueapi.models import Queue
from queueapi.plans import all_groups
from queueapi.selectors.queue_neighbours import Neighbours, neighbours_of
from queueapi.selectors.queue_operations import is_being_handed_over, operation_under_way
from queueapi.selectors.queue_plans import QueuePlan, bare_plan, replays_into, why_slow
from queueapi.selectors.queue_warnings import queue_warnings


def new_numbers(queue: Queue, partitions: int) -> range:
    """What so many partitions would be numbered. Where a resize to just so many was left half done, as it began."""
    if queue.former_numbers and partitions == queue.partitions:
        return queue.routed_numbers
    first = queue.routed_numbers.stop
    return range(first, first + partitions)


def plan_resize(queue: Queue, partitions: int) -> QueuePlan:
    """What `resize_queue` would do now."""
    numbers = new_numbers(queue, partitions)
    plan = bare_plan(queue, f"resized to {partitions:,} partitions, {numbers[0]} to {numbers[-1]}")
    goes_on = numbers == queue.routed_numbers
    resized = queue.with_partitions(numbers)
    ending = queue.with_partitions(queue.former_numbers if goes_on else queue.routed_numbers)
    if not goes_on:
        plan.created.extend(sorted(resized.topic_names(), key=_by_number))
    plan.topics.extend(sorted(ending.topic_names(), key=_by_number))
    if queue.consumer_per_partition:
        plan.groups.extend(name for name in all_groups(ending) if name not in all_groups(resized))
    near = neighbours_of(queue)
    plan.why_not.extend(_why_not(queue, near, partitions, goes_on=goes_on))
    plan.warnings.extend([*why_slow(near, plan), *queue_warnings(resized, ("partitions",))])
    return plan


def _why_not(queue: Queue, near: Neighbours, partitions: int, *, goes_on: bool) -> Iterator[str]:
    if queue.state != QueueState.ACTIVE:
        yield f"queue {queue.name} is {queue.state_choice.label.lower()}, and only active ones are resized"
    if queue.state_topic:
        yield "its handler keeps its state by partition, and would not find it again; make another queue instead"
    if is_being_handed_over(queue):
        yield "its tenant is just being isolated, or returns to the shared queue; wait until that operation is over"
    elif (under_way := operation_under_way(queue)) is not None:
        yield f"{under_way.summary!r} is under way; wait until it is over, or cancel it"
    if queue.former_numbers and not goes_on:
        yield f"a resize to {queue.partitions:,} partitions was left half done; ask for as many, and it goes on"
    elif partitions == queue.partitions and not goes_on:
        yield f"it has {partitions:,} partitions already"
    if near.predecessors:
        yield f"{', '.join(near.predecessors)} is drained or moved to it; wait for the end, or activate that queue"
    if not goes_on:
        yield from replays_into(queue)


def _by_number(topic: str) -> int:
    return int(topic.rpartition(".")[2])
