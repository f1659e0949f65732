"""Calls that may hang for longer than anybody wants to wait."""

import threading
from collections.abc import Callable
from typing import TypeVar

from queuecore.errors import ProviderUnavailable
from queuecore.providers.kafka.connection import Connection

Answer = TypeVar("Answer")


class Caller:
    """Makes one call at a time, on a thread of its own, and waits for it as long as the connection allows. A call
    that hangs goes on by itself, and what it answers in the end is ignored. To be used by one thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._thread: threading.Thread | None = None

    def call(self, function: Callable[[], Answer]) -> Answer:
        """Its answer or error; ProviderUnavailable when there is neither in time."""
        self.require_free()
        answers: list[Answer] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                answers.append(function())
            except Exception as error:
                errors.append(error)

        self._thread = threading.Thread(target=run, name="kafka-call", daemon=True)
        self._thread.start()
        self.require_free(self._connection.timeout_s)
        for error in errors:
            raise error
        return answers[0]

    def is_free(self, wait_s: float = 0) -> bool:
        """Whether no call hangs, or it is back within that time."""
        if self._thread is not None:
            self._thread.join(wait_s)
            if self._thread.is_alive():
                return False
        self._thread = None
        return True

    def require_free(self, wait_s: float = 0) -> None:
        if not self.is_free(wait_s):
            raise ProviderUnavailable(
                f"Kafka at {self._connection.bootstrap_servers} does not answer a request, and may still do so; "
                "check that the brokers run and that this address reaches them from here"
            )
