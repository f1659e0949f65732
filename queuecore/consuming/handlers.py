"""User code for messages, found by name.

A handler registers itself with the decorator when its module is imported. An installed package may also name it as an
entry point, which is loaded when somebody first asks for that name:

    [project.entry-points."switchyard.handlers"]
    billing = "shop.handlers:bill"
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from google.protobuf.message import Message

from queuecore.consuming.context import MessageHandler
from queuecore.consuming.registry import HandlerRegistry, RegisteredHandler

NO_OPTIONS: Final[Mapping[str, object]] = {}

Function = TypeVar("Function", bound=Callable[..., object])

_registry = HandlerRegistry()


def handler(
    name: str,
    *,
    message: type[Message] | None = None,
    options: type[object] | None = None,
    timeout_ms: int | None = None,
) -> Callable[[Function], Function]:
    """Register a function, or an `async def`, under a name that queues refer to. It is called with each message and
    its context; returning means done, raising means failed. It may see a message more than once.

    message     a type of Protocol Buffers: the function gets what the record holds, decoded, instead of the record,
                which is `context.record` then; what cannot be decoded becomes a dead letter at once
    options     a frozen dataclass of what a queue may configure (see `handler_options`): what is decorated is called
                with these once, and returns the function for messages; a class with `__call__` will do
    timeout_ms  how long one message may take, for queues that do not say so themselves

    ConfigurationError where another function has the name already.
    """

    def register(function: Function) -> Function:
        _registry.add(RegisteredHandler(name, function, message, options, timeout_ms))
        return function

    return register


def handler_names() -> list[str]:
    """All there are, those not loaded yet as well."""
    return _registry.names()


def find_handler(name: str) -> RegisteredHandler:
    """UnknownHandler, with a suggestion, where nobody registered one of that name or it cannot be loaded."""
    return _registry.find(name)


def check_handler_name(name: str) -> None:
    """UnknownHandler as `find_handler`."""
    find_handler(name)


def check_handler(name: str, options: Mapping[str, object] = NO_OPTIONS, queue: str = "") -> None:
    """Whether a queue of that name can have this handler, with these options. UnknownHandler, or ConfigurationError
    with everything that is wrong with the options."""
    find_handler(name).check(options, queue)


def bind(name: str, options: Mapping[str, object] = NO_OPTIONS) -> MessageHandler:
    """The handler with these options, for a consumption to call. Raises as `check_handler`."""
    return find_handler(name).bind(options)
