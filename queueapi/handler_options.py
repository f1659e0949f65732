"""What queues configure about their handlers, without showing what is secret in it."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from queueapi.errors import InvalidInput
from queueapi.models import Queue
from queuecore.consuming.handler_options import HIDDEN, hide_secrets, keep_secrets
from queuecore.consuming.handlers import find_handler
from queuecore.errors import ConfigurationError, QueueError


@runtime_checkable
class SendsToQueues(Protocol):
    """Options that name queues which have to be there."""

    @property
    def targets(self) -> tuple[str, ...]:
        """As the queue's tenant sees them."""


def shown_options(queue: Queue) -> dict[str, object]:
    """As people may see them. All are hidden where nobody knows the handler, and so which of them are secret."""
    try:
        kind = find_handler(queue.handler).options
    except QueueError:
        return dict.fromkeys(queue.handler_options, HIDDEN)
    return hide_secrets(kind, queue.handler_options) if kind else dict(queue.handler_options)


def entered_options(handler: str, entered: Mapping[str, object], before: Mapping[str, object]) -> dict[str, object]:
    """What somebody entered, with secrets that came back hidden as they were before. InvalidInput names those that are
    to be entered again."""
    try:
        kind = find_handler(handler).options
    except QueueError:
        return dict(entered)
    try:
        return keep_secrets(kind, entered, before) if kind else dict(entered)
    except ConfigurationError as error:
        raise InvalidInput(f"handler_options: {error.message}") from error
