"""The admin's questions, with answers in our words."""

from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaError
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as PythonClientError
from kafka.errors import KafkaTimeoutError, UnknownBrokerIdError, for_code

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProviderUnavailable, QueueError
from queuecore.providers.kafka.codes import CoordinatorMoves
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.python_client import Clients, told

_LOOK_AGAIN_S = 0.05

Answer = TypeVar("Answer")


class Asking:
    """What the parts of the admin share. Safe from any thread.

    ProviderUnavailable when the brokers do not answer in the connection's time.
    """

    def __init__(self, connection: Connection, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = connection
        self._clock = clock
        self._clients = Clients(connection)

    def close(self) -> None:
        """Disconnect. Who asks later is answered all the same."""
        self._clients.close()

    @property
    def _timeout_s(self) -> float:
        return self._connection.timeout_s

    def _ask(self, question: Callable[[KafkaAdminClient], Answer], doing: str) -> Answer:
        """The answer, or our error for the library's. `doing` completes "cannot …".

        Asked again while a broker is starting, a partition is getting a leader, a group another coordinator or the
        cluster another controller. What was not answered may have been done, so a question must bear being repeated.
        """
        deadline = self._clock.monotonic() + self._timeout_s
        first_problem: QueueError | None = None
        while True:
            problem: QueueError
            try:
                with self._clients.borrowed(deadline - self._clock.monotonic()) as client:
                    return question(client)
            except CoordinatorMoves as error:
                problem = error
            except PythonClientError as error:
                if isinstance(error, KafkaTimeoutError):
                    self._connection.outage.find_reason()
                problem = self._connection.explain(told(error), doing)
                if not (problem.retryable and (error.retriable or isinstance(error, UnknownBrokerIdError))):
                    raise problem from error
            # The last one may only say that the time left was too short to connect.
            first_problem = first_problem or problem
            if self._clock.monotonic() > deadline:
                raise first_problem
            self._clock.sleep(_LOOK_AGAIN_S)

    def _refused(self, code: int, reason: str | None, doing: str) -> QueueError | PythonClientError:
        """What a broker answered about one of many; the library's error where it is to be asked again."""
        problem = self._connection.explain(KafkaError(code, reason) if reason else KafkaError(code), doing)
        error: PythonClientError = for_code(code)()
        return error if problem.retryable and error.retriable else problem

    def _wait_until(self, condition: Callable[[], bool], complaint: str) -> None:
        deadline = self._clock.monotonic() + self._timeout_s
        while not condition():
            if self._clock.monotonic() > deadline:
                raise ProviderUnavailable(
                    f"{complaint} at Kafka on {self._connection.bootstrap_servers} after {self._timeout_s:g} s; "
                    "look at the brokers' state"
                )
            self._clock.sleep(_LOOK_AGAIN_S)
