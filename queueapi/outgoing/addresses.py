"""Which addresses requests may reach: those of the open network, unless whoever configured them says otherwise.

What counts is the address that is connected to. A name is resolved once and the connection goes to what was checked, so
a name that means something else a moment later reaches nothing.
"""

import ipaddress
import socket
import time
from typing import Final

from queueapi.outgoing.lookup import LookUps
from queuecore.errors import GivenUp

_IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# In a public range, but answered by the machine's own cloud: Azure's. Oracle's is in one that is closed.
_METADATA: Final = frozenset({ipaddress.ip_address("168.63.129.16")})
# Some of them global as Python sees them, but none of the open network: site-local addresses of old, relays that nobody
# runs any more, and what is set aside for protocols.
_CLOSED: Final = tuple(map(ipaddress.ip_network, ("fec0::/10", "192.88.99.0/24", "192.0.0.0/24")))
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")

_look_ups = LookUps()


class AddressRefused(GivenUp):
    """A request would reach an address that is not allowed."""

    code = "address_refused"


def is_open(address: str) -> bool:
    """Whether it is an ordinary address of the open network: not private, loopback, link-local, multicast or reserved,
    nor where clouds tell a machine its secrets."""
    meant = _meant(ipaddress.ip_address(address.partition("%")[0]))
    is_ordinary = meant.is_global and not meant.is_multicast and not meant.is_reserved
    return is_ordinary and meant not in _METADATA and not any(meant in network for network in _CLOSED)


def _meant(address: _IPAddress) -> _IPAddress:
    """The address itself, or the IPv4 address that a gateway would make of it."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour or address.ipv4_mapped or address


def literal_address(host: str) -> str | None:
    """The host itself where it is an address, not a name."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None


def is_name(host: str) -> bool:
    """Whether it could be looked up at all."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def connect(host: str, port: int, *, allow_private: bool, deadline: float) -> socket.socket:
    """A connection to one of the host's addresses, the first that answers before the deadline, in seconds of the
    monotonic clock, which bounds the look-up of its name as well. AddressRefused where it has only addresses that are
    not allowed, or could have none; OSError where none answers."""
    if not is_name(host):
        raise AddressRefused(f"{host!r} is no name that could be looked up; mend the url")
    found = _look_ups.addresses(host, port, deadline)
    allowed = [one for one in found if allow_private or is_open(one.ip)]
    if not allowed:
        raise AddressRefused(
            f"{host} is at {found[0].ip}, which is not on the open network; "
            "use another host, or allow this one with the option 'allow_private'"
        )
    failure: OSError = TimeoutError(f"no time was left to connect to {host}")
    for family, kind, protocol, place in allowed:
        if (left_s := deadline - time.monotonic()) <= 0:
            break
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(left_s)
            connection.connect(place)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure
