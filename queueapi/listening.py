"""Addresses to listen on, as settings have them."""

import re
from typing import Final

_ADDRESS: Final = re.compile(r"(?:\[(?P<inner>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/@\[\]]+)):(?P<port>[0-9]{1,5})")
_HIGHEST_PORT: Final = 65_535


def host_and_port(address: str) -> tuple[str, int]:
    """Of `127.0.0.1:9464`, `localhost:9464` or `[::1]:9464`. ValueError, which goes on from the address, for anything
    else."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise ValueError("is no address to listen on; use host:port, as 127.0.0.1:9464")
    port = int(found["port"])
    if not 1 <= port <= _HIGHEST_PORT:
        raise ValueError(f"has no port from 1 to {_HIGHEST_PORT}")
    return found["inner"] or found["name"], port


def with_port_after(address: str, number: int) -> str:
    """The same host, and a port so many after its own."""
    host, _, port = address.rpartition(":")
    return f"{host}:{min(int(port) + number, _HIGHEST_PORT)}"


def check_listen(raw: str) -> str:
    """The address, or nothing, as it was written. ValueError as `host_and_port`."""
    if address := raw.strip():
        host_and_port(address)
    return address
