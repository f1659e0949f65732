"""What of many messages is whose."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from queuecore.metrics import MOST_TENANTS, OTHER
from queuecore.proto.events_pb2 import TenantShare

# A tenant's id is a UUID, but its header is anybody's bytes.
MOST_TENANT_BYTES: Final = 100


@dataclass(slots=True)
class Share:
    messages: int = 0
    bytes: int = 0
    errors: int = 0
    dead_letters: int = 0


class TenantShares:
    """By the header that names the tenant; of messages without one, by `owner`, whose partition it is. For one thread
    at a time."""

    __slots__ = ("_owner", "_shares")

    def __init__(self, owner: bytes = b"") -> None:
        self._owner = owner
        self._shares: dict[bytes, Share] = {}

    def __bool__(self) -> bool:
        return bool(self._shares)

    def __iter__(self) -> Iterator[Share]:
        return iter(self._shares.values())

    def of(self, tenant: bytes | None) -> Share:
        """That of those beyond the limit, where there are as many as may be."""
        name = self._owner if tenant is None else tenant[:MOST_TENANT_BYTES]
        if (share := self._shares.get(name)) is None:
            name = name if len(self._shares) < MOST_TENANTS else OTHER.encode()
            share = self._shares.setdefault(name, Share())
        return share

    def told(self) -> Iterator[TenantShare]:
        for name, share in self._shares.items():
            yield TenantShare(
                tenant_id=name.decode(errors="replace"),
                messages=share.messages,
                bytes=share.bytes,
                errors=share.errors,
                dead_letters=share.dead_letters,
            )
