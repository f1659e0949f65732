"""What failures have in common: those that likely have one cause have the same fingerprint.

It is made of the exception's class, the shape of its message, the function it comes from and the classes of what caused
it. Nothing of that depends on the process, the machine or the line, so it stays the same after a restart elsewhere.
"""

import hashlib
import re
import sys
import traceback
from collections.abc import Iterator
from typing import Final

MAX_SHAPED_CHARACTERS: Final = 2_000

_MAX_CAUSES: Final = 8
_OWN_CODE: Final = "queuecore"

# What differs between failures with one cause. What stands in quotes is a value; a word with a digit is a number, an
# id, a hash, an address or a part of a time. Each begins only where a word does, so that no long text takes long.
_VARYING: Final = re.compile(
    r"""
      (?<!\w) b? " (?: \\. | [^"\\] )*+ " (?!\w)
    | (?<!\w) b? ' (?: \\. | [^'\\] )*+ ' (?!\w)
    | (?<!\w) ` [^`]*+ ` (?!\w)
    | (?<![\w.+-]) [\w.+-]++ @ [\w-]+ (?: \. [\w-]+ )*+
    | \b [0-9a-f]{8} (?: - [0-9a-f]{4} ){3} - [0-9a-f]{12} \b
    | (?<![\w:]) [0-9a-f]{0,4} (?: : [0-9a-f]{0,4} ){2,7} (?![\w:])
    | \b [0-9a-f]{8,} \b
    | \b [^\W\d]*+ \d \w*+
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Several such parts with nothing but marks between them are one: a time, an address, a list of any length.
_SEVERAL: Final = re.compile(r"[+-]?\#(?:\s?[.,:;/_+%-]?\s?[+-]?\#)*%?")
_BLANK: Final = re.compile(r"\s+")


def fingerprint(exception_class: str, message: str, *more: str) -> str:
    """16 hexadecimal digits. `more` is what else tells failures apart, as `place_of` and `causes_of` say it."""
    parts = "\n".join((exception_class, shape_of(message), *more))
    return hashlib.sha256(parts.encode(errors="backslashreplace")).hexdigest()[:16]


def shape_of(message: str) -> str:
    """The message with `#` for what varies. Of a long one only the beginning counts."""
    marked = _VARYING.sub("#", message[:MAX_SHAPED_CHARACTERS])
    return _SEVERAL.sub("#", _BLANK.sub(" ", marked).strip())


def place_of(error: BaseException) -> str:
    """Module and name of the innermost function that is neither Python's nor ours; empty where there is none."""
    place = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        package = module.partition(".")[0]
        if package != _OWN_CODE and package not in sys.stdlib_module_names:
            place = f"{module}.{frame.f_code.co_qualname}"
    return place


def causes_of(error: BaseException) -> Iterator[str]:
    """The classes of what this was raised from, the nearest first."""
    for _ in range(_MAX_CAUSES):
        if error.__cause__ is None:
            return
        error = error.__cause__
        yield class_name(error)


def class_name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
