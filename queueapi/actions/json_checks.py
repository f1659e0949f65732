"""What any database can hold of JSON that somebody sent."""

import math
from typing import Final

from queueapi.errors import InvalidInput

# Deeper than anything that is configured so, and far from what Python cannot follow.
DEEPEST: Final = 20


def check_json(field: str, value: object) -> None:
    """InvalidInput for what PostgreSQL would refuse, or nobody could read again."""
    waiting = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > DEEPEST:
            raise InvalidInput(f"{field}: it is nested more than {DEEPEST} deep; flatten it")
        if isinstance(one, str):
            _check_text(field, one)
        elif isinstance(one, float) and not math.isfinite(one):
            raise InvalidInput(f"{field}: {one} is no number that JSON has; give another")
        elif isinstance(one, dict):
            waiting += [(part, depth + 1) for pair in one.items() for part in pair]
        elif isinstance(one, list | tuple):
            waiting += [(part, depth + 1) for part in one]


def _check_text(field: str, text: str) -> None:
    """Without repeating it: it may be a secret."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{field}: a text has half of a surrogate pair; give whole characters") from None
    if "\0" in text:
        raise InvalidInput(f"{field}: a text has the character NUL, which cannot be stored; leave it out")
