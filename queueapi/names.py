"""Names that nobody knows, and what was probably meant."""

import difflib
from collections.abc import Iterable
from typing import Final

# More of them say nothing to anybody.
_MOST_LISTED: Final = 100


def unknown_name(kind: str, name: object, known: Iterable[str]) -> str:
    """Says so, and what to write instead."""
    names = sorted(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    return f"there is no {kind} {str(name)[:100]!r}; {f'did you mean {close[0]}?' if close else _there_are(names)}"


def _there_are(names: list[str]) -> str:
    if len(names) > _MOST_LISTED:
        return f"there are {len(names):,} others"
    return f"there are: {', '.join(names)}" if names else "there are none here"
