"""One HTTP connection: to an allowed address, over verified TLS, with one deadline for each exchange."""

import http.client
import io
import math
import select
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from queueapi.outgoing.addresses import connect

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HTTPS_PORT: Final = 443
HTTP_PORT: Final = 80
# Of what a server may say at any length.
_MAX_WORDS: Final = 100
# The other side has hung up, as it may while a connection waits for its next use.
_HUNG_UP: Final = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class Answer(NamedTuple):
    """What the server said; no more of the body than was asked for."""

    status: int
    reason: str
    retry_after: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go. `path` includes the query."""

    host: str
    port: int
    path: str
    tls: bool
    allow_private: bool
    connect_timeout_s: float

    def __str__(self) -> str:
        """Without the path: those of webhooks often are secrets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


class Connection(http.client.HTTPConnection):
    """Kept open between exchanges as long as the server does. For one thread."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.host, target.port)
        self.default_port = HTTPS_PORT if target.tls else HTTP_PORT
        self._target = target
        self._tls = ssl.create_default_context() if target.tls else None
        self._timed: _TimedSocket | None = None
        self._deadline = math.inf

    def __del__(self) -> None:
        self.close()

    def connect(self) -> None:
        target = self._target
        deadline = min(self._deadline, time.monotonic() + target.connect_timeout_s)
        plain = connect(target.host, target.port, allow_private=target.allow_private, deadline=deadline)
        try:
            plain.settimeout(max(0.001, deadline - time.monotonic()))
            chosen = self._tls.wrap_socket(plain, server_hostname=target.host) if self._tls else plain
        except BaseException:
            plain.close()
            raise
        self._timed = _TimedSocket(chosen, self._deadline)
        self.sock = cast(socket.socket, self._timed)

    def close(self) -> None:
        super().close()
        self._timed = None

    def exchange(
        self, method: str, body: bytes, headers: Mapping[str, str], *, deadline: float, max_bytes: int
    ) -> Answer:
        """One request and its answer, before the deadline in seconds of the monotonic clock. Redirects are answers like
        others. OSError or HTTPException where there is no answer, AddressRefused as `connect`."""
        self._deadline = deadline
        try:
            if self._timed is None or not self._timed.is_quiet():
                self.close()
                return self._ask(method, body, headers, max_bytes)
            self._timed.deadline = deadline
            try:
                return self._ask(method, body, headers, max_bytes)
            except _HUNG_UP:
                # It hung up as we began; the receiver knows a repetition by its id.
                self.close()
                return self._ask(method, body, headers, max_bytes)
        except BaseException:
            self.close()
            raise

    def _ask(self, method: str, body: bytes, headers: Mapping[str, str], max_bytes: int) -> Answer:
        self.request(method, self._target.path, body, headers)
        with self.getresponse() as response:
            said = response.read(max_bytes)
            retry_after = response.headers.get("Retry-After", "")
            answer = Answer(response.status, response.reason[:_MAX_WORDS], retry_after[:_MAX_WORDS], said)
            if not response.isclosed():
                # There is more, which nobody wants.
                self.close()
        return answer


class _TimedSocket:
    """What `http.client` needs of a socket, with one deadline for all its waiting: a server that sends a byte now and
    then gets no longer than one that sends nothing."""

    def __init__(self, inner: socket.socket, deadline: float) -> None:
        self._inner = inner
        self.deadline = deadline

    def is_quiet(self) -> bool:
        """Nothing has come since the last answer: neither the end of the connection nor what nobody asked for."""
        poll = select.poll()
        poll.register(self._inner, select.POLLIN)
        return not poll.poll(0)

    def sendall(self, data: bytes) -> None:
        self.limit()
        self._inner.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002
        return io.BufferedReader(_TimedReader(self, self._inner.makefile("rb", buffering=0)))

    def close(self) -> None:
        self._inner.close()

    def limit(self) -> None:
        """Let the next wait last until the deadline. TimeoutError where that is over."""
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the time for the answer is up")
        self._inner.settimeout(left_s)


class _TimedReader(io.RawIOBase):
    def __init__(self, timed: _TimedSocket, raw: io.RawIOBase) -> None:
        self._timed = timed
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int | None:
        self._timed.limit()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
