"""The admin client's questions, with answers in our words."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProviderUnavailable
from queuecore.providers.kafka.codes import CoordinatorMoves
from queuecore.providers.kafka.connection import Connection

_LOOK_AGAIN_S = 0.05

Answer = TypeVar("Answer")


class Asking:
    """What the parts of the admin share. Safe from any thread.

    ProviderUnavailable when the brokers do not answer in the connection's time.
    """

    def __init__(self, connection: Connection, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = connection
        self._clock = clock
        self._client = connection.open(AdminClient, {})

    @property
    def _timeout_s(self) -> float:
        return self._connection.timeout_s

    def _answer(self, future: "Future[Answer]", doing: str) -> Answer:
        """The answer, or our error for the library's. `doing` completes "cannot …"."""
        try:
            return future.result()
        except KafkaException as error:
            raise self._connection.explain(error, doing) from error

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        """Ask again while the group's coordinator is starting or changing."""
        deadline = self._clock.monotonic() + self._timeout_s
        while True:
            try:
                return ask()
            except CoordinatorMoves:
                if self._clock.monotonic() > deadline:
                    raise
                self._clock.sleep(_LOOK_AGAIN_S)

    def _wait_until(self, condition: Callable[[], bool], complaint: str) -> None:
        deadline = self._clock.monotonic() + self._timeout_s
        while not condition():
            if self._clock.monotonic() > deadline:
                raise ProviderUnavailable(
                    f"{complaint} at Kafka on {self._connection.bootstrap_servers} after {self._timeout_s:g} s; "
                    "look at the brokers' state"
                )
            self._clock.sleep(_LOOK_AGAIN_S)


def failed_with(code: int, future: "Future[Answer]") -> bool:
    """Whether this is how it ended; waits for the end."""
    error = future.exception()
    return isinstance(error, KafkaException) and bool(error.args[0].code() == code)
