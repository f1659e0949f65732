"""Whether a queue could be consumed as its row says. What cannot is refused with what to enter instead."""

import difflib
import re
from collections.abc import Iterable
from typing import Final

from queueapi import runtime
from queueapi.actions.json_checks import check_json
from queueapi.actions.row_checks import check_row
from queueapi.actions.topic_checks import check_no_confusion, check_topics
from queueapi.choices import ROUTED_QUEUE_STATES, QueueState
from queueapi.config import config
from queueapi.errors import InvalidInput
from queueapi.handler_options import SendsToQueues
from queueapi.models import Queue
from queueapi.models.queue import PARTITION_FIELDS
from queueapi.plans import consumption_plans
from queueapi.queue_addresses import QueueAddresses
from queueapi.queue_topics import message_specs
from queueapi.routing import check_routable, routing_table
from queuecore.consuming.handlers import check_handler, find_handler
from queuecore.delivery import Delivery
from queuecore.errors import ConfigurationError, InvalidName, NotSupported, UnknownHandler, UnknownQueue
from queuecore.providers.base import Capabilities, with_one_copy
from queuecore.topics import SYSTEM_TENANT, check_base_topic

# What stored messages and committed offsets depend on.
IMMUTABLE: Final = ("id", "tenant", "name", "topic", "service_type", "created_at", "version")
# What actions of their own change.
LIFE: Final = ("state", "operation", "successor")
RESIZED: Final = (*PARTITION_FIELDS, "letter_partitions")
CHANGEABLE: Final = tuple(
    field.name
    for field in Queue._meta.concrete_fields  # noqa: SLF001 - Django's documented way to ask a model
    if field.name not in (*IMMUTABLE, *LIFE, *RESIZED)
)

_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}")


def check_new_queue(queue: Queue) -> None:
    """InvalidName, InvalidInput."""
    _check_name(queue.name)
    _check_topic(queue.topic)
    check_queue(queue)
    _check_routable(queue)
    check_no_confusion(queue.topic_names(), runtime.provider().admin().topic_names())


def check_queue(queue: Queue) -> None:
    """InvalidName, InvalidInput."""
    _check_values(queue)
    provider = runtime.provider()
    check_topics(queue, provider)
    _check_handler(queue)
    try:
        _check_specs(queue, provider.capabilities)
        Delivery.of(queue.delivery, provider.capabilities)
        consumption_plans(queue, "")
    except (ConfigurationError, NotSupported) as error:
        raise InvalidInput(f"queue {queue.name}: {error.message}") from error


def _check_handler(queue: Queue) -> None:
    """InvalidInput names the field that is wrong."""
    try:
        check_handler(queue.handler, queue.handler_options, queue.name)
        _check_targets(queue)
    except (ConfigurationError, UnknownHandler, UnknownQueue) as error:
        field = "handler" if isinstance(error, UnknownHandler) else "handler_options"
        raise InvalidInput(f"queue {queue.name}: {error.message}", fields={field: [error.message]}) from error


def check_properties_kept(before: Queue, after: Queue) -> None:
    """InvalidInput where one is left out: the topics would keep it."""
    if gone := sorted(before.custom_properties.keys() - after.custom_properties.keys()):
        raise InvalidInput(
            f"custom_properties: {', '.join(gone)} has been set, and the topics keep it; name it with the value that "
            "it shall have"
        )


def check_fields(names: Iterable[str]) -> None:
    """InvalidInput for names of fields that a queue has not, or that never change."""
    for name in names:
        if name in LIFE:
            raise InvalidInput(f"{name} of a queue is not entered; drain, activate or delete the queue")
        if name in RESIZED:
            raise InvalidInput(f"{name} of a queue is not entered; resize the queue, which keeps its messages in order")
        if name in IMMUTABLE:
            raise InvalidInput(f"{name} of a queue never changes, stored messages depend on it; create another queue")
        if name not in CHANGEABLE:
            close = difflib.get_close_matches(name, CHANGEABLE, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(CHANGEABLE)}"
            raise InvalidInput(f"a queue has no field {name!r}; {hint}")


def _check_targets(queue: Queue) -> None:
    """UnknownQueue where its handler would send to one that its tenant does not see: all it got would be given up. One
    that is just being created will be there: its topics are made before those of what is created after it."""
    options = find_handler(queue.handler).read(queue.handler_options)
    if isinstance(options, SendsToQueues):
        states = (QueueState.CREATING, *ROUTED_QUEUE_STATES)
        seen = Queue.objects.filter(tenant__in=[queue.tenant_id, SYSTEM_TENANT], state__in=states)
        seen = seen.order_by("created_at", "id")
        addresses = QueueAddresses(routing_table(seen))
        for name in options.targets:
            addresses.resolve(queue.tenant_id, name, None)


def _check_specs(queue: Queue, capabilities: Capabilities) -> None:
    """ConfigurationError for topics that the provider could not have so."""
    known = capabilities.topic_properties
    for name in queue.custom_properties:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has: {', '.join(sorted(known)) or 'none'}"
            raise ConfigurationError(f"custom_properties: the provider's topics have no {name!r}; {hint}")
    if config().queue.type != "kafka":
        for spec in message_specs(queue):
            with_one_copy(spec)


def _check_routable(queue: Queue) -> None:
    try:
        check_routable(queue)
    except ConfigurationError as error:
        raise InvalidInput(f"service_type: {error.message}; leave the tenant out for a queue that all share") from error


def _check_values(queue: Queue) -> None:
    if not isinstance(queue.handler_options, dict):
        raise InvalidInput("handler_options: give an object with the handler's options, {} for none")
    check_json("handler_options", queue.handler_options)
    given = queue.custom_properties
    if not isinstance(given, dict) or not all(isinstance(value, str) and "\0" not in value for value in given.values()):
        raise InvalidInput(
            'custom_properties: give an object of texts, as in {"compression.type": "zstd"}, {} for none'
        )
    check_json("custom_properties", given)
    check_row(queue)


def _check_name(name: str) -> None:
    """Names become part of consumer groups, in lower case: two that differ must differ there as well."""
    if not _NAME.fullmatch(name):
        shown = name if len(name) <= 100 else f"{name[:30]}…"
        told = (
            f"a queue cannot be called {shown!r}; enter 1 to 100 ASCII letters, digits, '.', '_' or '-', "
            "and more than '.' or '..'"
        )
        raise InvalidName(told, fields={"name": [told]})


def _check_topic(topic: str) -> None:
    try:
        check_base_topic(topic)
    except InvalidName as error:
        raise InvalidName(error.message, fields={"topic": [error.message]}) from error
