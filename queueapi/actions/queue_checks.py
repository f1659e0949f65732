"""Whether a queue could be consumed as its row says. What cannot is refused with what to enter instead."""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from queueapi import runtime
from queueapi.errors import InvalidInput
from queueapi.models import Queue
from queueapi.plans import consumption_plans
from queuecore.consuming.handlers import check_handler
from queuecore.delivery import Delivery
from queuecore.errors import ConfigurationError, InvalidName, NotSupported, UnknownHandler
from queuecore.metrics import METRICS_TOPIC
from queuecore.providers.base import Provider, TopicSpec
from queuecore.topics import check_base_topic, check_no_clash, check_topic

# What stored messages and committed offsets depend on.
IMMUTABLE: Final = ("id", "tenant", "name", "topic", "service_type", "partitions", "created_at")
CHANGEABLE: Final = tuple(
    field.name
    for field in Queue._meta.concrete_fields  # noqa: SLF001 - Django's documented way to ask a model
    if field.name not in IMMUTABLE
)

_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}")


def check_new_queue(queue: Queue) -> None:
    """InvalidName, InvalidInput."""
    _check_name(queue.name)
    check_base_topic(queue.topic)
    check_queue(queue)
    _check_no_clash(queue.topic_names(), runtime.provider().admin().topics())


def check_queue(queue: Queue) -> None:
    """InvalidName, InvalidInput."""
    _check_values(queue)
    provider = runtime.provider()
    _check_letter_topic(queue, provider)
    _check_state_topic(queue, provider)
    try:
        check_handler(queue.handler, queue.handler_options, queue.name)
        Delivery.of(queue.delivery, provider.capabilities)
        consumption_plans(queue, "")
    except (ConfigurationError, NotSupported, UnknownHandler) as error:
        raise InvalidInput(f"queue {queue.name}: {error.message}") from error


def check_fields(names: Iterable[str]) -> None:
    """InvalidInput for names of fields that a queue has not, or that never change."""
    for name in names:
        if name in IMMUTABLE:
            raise InvalidInput(f"{name} of a queue never changes, stored messages depend on it; create another queue")
        if name not in CHANGEABLE:
            close = difflib.get_close_matches(name, CHANGEABLE, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(CHANGEABLE)}"
            raise InvalidInput(f"a queue has no field {name!r}; {hint}")


def _check_values(queue: Queue) -> None:
    if not isinstance(queue.handler_options, dict):
        raise InvalidInput("handler_options: give an object with the handler's options, {} for none")
    try:
        queue.full_clean()
    except ValidationError as error:
        raise InvalidInput("; ".join(_told(error)), fields=error.message_dict) from error


def _told(error: ValidationError) -> Iterator[str]:
    for field, messages in error.message_dict.items():
        yield from messages if field == NON_FIELD_ERRORS else (f"{field}: {message}" for message in messages)


def _check_name(name: str) -> None:
    """Names become part of consumer groups, in lower case: two that differ must differ there as well."""
    if not _NAME.fullmatch(name):
        shown = name if len(name) <= 100 else f"{name[:30]}…"
        raise InvalidName(
            f"a queue cannot be called {shown!r}; enter 1 to 100 ASCII letters, digits, '.', '_' or '-', "
            "and more than '.' or '..'"
        )


def _check_letter_topic(queue: Queue, provider: Provider) -> None:
    if not queue.dlq_topic:
        return
    there = _check_free(queue, "dlq_topic", queue.dlq_topic, provider)
    if there is not None and there.partitions < queue.partitions:
        raise InvalidInput(
            f"dlq_topic: {queue.dlq_topic} is there with {there.partitions} partitions, and letters of {queue.name} "
            f"need one for each of its {queue.partitions}; name another topic"
        )


def _check_state_topic(queue: Queue, provider: Provider) -> None:
    if not queue.state_topic:
        return
    if not provider.capabilities.compaction:
        raise InvalidInput("state_topic: this provider cannot compact topics, which state needs; leave it empty")
    _check_free(queue, "state_topic", queue.state_topic, provider)
    found = [_check_free(queue, "state_topic", name, provider) for name in queue.state_topic_names()]
    if queue.state_topic == queue.dlq_topic:
        raise InvalidInput("state_topic: this is the topic of the queue's dead letters; name another")
    if other := Queue.objects.filter(state_topic=queue.state_topic).exclude(pk=queue.pk).first():
        raise InvalidInput(f"state_topic: {queue.state_topic} holds the state of queue {other.name}; name another")
    for there in found:
        if there is not None and (not there.is_compacted or there.partitions != 1):
            raise InvalidInput(
                f"state_topic: {there.name} is there, and is no compacted topic with one partition; name another"
            )


def _check_free(queue: Queue, field: str, topic: str, provider: Provider) -> TopicSpec | None:
    """The topic as it is now, if it is there. InvalidInput where it is in use for messages."""
    try:
        check_topic(topic)
    except InvalidName as error:
        raise InvalidInput(f"{field}: {error.message}") from error
    if topic == METRICS_TOPIC:
        raise InvalidInput(f"{field}: {topic} is where the runtime reports to; name another topic")
    for other in (queue, *Queue.objects.exclude(pk=queue.pk)):
        if topic in other.topic_names():
            raise InvalidInput(f"{field}: {topic} holds messages of queue {other.name}; name another topic")
    topics = provider.admin().topics()
    _check_no_clash([topic], topics)
    return topics.get(topic)


def _check_no_clash(names: Iterable[str], there: Iterable[Any]) -> None:
    """InvalidName where Kafka would take one of these for another."""
    taken = {str(name).replace(".", "_"): str(name) for name in there}
    for name in names:
        check_no_clash([taken.get(name.replace(".", "_"), name), name])
