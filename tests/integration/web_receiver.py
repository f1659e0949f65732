"""A web server on loopback that answers as it is told, and remembers what it was sent."""

import ssl
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from queuecore.testing.services.certificates import Certificate

Behaviour = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    peer: tuple[str, int]


def answer(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return respond


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the test."""


@dataclass
class Receiver:
    """Runs on entering. `next` are its next answers; then it says `204 No Content`."""

    certificate: Certificate | None = None
    next: deque[Behaviour] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> "Receiver":
        self._server = _Server(("127.0.0.1", 0), self._handler())
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate.certificate, self.certificate.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http{'s' if self.certificate else ''}://{host}:{self.port}{path}"

    @property
    def connections(self) -> int:
        """How many were used."""
        return len({request.peer for request in self.requests})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # One that is kept open is let go of when nothing comes.
            timeout = 5

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.requests.append(Request(self.command, self.path, headers, body, self.client_address))
                respond = receiver.next.popleft() if receiver.next else answer(204)
                respond(self)

            do_PUT = do_PATCH = do_POST  # noqa: N815 - as the base class calls them

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Nobody reads it."""

        return Handler
