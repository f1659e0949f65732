"""Whether something can be a handler: a function that is done when it returns."""

import inspect
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Final

from queuecore.errors import ConfigurationError

_LATER: Final[tuple[Callable[[object], bool], ...]] = (
    inspect.iscoroutinefunction,
    inspect.isasyncgenfunction,
    inspect.isgeneratorfunction,
)


def check_handler(handler: object) -> None:
    """ConfigurationError for what cannot be called, and for what does nothing when it is called: `async def`, or a
    function with `yield`."""
    if not callable(handler):
        raise ConfigurationError(f"the handler is {handler!r}; give a function that takes a record and its context")
    function = _function_of(handler)
    if any(is_later(function) for is_later in _LATER):
        raise ConfigurationError(
            f"the handler {handler!r} is async or has a `yield`, so that calling it does nothing; "
            "give a plain function, which may call asyncio.run itself"
        )


def refuse_promise(returned: object) -> None:
    """TypeError where a handler has returned something to be awaited."""
    if returned is None or not inspect.isawaitable(returned):
        return
    if isinstance(returned, Coroutine):
        returned.close()
    raise TypeError(f"the handler returned a {type(returned).__name__}, which nobody awaits; use a plain function")


def _function_of(handler: Callable[..., object]) -> object:
    while isinstance(handler, partial):
        handler = handler.func
    return handler if inspect.isroutine(handler) else type(handler).__call__
