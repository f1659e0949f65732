"""Which handlers there are, and what each says of itself."""

import difflib
import inspect
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

from google.protobuf.message import Message

from queuecore.consuming.context import DeliveryContext, MessageHandler
from queuecore.consuming.delivering import is_async
from queuecore.consuming.handler_options import ChecksQueue, check_options_type, read_options
from queuecore.encoding import decode
from queuecore.errors import ConfigurationError, QueueError, UnknownHandler
from queuecore.messages import Record

ENTRY_POINTS: Final = "switchyard.handlers"

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class RegisteredHandler:
    """A handler as the decorator `handler` describes it. ConfigurationError where it could not be one."""

    name: str
    function: Callable[..., object]
    message: type[Message] | None = None
    options: type[object] | None = None
    timeout_ms: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"a handler cannot be called {self.name!r}; use 1 to 100 ASCII letters, digits, '.', '_' or '-'"
            )
        if not callable(self.function):
            raise ConfigurationError(f"the handler {self.name!r} is {self.function!r}; give a function")
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise ConfigurationError(f"the handler {self.place} has a `yield`, so that calling it does nothing; return")
        if self.timeout_ms is not None and self.timeout_ms < 1:
            raise ConfigurationError(f"the handler {self.place} has timeout_ms={self.timeout_ms}; use 1 or more")
        if self.options is not None:
            check_options_type(self.options)

    @property
    def place(self) -> str:
        """Where its code is, as an entry point would say."""
        return f"{self.function.__module__}:{getattr(self.function, '__qualname__', repr(self.function))}"

    def check(self, options: Mapping[str, object], queue: str = "") -> None:
        """ConfigurationError where a queue, of that name if given, cannot have these options."""
        read = self.read(options)
        if queue and isinstance(read, ChecksQueue):
            read.check_queue(queue)

    def bind(self, options: Mapping[str, object]) -> MessageHandler:
        """The function for messages. ConfigurationError as `check`."""
        read = self.read(options)
        function = self.function if self.options is None else cast(Callable[..., Any], self.function(read))
        return cast(MessageHandler, function) if self.message is None else _typed(function, self.message)

    def read(self, options: Mapping[str, object]) -> object:
        """The options as its code gets them. ConfigurationError lists everything wrong with them."""
        try:
            return read_options(self.options or _NoOptions, options)
        except ConfigurationError as error:
            raise ConfigurationError(f"handler {self.name!r}: {error.message}", handler=self.name) from None


@dataclass(frozen=True, slots=True)
class _NoOptions:
    """Of a handler that has none."""


class HandlerRegistry:
    """Handlers by name. Safe from any thread."""

    def __init__(self) -> None:
        self._handlers: dict[str, RegisteredHandler] = {}
        self._loaded: set[str] = set()
        # Held while an entry point is loaded, whose module may register handlers of its own.
        self._changing = threading.RLock()

    def add(self, handler: RegisteredHandler) -> None:
        """ConfigurationError where another function has the name. The same one, from a module that was imported
        again, takes the place of its older self."""
        with self._changing:
            other = self._handlers.get(handler.name)
            if other is not None and other.function is not handler.function and other.place != handler.place:
                raise ConfigurationError(
                    f"two handlers are called {handler.name!r}: {other.place} and {handler.place}; rename one"
                )
            self._handlers[handler.name] = handler

    def names(self) -> list[str]:
        return sorted({*self._handlers, *(point.name for point in entry_points(group=ENTRY_POINTS))})

    def find(self, name: str) -> RegisteredHandler:
        """UnknownHandler where there is none, or its entry point cannot be loaded; ConfigurationError where several
        functions have the name."""
        if name not in self._loaded:
            self._load(name)
        if found := self._handlers.get(name):
            return found
        names = self.names()
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
        raise UnknownHandler(f"no handler is called {name!r}; {hint}", name=name)

    def _load(self, name: str) -> None:
        """Take over what packages have under this name. What is not there is looked for again the next time: a
        package may be installed meanwhile."""
        with self._changing:
            for point in entry_points(group=ENTRY_POINTS, name=name):
                self.add(self._described(name, _loaded(point)))
            if name in self._handlers:
                self._loaded.add(name)

    def _described(self, name: str, function: Callable[..., object]) -> RegisteredHandler:
        """As its decorator says, if it has one."""
        said = next((known for known in self._handlers.values() if known.function is function), None)
        return replace(said, name=name) if said else RegisteredHandler(name, function)


def _loaded(point: EntryPoint) -> Callable[..., object]:
    """Whatever is wrong with somebody's package is said with its name, and is nobody else's trouble."""
    source = f"{point.value} of {point.dist.name}" if point.dist else point.value
    try:
        return cast(Callable[..., object], point.load())
    except QueueError as error:
        reason = error.message
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
    raise UnknownHandler(
        f"the handler {point.name!r} ({source}) cannot be loaded: {reason}; mend or uninstall the package",
        name=point.name,
    )


def _typed(function: Callable[..., Any], message_type: type[Message]) -> MessageHandler:
    """Decodes what it passes on. UndecodableMessage where that cannot be done."""

    def handle(record: Record, context: DeliveryContext) -> Any:
        # What it returns should be nothing; who called sees to that.
        return function(decode(record, message_type), context)

    async def handle_async(record: Record, context: DeliveryContext) -> None:
        await function(decode(record, message_type), context)

    return handle_async if is_async(function) else handle
