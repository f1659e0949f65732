"""A way to a server that can be cut."""

import select
import socket
import threading
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit, urlunsplit

_LOOK_EVERY_S: Final = 0.05
_CHUNK: Final = 65_536


class Proxy:
    """Runs inside the block. One thread for all connections: what goes through is little."""

    def __init__(self, url: str) -> None:
        """Of the server, as clients have it."""
        server = urlsplit(url)
        self._server = (server.hostname or "", server.port or 0)
        self._listening = socket.create_server(("127.0.0.1", 0))
        account = server.netloc.rpartition("@")[0]
        self.url = urlunsplit(server._replace(netloc=f"{account}@127.0.0.1:{self._listening.getsockname()[1]}"))
        self._ways: dict[socket.socket, socket.socket] = {}
        self._is_silent = self._is_refusing = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def cut(self, *, silently: bool) -> None:
        """Silently: nothing comes through, and nobody is told. Else connections end, and new ones do at once."""
        self._is_silent, self._is_refusing = silently, not silently

    def mend(self) -> None:
        """What was sent meanwhile over connections that are still there comes through now."""
        self._is_silent = self._is_refusing = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        with ExitStack() as closing:
            for one in (self._listening, *self._ways):
                closing.callback(one.close)

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._is_silent:
                self._stopping.wait(_LOOK_EVERY_S)
                continue
            if self._is_refusing:
                self._end(list(self._ways))
            ready, _, _ = select.select([self._listening, *self._ways], [], [], _LOOK_EVERY_S)
            for one in ready:
                if one is self._listening:
                    self._accept()
                elif one in self._ways:
                    self._forward(one)

    def _accept(self) -> None:
        client, _ = self._listening.accept()
        if self._is_refusing:
            client.close()
            return
        try:
            server = socket.create_connection(self._server)
        except OSError:
            client.close()
            return
        self._ways |= {client: server, server: client}

    def _forward(self, one: socket.socket) -> None:
        try:
            data = one.recv(_CHUNK)
            self._ways[one].sendall(data)
        except OSError:
            data = b""
        if not data:
            self._end([one])

    def _end(self, those: list[socket.socket]) -> None:
        for one in those:
            if (other := self._ways.pop(one, None)) is not None:
                self._ways.pop(other, None)
                for end in (one, other):
                    with suppress(OSError):
                        end.close()
