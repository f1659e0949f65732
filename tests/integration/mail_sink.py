"""A mail server on loopback that takes what it is sent, or answers as it is told."""

import socketserver
import threading
from collections import deque
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from types import TracebackType


@dataclass(frozen=True)
class Mail:
    recipients: list[str]
    message: Message

    @property
    def text(self) -> str:
        payload = self.message.get_payload(decode=True)
        assert isinstance(payload, bytes)
        return payload.decode()


@dataclass
class MailSink:
    """Runs on entering. `refusals` are its next answers to a whole message; then it takes them."""

    refusals: deque[bytes] = field(default_factory=deque)
    mails: list[Mail] = field(default_factory=list)

    def __enter__(self) -> "MailSink":
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler())
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

    def _handler(self) -> type[socketserver.BaseRequestHandler]:
        sink = self

        class Session(socketserver.StreamRequestHandler):
            timeout = 5

            def handle(self) -> None:
                self._say(b"220 sink")
                recipients: list[str] = []
                while line := self.rfile.readline():
                    verb = line[:4].upper()
                    if verb == b"RCPT":
                        recipients.append(line.decode().split("<")[1].split(">")[0])
                    if verb == b"DATA":
                        self._take(recipients)
                        recipients = []
                        continue
                    self._say(b"221 bye" if verb == b"QUIT" else b"250 ok")
                    if verb == b"QUIT":
                        return

            def _take(self, recipients: list[str]) -> None:
                self._say(b"354 go on")
                lines = []
                while (line := self.rfile.readline()) not in (b".\r\n", b""):
                    lines.append(line)
                if sink.refusals:
                    self._say(sink.refusals.popleft())
                    return
                sink.mails.append(Mail(recipients, message_from_bytes(b"".join(lines))))
                self._say(b"250 taken")

            def _say(self, line: bytes) -> None:
                self.wfile.write(line + b"\r\n")

        return Session
