"""What was addressed by a routing version and is not stored yet."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

# Whatever says where messages go.
Guide = TypeVar("Guide")


class UnderWay(Generic[Guide]):
    """Which of the guides there were are still in use. Safe from any thread.

    A producer acknowledges a version once nothing by an earlier one is under way: from then on, whatever that version
    moved is sent to its new place alone, and what was sent before is stored where it was before.
    """

    def __init__(self, version: int, guide: Guide) -> None:
        self._lock = threading.Lock()
        self._version, self._guide = version, guide
        self._open: Counter[int] = Counter()

    @property
    def guide(self) -> Guide:
        """For who only asks."""
        return self._guide

    def follow(self, version: int, guide: Guide) -> None:
        """What begins from now on goes by this one."""
        with self._lock:
            self._version, self._guide = version, guide

    def begin(self) -> "Sending[Guide]":
        """Something is to be addressed, and sent: a `with` block around both."""
        # Together: one that took a guide and was not counted would be overlooked.
        with self._lock:
            self._open[self._version] += 1
            return Sending(self._guide, self._version, self._end)

    def is_over(self, version: int) -> bool:
        """Whether nothing by any other version is under way."""
        with self._lock:
            return all(other == version for other in self._open)

    def _end(self, version: int) -> None:
        with self._lock:
            self._open[version] -= 1
            if not self._open[version]:
                del self._open[version]


class Sending(Generic[Guide]):
    """Messages that go by one guide. It lasts until its block is left and all that was sent in it is answered, however
    long after that: who gives up waiting has not taken back what it sent."""

    def __init__(self, guide: Guide, version: int, end: Callable[[int], None]) -> None:
        self.guide = guide
        self._version = version
        self._end = end
        self._lock = threading.Lock()
        # The block itself is one.
        self._unanswered = 1

    def sent(self, stored: "Future[Any]") -> None:
        """Count on this until it has ended."""
        with self._lock:
            self._unanswered += 1
        stored.add_done_callback(self._answered)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answered()

    def _answered(self, stored: "Future[Any] | None" = None) -> None:  # noqa: ARG002
        with self._lock:
            self._unanswered -= 1
            is_over = not self._unanswered
        if is_over:
            self._end(self._version)
