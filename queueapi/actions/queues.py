"""Queues and the topics behind them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from django.db import IntegrityError, transaction

from queueapi import runtime
from queueapi.actions.actor import Actor, audit
from queueapi.actions.queue_checks import CHANGEABLE, check_fields, check_new_queue, check_queue
from queueapi.config import config
from queueapi.errors import InvalidInput
from queueapi.handler_options import entered_options, shown_options
from queueapi.handlers import handler_timeout_ms
from queueapi.models import Queue, Tenant
from queueapi.routing import tell_producers
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.providers.base import DAY_MS, FOR_EVER, TopicSpec

# Letters wait for a person.
LETTER_RETENTION_MS: Final = 90 * DAY_MS


def create_queue(actor: Actor, tenant: Tenant, *, name: str, topic: str, handler: str, **options: Any) -> Queue:
    """Record a queue and, once that is committed, create its topics and let producers send to it. InvalidInput and
    InvalidName say what to enter instead."""
    check_fields(name for name in options if name not in ("service_type", "partitions"))
    timeout_ms = handler_timeout_ms(handler) or config().queue.pack_processing_timeout_ms
    options.setdefault("pack_processing_timeout_ms", timeout_ms)
    queue = Queue(tenant=tenant, name=name, topic=topic, handler=handler, **options)
    check_new_queue(queue)
    with transaction.atomic():
        _insert(queue)
        after = _shown(queue, ("name", "topic", "service_type", "partitions", *CHANGEABLE))
        audit(actor, "create", "queue", queue.id, after=after)
        transaction.on_commit(lambda: provision_queue(queue))
        # After its topics are there: nobody sends where nothing is.
        transaction.on_commit(tell_producers)
    return queue


def change_queue(actor: Actor, queue: Queue, **changes: Any) -> Queue:
    """The queue as it is then: hosts consume it so within seconds. Without a difference nothing is written, but topics
    that are missing are created. InvalidInput says what cannot be, and what to enter instead."""
    check_fields(changes)
    with transaction.atomic():
        before = Queue.objects.select_for_update().get(pk=queue.pk)
        changed = Queue.objects.select_related("tenant").get(pk=queue.pk)
        _enter(changed, changes)
        check_queue(changed)
        names = [name for name in CHANGEABLE if getattr(before, name) != getattr(changed, name)]
        if names:
            changed.save(update_fields=names)
            audit(actor, "change", "queue", queue.pk, before=_shown(before, names), after=_shown(changed, names))
        # Also without a difference: the provider may have been away when it was made.
        transaction.on_commit(lambda: provision_queue(changed))
    return changed


def provision_queue(queue: Queue) -> None:
    """Create what is missing at the provider: the topics of its messages, letters and state. Repeatable."""
    runtime.provider().admin().create_topics(_topics(queue))


def provision_metrics() -> None:
    """Create the topic the runtime reports to. Repeatable."""
    spec = TopicSpec(METRICS_TOPIC, METRICS_PARTITIONS, retention_ms=DAY_MS)
    runtime.provider().admin().create_topics([spec])


def _topics(queue: Queue) -> Iterator[TopicSpec]:
    yield from (TopicSpec(info.full_topic_name) for info in queue.partition_infos())
    yield TopicSpec(queue.letter_topic, queue.partitions, retention_ms=LETTER_RETENTION_MS)
    yield from (TopicSpec(name, retention_ms=FOR_EVER, cleanup="compact") for name in queue.state_topic_names())


def _insert(queue: Queue) -> None:
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
    if isinstance(queue.handler_options, dict):
        queue.handler_options = entered_options(queue.handler, queue.handler_options, before)


def _shown(queue: Queue, fields: Iterable[str]) -> dict[str, Any]:
    """As the audit may keep it."""
    values = {name: getattr(queue, name) for name in fields}
    return values | {"handler_options": shown_options(queue)} if "handler_options" in values else values
