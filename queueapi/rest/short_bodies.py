"""Messages as most senders write them, decoded and checked in one pass.

What is anything else is None here, whatever is wrong with it: the long way finds that out, and says it.
"""

from base64 import b64decode
from collections.abc import Sequence
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from queueapi.actions.message_batches import MAX_BATCH, OutgoingMessage


class _Message(Struct, forbid_unknown_fields=True, gc=False):
    entity: UUID
    # Text, as most of a batch name the same one: each tenant's id is made once.
    tenant: str | UnsetType = UNSET
    # As it stands there: it is stored so.
    payload: Raw | UnsetType = UNSET
    payload_base64: str | UnsetType = UNSET


class _Batch(Struct, forbid_unknown_fields=True):
    messages: Annotated[list[_Message], Meta(min_length=1, max_length=MAX_BATCH)]


_ONE: Final = msgspec.json.Decoder(_Message)
_MANY: Final = msgspec.json.Decoder(_Batch)


def read_one(body: bytes, max_depth: int, own: UUID | None) -> list[OutgoingMessage] | None:
    """The one message of a body; of the sender's own tenant, where there is one and none is named."""
    # The object around it is a level of its own.
    return _read(_ONE, body, max_depth - 1, own)


def read_many(body: bytes, max_depth: int, own: UUID | None) -> list[OutgoingMessage] | None:
    """The messages of a batch, likewise."""
    return _read(_MANY, body, max_depth - 3, own)


def _read(
    decoder: "msgspec.json.Decoder[_Message] | msgspec.json.Decoder[_Batch]",
    body: bytes,
    max_depth: int,
    own: UUID | None,
) -> list[OutgoingMessage] | None:
    try:
        # What is passed over is not looked at: neither its characters nor, below, how deep it is.
        body.decode()
        given = decoder.decode(body)
        messages: Sequence[_Message] = given.messages if isinstance(given, _Batch) else [given]
        tenants = {named: _tenant(named, own) for named in {one.tenant for one in messages}}
        return [OutgoingMessage(tenants[one.tenant], one.entity, _data(one, max_depth)) for one in messages]
    except (ValueError, RecursionError):
        return None


def _tenant(named: str | UnsetType, own: UUID | None) -> UUID:
    """ValueError for what is none."""
    if isinstance(named, str):
        return UUID(named)
    if own is None:
        raise ValueError("whose message it is has to be said")
    return own


def _data(message: _Message, max_depth: int) -> bytes:
    """ValueError where it cannot be known here."""
    payload, encoded = message.payload, message.payload_base64
    if isinstance(payload, Raw) and encoded is UNSET:
        data = bytes(payload)
        # As deep as it has brackets, at the most: those in texts count as well.
        if data.count(b"{") + data.count(b"[") > max_depth:
            raise ValueError("this may be nested too deeply")
        return data
    if payload is UNSET and isinstance(encoded, str):
        return b64decode(encoded, validate=True)
    raise ValueError("either a payload or a payload in base64 is given")
