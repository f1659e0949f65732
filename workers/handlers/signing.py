"""Who sent a webhook, when, and that nobody changed it: signed as https://www.standardwebhooks.com says, so that its
libraries can verify it. `docs/howto/write-a-handler.md` shows how to verify without one."""

import base64
import binascii
import hashlib
import hmac
from typing import Final
from uuid import UUID, uuid5

from queuecore.errors import ConfigurationError
from queuecore.messages import Record

MESSAGE_ID: Final = "webhook-id"
SENT_AT: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"

SHORTEST_SECRET: Final = 16

_ENCODED: Final = "whsec_"
_MESSAGES: Final = UUID("0b8a0dd3-21f2-4a3c-8d5c-6f2f3a8f53d0")


def message_id(record: Record) -> str:
    """The same each time the message is delivered, and no other message's."""
    place = f"{record.topic}[{record.partition}]@{record.offset}/{record.timestamp_ms}"
    return f"msg_{uuid5(_MESSAGES, place).hex}"


def read_secret(secret: str) -> bytes:
    """The key: base64 behind `whsec_`, or the text as it is. ConfigurationError where it protects nothing."""
    try:
        encoded = secret.startswith(_ENCODED)
        key = base64.b64decode(secret.removeprefix(_ENCODED), validate=True) if encoded else secret.encode()
    except (binascii.Error, ValueError):
        raise ConfigurationError(f"what follows {_ENCODED} in the secret is not base64; encode it so") from None
    if len(key) < SHORTEST_SECRET:
        raise ConfigurationError(f"the secret has {len(key)} bytes; use {SHORTEST_SECRET} random ones or more")
    return key


def sign(key: bytes, identity: str, sent_at_s: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    signed = hmac.new(key, f"{identity}.{sent_at_s}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed.digest()).decode()}"
