"""What draining or deleting a queue would do, shown before it is done."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db.models import Q

from queueapi.backlog import messages_left
from queueapi.change_plans import NOTHING, Change
from queueapi.choices import FINAL_OPERATION_STATES, LetterState, QueueState
from queueapi.handler_options import SendsToQueues
from queueapi.models import DeadLetter, Queue, Replay
from queueapi.plans import all_groups
from queueapi.queue_topics import topics_to_remove
from queueapi.selectors.consumers import consumers_of, pauses_of
from queueapi.selectors.isolation import isolated_from, isolation_of
from queueapi.selectors.queue_neighbours import Neighbours, neighbours_of
from queueapi.selectors.queue_operations import is_being_handed_over, is_being_provisioned, is_being_resized
from queuecore.consuming.handlers import find_handler
from queuecore.consuming.registry import RegisteredHandler
from queuecore.errors import QueueError
from queuecore.topics import MAIN_QUEUE, SYSTEM_TENANT, ServiceType

# Letters that somebody still has to decide on, or whose outcome is awaited.
UNDECIDED: Final = (LetterState.OPEN, LetterState.REPLAYING)


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """What would become of a queue.

    messages    how many wait to be consumed; None where the provider cannot say
    consumers   how many consumers it has now
    forwarders  queues whose handlers send to it
    letters     how many of its dead letters nobody has decided on
    topics      what would be removed at the provider, and which groups with it
    created     topics that would be made
    why_not     what stands in the way; empty: it would be done
    """

    queue: Queue
    # What it would be then.
    becomes: str
    messages: int | None
    consumers: int
    forwarders: list[str]
    letters: int
    topics: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    why_not: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        if self.why_not:
            return f"{NOTHING}: {'; '.join(self.why_not)}"
        return f"queue {self.queue.name} would be {self.becomes}"

    @property
    def changes(self) -> list[Change]:
        """None where something stands in the way."""
        if self.why_not:
            return []
        removed = [*(f"topic {name}" for name in self.topics), *(f"offsets of group {name}" for name in self.groups)]
        return [
            Change(f"queue {self.queue.name}", self.queue.state, self.becomes),
            *(Change(f"topic {name}", None, "created") for name in self.created),
            *(Change(what, "kept", "removed") for what in removed),
        ]


def plan_drain(queue: Queue, to: Queue | None = None) -> QueuePlan:
    """What `drain_queue` would do now."""
    plan, near = bare_plan(queue, "draining, and then drained"), neighbours_of(queue)
    if queue.state != QueueState.ACTIVE:
        plan.why_not.append(
            f"queue {queue.name} is {queue.state_choice.label.lower()}, and only active ones are drained"
        )
    plan.why_not.extend(_ties(queue, near, plan.forwarders, to))
    plan.warnings.extend([*why_slow(near, plan), *_overtaking(queue, near)])
    if to is not None:
        plan.warnings.append(
            f"what is published meanwhile goes to {to.name}, and may be handled there before what still waits here"
        )
    if is_main(queue):
        plan.warnings.append("messages that find no other queue are refused until it is active again")
    return plan


def plan_deletion(queue: Queue, move_to: Queue | None = None, *, discard_letters: bool = False) -> QueuePlan:
    """What `delete_queue` would do now."""
    plan, near = bare_plan(queue, "deleted"), neighbours_of(queue)
    plan.topics.extend(topics_to_remove(queue))
    plan.groups.extend(all_groups(queue))
    if is_main(queue):
        plan.why_not.append(f"{queue.name} of the system takes what finds no other queue, and stays; drain it instead")
    plan.why_not.extend(_ties(queue, near, plan.forwarders, move_to))
    plan.why_not.extend(replays_into(queue))
    if names := isolated_from(queue):
        plan.why_not.append(f"{', '.join(names)} have queues of their own instead of it; have them return to it first")
    if plan.letters and not discard_letters:
        plan.why_not.append(
            f"{plan.letters:,} of its dead letters are open or being replayed; replay or discard them, or let them be "
            "discarded with the queue"
        )
    if move_to is None:
        plan.warnings.extend(why_slow(near, plan))
    plan.warnings.extend(_overtaking(queue, near))
    return plan


def why_not_returning(queue: Queue) -> Iterator[str]:
    """What keeps a tenant's messages from going back to the shared queue, until somebody or something ends it: what its
    own queue has must be handled first, and nothing may be put behind that."""
    if pauses := [pause.what for pause in pauses_of(queue)]:
        yield f"waits until queue {queue.name} is resumed: paused is {', '.join(pauses)}"
    if why := why_replayed(queue):
        yield why


def why_replayed(queue: Queue) -> str:
    """Which replays send letters to it, as who waits for their end tells it; empty: none does."""
    number = _replays_into(queue)
    return f"waits for the end of {number} replay{'' if number == 1 else 's'} into queue {queue.name}" if number else ""


def is_main(queue: Queue) -> bool:
    """Whether it is the one that messages go to for which there is no other."""
    kind = ServiceType.TB_RULE_ENGINE.value
    return (queue.tenant_id, queue.name.lower(), queue.service_type) == (SYSTEM_TENANT, MAIN_QUEUE.lower(), kind)


def undecided_letters(queue: Queue) -> int:
    return DeadLetter.objects.filter(queue=queue, state__in=UNDECIDED).count()


def forwarders_to(queue: Queue) -> list[str]:
    """Queues whose handlers send to it, by the names that their tenants see."""
    # Not as objects, and without a look at what a handler is asked that sends nothing: there may be ten thousand.
    others = list(Queue.objects.exclude(pk=queue.pk).order_by().values_list("name", "tenant_id", "handler"))
    senders = {name: found for name in {handler for *_, handler in others} if (found := _sender(name)) is not None}
    if not senders:
        return []
    names = {(tenant, name.lower()) for name, tenant, _ in others}
    rows = Queue.objects.exclude(pk=queue.pk).filter(handler__in=senders)
    return sorted(other.name for other in rows if _sends_to(other, senders[other.handler], queue, names))


def bare_plan(queue: Queue, becomes: str) -> QueuePlan:
    """What there is of it now, and nothing yet of what would be done."""
    consumers = sum(one.is_alive for one in consumers_of(queue))
    return QueuePlan(queue, becomes, _messages(queue), consumers, forwarders_to(queue), undecided_letters(queue))


def _messages(queue: Queue) -> int | None:
    try:
        return messages_left(queue)
    except QueueError:
        return None


def _sender(name: str) -> RegisteredHandler | None:
    """The handler of that name, if its options may be `SendsToQueues`."""
    try:
        found = find_handler(name)
    except QueueError:
        return None
    # A field without a default is no attribute of its class.
    fields = getattr(found.options, "__dataclass_fields__", ())
    return found if hasattr(found.options, "targets") or "targets" in fields else None


def _sends_to(other: Queue, sender: RegisteredHandler, queue: Queue, names: set[tuple[UUID, str]]) -> bool:
    """Its tenant's own queue of that name comes before the system's."""
    try:
        options = sender.read(other.handler_options)
    except QueueError:
        return False
    if not isinstance(options, SendsToQueues) or queue.name.lower() not in {name.lower() for name in options.targets}:
        return False
    if queue.tenant_id == other.tenant_id:
        return True
    return queue.tenant_id == SYSTEM_TENANT and (other.tenant_id, queue.name.lower()) not in names


def _ties(queue: Queue, near: Neighbours, forwarders: list[str], successor: Queue | None) -> Iterator[str]:
    """What keeps a queue from taking no more messages."""
    if forwarders:
        yield f"handlers of {', '.join(forwarders)} send to it; change or delete those queues first"
    if near.predecessors:
        yield f"{', '.join(near.predecessors)} is drained or moved to it; wait for the end, or activate that queue"
    if is_being_resized(queue):
        yield "it is just being resized; wait until that operation is over, or try it again where it has failed"
    if is_being_handed_over(queue):
        yield "its tenant is just being isolated, or returns to the shared queue; wait until that operation is over"
    elif (isolation := isolation_of(queue)) is not None:
        yield f"its tenant is isolated by it; end that isolation instead ({isolation.pk}), which keeps their order"
    if near.returning:
        yield f"messages of tenant {near.returning} are just returning to it from its own queue; wait for the end"
    if is_being_provisioned(queue):
        yield "its topics are just being created or changed; wait until that operation is over, or cancel it"
    if successor is not None:
        yield from _unfit(queue, successor)


def _unfit(queue: Queue, successor: Queue) -> Iterator[str]:
    if successor.pk == queue.pk:
        yield f"{successor.name} is the queue itself; name another"
    elif successor.state != QueueState.ACTIVE:
        yield f"{successor.name} is {successor.state_choice.label.lower()}; name one that is active"
    elif successor.only_tenant_id not in (None, queue.only_tenant_id):
        yield f"{successor.name} takes messages of another tenant alone; name one of the same tenant, or of the system"
    elif successor.service_type != queue.service_type:
        yield f"{successor.name} is a queue of {successor.service_type}; name one of {queue.service_type}"


def _replays_into(queue: Queue) -> int:
    """How many are under way."""
    under_way = Replay.objects.exclude(operation__state__in=FINAL_OPERATION_STATES)
    into = Q(target=queue) | Q(target__isnull=True, letters__queue=queue)
    return under_way.filter(into).distinct().count()


def replays_into(queue: Queue) -> Iterator[str]:
    if number := _replays_into(queue):
        yield f"{number} replay{'s send' if number > 1 else ' sends'} letters to it; wait for the end, or cancel"


def _overtaking(queue: Queue, near: Neighbours) -> Iterator[str]:
    if queue.state == QueueState.ACTIVE and near.twin:
        yield (
            f"its tenant's messages go to {near.twin} of the system at once, and may be handled there before those "
            "that are left here"
        )


def why_slow(near: Neighbours, plan: QueuePlan) -> Iterator[str]:
    """Why it may take for ever to be empty."""
    if plan.messages == 0:
        return
    if near.paused:
        yield f"paused: {near.paused}; what is paused is not consumed until it is resumed"
    if not plan.consumers:
        yield "nobody consumes it now; its messages wait until a consumer host does"
