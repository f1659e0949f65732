"""User code for one message, found by name."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from queuecore.errors import UnknownHandler
from queuecore.messages import REPLAY_LETTER, TENANT_ID, Record, text_header


@dataclass(frozen=True, slots=True)
class HandlerContext:
    """What a handler may know about the delivery of its message. `attempt` counts from 1."""

    queue: str
    attempt: int
    tenant_id: str | None
    replayed_letter: str | None


class Handler(Protocol):
    def __call__(self, record: Record, context: HandlerContext) -> None:
        """Returning means done; raising means failed. May see a message more than once."""


_HANDLERS: dict[str, Handler] = {}


def handler(name: str) -> Callable[[Handler], Handler]:
    """Register a handler under a name that queues refer to."""

    def register(function: Handler) -> Handler:
        _HANDLERS[name] = function
        return function

    return register


def handler_names() -> list[str]:
    return sorted(_HANDLERS)


def find_handler(name: str) -> Handler:
    if name in _HANDLERS:
        return _HANDLERS[name]
    close = difflib.get_close_matches(name, _HANDLERS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(handler_names()) or 'none'}"
    raise UnknownHandler(f"no handler is called {name!r}; {hint}", name=name)


def context_of(record: Record, queue: str, attempt: int) -> HandlerContext:
    tenant = text_header(record.headers, TENANT_ID)
    return HandlerContext(queue, attempt, tenant, text_header(record.headers, REPLAY_LETTER))
