"""The queues that an isolation makes: like the shared ones of the same names, but for what was asked for."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.db import transaction

from queueapi import runtime
from queueapi.actions.actor import Actor, audit
from queueapi.actions.operations import lock_ours
from queueapi.actions.queue_checks import CHANGEABLE, check_new_queue
from queueapi.actions.queues import insert_queue, shown_fields
from queueapi.actions.tenant_limits import check_own_queue
from queueapi.choices import QueueState
from queueapi.errors import InvalidInput, NotChangeable
from queueapi.models import IsolationRequest, Operation, Queue, Tenant
from queueapi.queue_topics import topics_to_remove
from queuecore.providers.base import FOR_EVER
from queuecore.topics import SYSTEM_TENANT, ServiceType

# What may be other than in the shared queue.
ASKABLE: Final = (
    "partitions", "retention_ms", "retention_bytes", "delivery", "consumer_per_partition", "concurrency",
    "poll_interval_ms", "pack_processing_timeout_ms", "submit_strategy", "batch_size", "processing_strategy", "retries",
    "failure_percentage", "retry_pause_ms", "max_retry_pause_ms", "max_backlog",
)  # fmt: skip
# Of the shared queue alone: letters have a topic of their own, and a profile says who consumes.
_NOT_COPIED: Final = ("dlq_topic", "state_topic", "label")

Asked = Mapping[str, Any]


class Isolated(NamedTuple):
    """A queue of a tenant's own, and the one that it has it instead of."""

    own: Queue
    shared: Queue


def check_asked(tenant: Tenant, asked: Sequence[Asked]) -> list[Isolated]:
    """The queues that the tenant would have, of which none is stored. InvalidInput, NotChangeable where it could not
    have them now, all of them together."""
    with transaction.atomic():
        made = _made(tenant, asked)
        for one in made:
            _store(one.own)
        transaction.set_rollback(True)
    return made


def store_isolated_queues(actor: Actor, request: IsolationRequest, operation: Operation) -> list[Queue]:
    """Record the queues that were asked for, for the operation to create. InvalidInput and NotChangeable say what
    stands in the way by now."""
    made = [one.own for one in _made(request.tenant, request.queues)]
    shared = Queue.objects.select_for_update().filter(tenant=SYSTEM_TENANT, name__in=[queue.name for queue in made])
    if len(list(shared.values_list("pk"))) < len(made):
        raise NotChangeable("one of the shared queues has just been deleted; look again")
    # Not the shared queue's options, which are the installation's: its tenant reads this.
    told = [name for name in CHANGEABLE if name != "handler_options"]
    for queue in made:
        queue.operation = operation
        _store(queue)
        after = shown_fields(queue, ("name", "topic", "partitions", *told))
        after["topics"] = sorted(queue.topic_names())
        audit(actor, "create", "queue", queue.pk, tenant_id=queue.tenant_id, after=after)
    return made


def remove_isolated_queues(actor: Actor, operation: Operation) -> None:
    """Of the operation's queues those that nobody has ever sent to: their topics, then their rows. Repeatable.
    QueueError, NoLongerOurs."""
    made = Queue.objects.filter(operation=operation, state=QueueState.CREATING).select_related("tenant")
    for pk in list(made.order_by("name").values_list("pk", flat=True)):
        with transaction.atomic():
            queue = made.select_for_update(of=("self",)).filter(pk=pk).first()
            # Another runner may create these topics again, and have messages sent to them: not before this is over.
            lock_ours(operation)
            if queue is not None:
                runtime.provider().admin().delete_topics(topics_to_remove(queue))
                audit(actor, "remove", "queue", queue.pk, tenant_id=queue.tenant_id, before={"name": queue.name})
                queue.delete()


def shared_queue(name: str) -> Queue:
    """The one that all tenants share, whatever its name's case. InvalidInput where there is none that a tenant can have
    of its own."""
    shared = Queue.objects.filter(
        tenant=SYSTEM_TENANT, service_type=ServiceType.TB_RULE_ENGINE.value, state=QueueState.ACTIVE
    )
    found = shared.filter(name__iexact=name).first()
    if found is None:
        names = sorted(shared.values_list("name", flat=True))
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
        raise InvalidInput(f"queues: no active queue of the rule engine that all share is called {name!r}; {hint}")
    if found.state_topic:
        raise InvalidInput(
            f"queues: handlers of {found.name} remember things in {found.state_topic}, and what they know of the "
            "tenant's entities would stay behind; leave that queue out"
        )
    return found


def _made(tenant: Tenant, asked: Sequence[Asked]) -> list[Isolated]:
    if tenant.is_system:
        raise InvalidInput("the system's queues are those that all share; name another tenant")
    names = [one["name"].lower() for one in asked]
    if not names or len(set(names)) < len(names):
        raise InvalidInput("queues: name at least one, and each once")
    found = ((shared_queue(one["name"]), one) for one in asked)
    return [Isolated(_isolated(tenant, shared, one), shared) for shared, one in found]


def _isolated(tenant: Tenant, shared: Queue, asked: Asked) -> Queue:
    if there := tenant.queues.filter(name__iexact=shared.name).first():
        state = there.state_choice.label.lower()
        raise NotChangeable(f"tenant {tenant.name} has a queue {there.name} of its own, which is {state}")
    copied = {name: getattr(shared, name) for name in CHANGEABLE if name not in _NOT_COPIED}
    own = Queue(
        tenant=tenant,
        name=shared.name,
        topic=shared.topic,
        service_type=shared.service_type,
        state=QueueState.CREATING,
        **(copied | {"partitions": shared.partitions} | {name: asked[name] for name in ASKABLE if name in asked}),
    )
    if "retention_ms" not in asked:
        own.retention_ms = _allowed_retention_ms(tenant, shared.retention_ms)
    return own


def _allowed_retention_ms(tenant: Tenant, shared_ms: int) -> int:
    """As in the shared queue, or the nearest to that which the tenant's profile allows."""
    if shared_ms == FOR_EVER:
        return tenant.profile.max_retention_ms or FOR_EVER
    return tenant.profile.retention_ms(shared_ms)


def _store(queue: Queue) -> None:
    check_new_queue(queue)
    check_own_queue(queue)
    insert_queue(queue)
