"""Who sent a webhook, when, and that nobody changed it: signed as https://www.standardwebhooks.com says, so that its
libraries can verify it. `docs/howto/write-a-handler.md` shows how to verify without one."""

import base64
import binascii
import hashlib
import hmac
from typing import Final

from queuecore.errors import ConfigurationError

MESSAGE_ID: Final = "webhook-id"
SENT_AT: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"

SHORTEST_SECRET: Final = 16

_ENCODED: Final = "whsec_"


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
