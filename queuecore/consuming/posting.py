"""Where what handlers sent goes, decided when it is sent."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from queuecore.sending import Addressed


class Posting(Protocol):
    """Messages that are sent together, by one routing version."""

    def where(self, addressed: Addressed) -> Addressed:
        """It, with the address that it has by this version: between a handler's sending and this, another version may
        have come."""

    def sent(self, stored: "Future[Any]") -> None:
        """Count on the version until this has ended."""


class Routing(Protocol):
    """Safe from any thread."""

    def posting(self) -> AbstractContextManager[Posting]:
        """Until its block is left, and all that was sent in it is answered, the version it goes by is in use."""


class Unrouted:
    """For who has no routing versions: messages go where they were addressed to."""

    def where(self, addressed: Addressed) -> Addressed:
        return addressed

    def sent(self, stored: "Future[Any]") -> None: ...

    @contextmanager
    def posting(self) -> Iterator[Posting]:
        yield self
