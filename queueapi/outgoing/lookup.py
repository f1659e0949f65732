"""The addresses of a name, within a deadline: asking the system takes as long as its resolver likes."""

import socket
import threading
import time
from concurrent.futures import Future
from typing import Final, NamedTuple

# Each question is a thread until the resolver answers it: so many, and no more.
SIDE_BY_SIDE: Final = 32


class Address(NamedTuple):
    """What a socket needs to connect."""

    family: int
    kind: int
    protocol: int
    place: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]

    @property
    def ip(self) -> str:
        return str(self.place[0])


class LookUps:
    """Names being looked up. Whoever asks for one that somebody has asked for already waits for the same answer, so
    that a name whose server is silent does not keep others from theirs. Safe from any thread."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], Future[list[Address]]] = {}
        self._answered = threading.Condition()

    def addresses(self, host: str, port: int, deadline: float) -> list[Address]:
        """At least one. `gaierror` where there is none, or none was known before the deadline, in seconds of the
        monotonic clock."""
        try:
            return self._ask(host, port, deadline).result(_left_s(deadline))
        except TimeoutError:
            raise socket.gaierror(
                socket.EAI_AGAIN, f"the name {host} could not be looked up in time; see whether its server answers"
            ) from None

    def _ask(self, host: str, port: int, deadline: float) -> "Future[list[Address]]":
        """TimeoutError where too many others are asked for."""
        asked = self._asked
        with self._answered:
            if not self._answered.wait_for(
                lambda: (host, port) in asked or len(asked) < SIDE_BY_SIDE, _left_s(deadline)
            ):
                raise TimeoutError
            if (host, port) not in asked:
                answer: Future[list[Address]] = Future()
                # A daemon: the process may end while a resolver is silent.
                threading.Thread(
                    target=self._answer, args=(host, port, answer), name=f"look-up-{host}", daemon=True
                ).start()
                asked[host, port] = answer
            return asked[host, port]

    def _answer(self, host: str, port: int, answer: "Future[list[Address]]") -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except BaseException as error:
            answer.set_exception(error)
        else:
            answer.set_result([Address(family, kind, protocol, place) for family, kind, protocol, _, place in found])
        with self._answered:
            del self._asked[host, port]
            self._answered.notify_all()


def _left_s(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
