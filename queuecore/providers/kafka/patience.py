"""Calls that may hang for longer than anybody wants to wait."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from queue import SimpleQueue
from typing import TypeVar

from queuecore.errors import ProviderUnavailable
from queuecore.providers.kafka.connection import Connection

Answer = TypeVar("Answer")


class Caller:
    """Makes one call at a time, on a thread of its own, and waits for it as long as the connection allows, or as it is
    told. A call that hangs goes on by itself, and what it answers in the end is ignored. To be used by one thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # None ends the thread.
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        # The answer that is still awaited, by somebody or by nobody any more.
        self._awaited: Future[object] | None = None

    def call(self, function: Callable[[], Answer], patience_s: float | None = None) -> Answer:
        """Its answer or error; ProviderUnavailable when there is neither in time."""
        self.require_free()
        answer: Future[Answer] = Future()

        def run() -> None:
            try:
                answer.set_result(function())
            except Exception as error:
                answer.set_exception(error)

        self._awaited = answer  # type: ignore[assignment]
        self._give(run)
        self.require_free(self._connection.timeout_s if patience_s is None else patience_s)
        return answer.result()

    def is_free(self, wait_s: float = 0) -> bool:
        """Whether no call hangs, or it is back within that time."""
        if self._awaited is not None:
            try:
                self._awaited.exception(wait_s)
            except TooLate:
                return False
        self._awaited = None
        return True

    def require_free(self, wait_s: float = 0) -> None:
        if not self.is_free(wait_s):
            raise ProviderUnavailable(
                f"Kafka at {self._connection.bootstrap_servers} does not answer a request, and may still do so; "
                "check that the brokers run and that this address reaches them from here"
            )

    def end(self, last: Callable[[], object]) -> None:
        """Make no more calls but this one, which nobody waits for while another hangs."""
        if self.is_free():
            last()
        else:
            self._give(last)
        if self._thread is not None:
            self._calls.put(None)

    def _give(self, call: Callable[[], object]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=_make, args=(self._calls,), name="kafka-call", daemon=True)
            self._thread.start()
        self._calls.put(call)


def _make(calls: "SimpleQueue[Callable[[], object] | None]") -> None:
    while (call := calls.get()) is not None:
        call()
