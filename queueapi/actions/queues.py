"""Queues and the topics behind them."""

import re
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction

from queueapi import runtime
from queueapi.actions.actor import Actor, audit
from queueapi.errors import InvalidInput
from queueapi.models import Queue, Tenant
from queuecore.errors import InvalidName
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.providers.base import DAY_MS, TopicSpec
from queuecore.topics import check_base_topic, dead_letter_partition

_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}")


def create_queue(actor: Actor, tenant: Tenant, *, name: str, topic: str, handler: str, **options: Any) -> Queue:
    """Record a queue and, once that is committed, create its topics. InvalidInput and InvalidName say what to enter
    instead."""
    _check_name(name)
    check_base_topic(topic)
    queue = Queue(tenant=tenant, name=name, topic=topic, handler=handler, **options)
    try:
        queue.full_clean()
    except ValidationError as error:
        raise InvalidInput("; ".join(error.messages), fields=error.message_dict) from error
    with transaction.atomic():
        queue.save()
        audit(actor, "create", "queue", queue.id, after={"name": name, "topic": topic, "partitions": queue.partitions})
        transaction.on_commit(lambda: provision_queue(queue))
    return queue


def provision_queue(queue: Queue) -> None:
    """Create what is missing at the provider: the queue's topics and their dead-letter topic. Repeatable."""
    infos = queue.partition_infos()
    letters = dead_letter_partition(infos[0])
    runtime.provider().admin().create_topics(
        [
            *(TopicSpec(info.full_topic_name) for info in infos),
            TopicSpec(letters.full_topic_name, queue.partitions, retention_ms=90 * DAY_MS),
        ]
    )


def provision_metrics() -> None:
    """Create the topic the runtime reports to. Repeatable."""
    spec = TopicSpec(METRICS_TOPIC, METRICS_PARTITIONS, retention_ms=DAY_MS)
    runtime.provider().admin().create_topics([spec])


def _check_name(name: str) -> None:
    """Names become part of consumer groups, in lower case: two that differ must differ there as well."""
    if not _NAME.fullmatch(name):
        shown = name if len(name) <= 100 else f"{name[:30]}…"
        raise InvalidName(
            f"a queue cannot be called {shown!r}; enter 1 to 100 ASCII letters, digits, '.', '_' or '-', "
            "and more than '.' or '..'"
        )
