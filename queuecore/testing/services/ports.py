"""Loopback ports: finding a free one, keeping it over restarts, asking who answers."""

import secrets
import socket
from collections.abc import Collection
from pathlib import Path

LOOPBACK = "127.0.0.1"

# Below the range from which Linux and macOS take the local ports of outgoing connections: a port found
# free here stays free until a server asks for it, however long a JVM takes to start.
FIRST_PORT, LAST_PORT = 20_000, 32_000
ATTEMPTS = 200


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        # As servers do: connections of an earlier server in TIME_WAIT do not count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a loopback port that is free now; raises `OSError` when none of many tries is."""
    for _ in range(ATTEMPTS):
        port = FIRST_PORT + secrets.randbelow(LAST_PORT - FIRST_PORT)
        if is_free(port):
            return port
    raise OSError(f"no free port found on {LOOPBACK} between {FIRST_PORT} and {LAST_PORT}; stop some servers")


def remembered_port(path: Path, *, other_than: Collection[int] = ()) -> int:
    """Return the port noted in `path` if it is free, else a new one, noted there; none of `other_than`.

    A service restarted on its data directory keeps its address, and with it everyone's settings.
    """
    try:
        port = int(path.read_text())
    except (FileNotFoundError, ValueError):
        port = 0
    while port in other_than or not (FIRST_PORT <= port < LAST_PORT and is_free(port)):
        port = free_port()
    path.write_text(f"{port}\n")
    return port


def exchange(port: int, request: bytes, *, reply_bytes: int, timeout_s: float = 2.0) -> bytes:
    """Send `request` to a loopback port and return up to `reply_bytes` of the answer.

    Returns what came before the peer closed the connection; raises `OSError` when nobody listens or
    the answer does not come in time.
    """
    with socket.create_connection((LOOPBACK, port), timeout=timeout_s) as connection:
        connection.sendall(request)
        reply = b""
        while len(reply) < reply_bytes and (part := connection.recv(reply_bytes - len(reply))):
            reply += part
    return reply
