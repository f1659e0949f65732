"""What API tokens look like: `swy_<eight digits>_<secret>`. They have the randomness of 256 bits, so that their hash
needs no salt and no slowness."""

import hashlib
import hmac
import re
import secrets
from typing import Final, NamedTuple

_SHAPE: Final = re.compile(r"(?P<prefix>swy_[0-9a-f]{8})_[A-Za-z0-9_-]{43}")


class NewSecret(NamedTuple):
    """`text` is for whoever asked for it, and is not kept."""

    text: str
    prefix: str
    digest: str


def new_secret() -> NewSecret:
    prefix = f"swy_{secrets.token_hex(4)}"
    text = f"{prefix}_{secrets.token_urlsafe(32)}"
    return NewSecret(text, prefix, digest_of(text))


def prefix_of(text: str) -> str | None:
    """None for what was never a token of ours."""
    shape = _SHAPE.fullmatch(text)
    return None if shape is None else shape["prefix"]


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def is_same(digest: str, other: str) -> bool:
    """In a time that tells nothing about how much of them is the same."""
    return hmac.compare_digest(digest, other)
