"""Queues and the topics behind them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db import IntegrityError, transaction

from queueapi import runtime
from queueapi.actions.actor import Actor, audit
from queueapi.actions.provisioning import start_provisioning
from queueapi.actions.queue_checks import CHANGEABLE, check_fields, check_new_queue, check_properties_kept, check_queue
from queueapi.actions.tenant_limits import check_change, check_own_queue, usual_retention_ms
from queueapi.choices import ENDING_QUEUE_STATES, QueueState
from queueapi.config import config
from queueapi.errors import ChangedMeanwhile, InvalidInput, QueueNotActive
from queueapi.handler_options import entered_options, shown_options
from queueapi.handlers import handler_timeout_ms
from queueapi.models import Queue, Tenant
from queueapi.queue_topics import topics_of
from queueapi.selectors.isolation import shared_twin
from queueapi.selectors.queue_operations import is_being_handed_over, is_being_resized

# What the provider is to know of.
_PROVISIONED: Final = frozenset(
    {
        "retention_ms", "retention_bytes", "segment_bytes", "replication_factor", "custom_properties", "dlq_topic",
        "state_topic",
    }
)  # fmt: skip


def create_queue(actor: Actor, tenant: Tenant, *, name: str, topic: str, handler: str, **options: Any) -> Queue:
    """Record a queue and, once that is committed, create its topics and let producers send to it. Where the provider is
    away it stays `creating`, until its operation has done so. InvalidInput and InvalidName say what to enter instead.
    """
    check_fields(name for name in options if name not in ("service_type", "partitions"))
    timeout_ms = handler_timeout_ms(handler) or config().queue.pack_processing_timeout_ms
    options.setdefault("pack_processing_timeout_ms", timeout_ms)
    options.setdefault("retention_ms", usual_retention_ms(tenant))
    queue = Queue(tenant=tenant, name=name, topic=topic, handler=handler, state=QueueState.CREATING, **options)
    _enter_options(queue, {})
    check_new_queue(queue)
    _check_no_twin(queue)
    with transaction.atomic():
        check_own_queue(queue)
        insert_queue(queue)
        after = shown_fields(queue, ("name", "topic", "service_type", "partitions", *CHANGEABLE))
        audit(actor, "create", "queue", queue.id, tenant_id=queue.only_tenant_id, after=after)
        start_provisioning(actor, queue, "Create queue")
    return _as_it_is(queue)


def change_queue(actor: Actor, queue: Queue, *, seen: int | None = None, **changes: Any) -> Queue:
    """The queue as it is then: hosts consume it so within seconds. Without a difference nothing is written, but topics
    that are missing are created, and a creation that has failed is tried again. InvalidInput says what cannot be, and
    what to enter instead; QueueNotActive that it is being deleted; ChangedMeanwhile that `seen` is not its version any
    more."""
    check_fields(changes)
    with transaction.atomic():
        before = Queue.objects.select_for_update().filter(pk=queue.pk).first()
        if before is None:
            raise QueueNotActive(f"queue {queue.name} has just been deleted")
        if seen is not None and before.version != seen:
            raise ChangedMeanwhile(f"somebody has just changed queue {before.name}; load it anew, and change that")
        changed = Queue.objects.select_related("tenant").get(pk=queue.pk)
        _enter(changed, changes)
        check_queue(changed)
        check_properties_kept(before, changed)
        names = [name for name in CHANGEABLE if getattr(before, name) != getattr(changed, name)]
        _check_state(before, names)
        check_change(changed, names)
        is_handed_over = is_being_handed_over(before) or is_being_resized(before)
        if is_handed_over and _PROVISIONED & set(names):
            tenants = "its tenant is just being isolated or returns"
            what = "it is just being resized" if is_being_resized(before) else tenants
            raise QueueNotActive(f"queue {before.name}: {what}; change its topics after that")
        if names:
            changed.version = before.version + 1
            changed.save(update_fields=[*names, "version"])
            told = {"before": shown_fields(before, names), "after": shown_fields(changed, names)}
            audit(actor, "change", "queue", queue.pk, tenant_id=changed.only_tenant_id, **told)
        is_settled = not is_handed_over and changed.state not in ENDING_QUEUE_STATES
        if is_settled and (_PROVISIONED & set(names) or _lacks_something(changed)):
            start_provisioning(actor, changed, "Change the topics of queue")
    return _as_it_is(changed)


def _check_no_twin(queue: Queue) -> None:
    """InvalidInput where the tenant's messages would leave a shared queue before those that are there are handled."""
    if (twin := shared_twin(queue)) is not None:
        raise InvalidInput(
            f"name: the system has a queue {twin.name}, where the tenant's messages are now; isolate the tenant "
            "instead, which keeps their order, or choose another name"
        )


def _check_state(queue: Queue, changed: Iterable[str]) -> None:
    """QueueNotActive. How a queue is consumed may be mended while it is drained; its topics stay as they are."""
    if queue.state == QueueState.DELETING or (queue.state == QueueState.DRAINING and _PROVISIONED & set(changed)):
        raise QueueNotActive(
            f"queue {queue.name} is {queue.state_choice.label.lower()}, its topics are not changed any more; activate "
            "it first"
        )


def _lacks_something(queue: Queue) -> bool:
    """Also without a difference: the provider may have been away when it was made."""
    there = frozenset(runtime.provider().admin().topic_names())
    return queue.state == QueueState.CREATING or any(spec.name not in there for spec in topics_of(queue))


def _as_it_is(queue: Queue) -> Queue:
    """What became of it since it was written here."""
    queue.refresh_from_db(fields=["state", "operation"])
    return queue


def insert_queue(queue: Queue) -> None:
    """InvalidInput where somebody else has been quicker."""
    try:
        with transaction.atomic():
            queue.save(force_insert=True)
    except IntegrityError as error:
        raise InvalidInput(
            f"somebody else has just created a queue {queue.name} or one with the topic {queue.topic}; look at it, or "
            "choose others"
        ) from error


def _enter(queue: Queue, changes: Mapping[str, Any]) -> None:
    """Options that are left out stay, as far as their handler does: another one is not told the secrets of this."""
    handler, before, shown = queue.handler, queue.handler_options, shown_options(queue)
    for name, value in changes.items():
        setattr(queue, name, value)
    if queue.handler != handler:
        before = {}
        queue.handler_options = changes.get("handler_options", shown)
    _enter_options(queue, before)


def _enter_options(queue: Queue, before: Mapping[str, Any]) -> None:
    """What is hidden in its options stands for what was there before. InvalidInput where nothing was."""
    if isinstance(queue.handler_options, dict):
        queue.handler_options = entered_options(queue.handler, queue.handler_options, before)


def shown_fields(queue: Queue, fields: Iterable[str]) -> dict[str, Any]:
    """As the audit may keep it."""
    values = {name: getattr(queue, name) for name in fields}
    return values | {"handler_options": shown_options(queue)} if "handler_options" in values else values
