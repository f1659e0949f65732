"""Who wants to hear what. One that fails keeps nobody else from hearing."""

import logging
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Generic, Self, TypeVar

logger = logging.getLogger(__name__)

Topic = TypeVar("Topic")
Told = TypeVar("Told")


class Listening:
    """A listener's place. Leaving its `with` block closes it."""

    def __init__(self, leave: Callable[["Listening"], None]) -> None:
        self._leave = leave

    def close(self) -> None:
        """Hear no more. What is being told meanwhile may still be heard."""
        self._leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Listeners(Generic[Topic, Told]):
    """Safe from any thread. They are told in the order in which they came."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._all: dict[Listening, tuple[Topic, Callable[[Told], None]]] = {}
        self._failures = 0

    @property
    def failures(self) -> int:
        """How often a listener has raised."""
        return self._failures

    def add(self, topic: Topic, callback: Callable[[Told], None]) -> Listening:
        listening = Listening(self._remove)
        with self._lock:
            self._all[listening] = (topic, callback)
        return listening

    def tell(self, topics: Iterable[Topic], told: Told) -> int:
        """Those that listen to one of these, on this thread; how many there were. What they raise is logged."""
        wanted = set(topics)
        with self._lock:
            callbacks = [callback for topic, callback in self._all.values() if topic in wanted]
        for callback in callbacks:
            try:
                callback(told)
            except Exception:
                with self._lock:
                    self._failures += 1
                logger.exception("%s: the listener %r failed; the others hear it all the same", self._name, callback)
        return len(callbacks)

    def _remove(self, listening: Listening) -> None:
        with self._lock:
            self._all.pop(listening, None)
