"""Values of JSON that a person wrote: each is read with where it stands, for an error that can be acted on."""

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn
from uuid import UUID

# Of a value that is wrong, in an error.
_SHOWN: Final = 60

Fields = dict[str, Any]


class InvalidInput(Exception):
    """Says what is wrong, and where."""


def parse(text: str) -> object:
    """InvalidInput for what is no JSON, or has a key twice."""
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"the input is no JSON: {error}") from None
    except RecursionError:
        raise InvalidInput("the input is nested too deeply") from None
    except ValueError:  # Python makes no number of thousands of digits.
        raise InvalidInput("the input holds a number of too many digits") from None


def read_object(value: object, where: str, keys: Sequence[str] | None = None, wanted: str = "an object") -> Fields:
    """With these keys alone, where any are named."""
    if not isinstance(value, dict):
        raise _wrong(value, where, wanted)
    for key in value:
        if keys is not None and key not in keys:
            close = difflib.get_close_matches(key, keys, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(keys)}"
            raise InvalidInput(f"{where} has an unknown key {shown(key)}; {hint}")
    return value


def read_list(value: object, where: str) -> list[tuple[object, str]]:
    """Each item with where it stands."""
    if not isinstance(value, list):
        raise _wrong(value, where, "a list")
    return [(item, f"{where}[{at}]") for at, item in enumerate(value)]


def read_text(value: object, where: str, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or may_be_empty):
        raise _wrong(value, where, "a text" if may_be_empty else "a text that is not empty")
    return value


def read_texts(value: object, where: str) -> list[str]:
    return [read_text(*item) for item in read_list(value, where)]


def read_whole_number(value: object, where: str) -> int:
    """0 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _wrong(value, where, "a whole number of 0 or more")
    return value


def read_weight(value: object, where: str) -> float:
    """Any number; whoever has the weight says how much it may be."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(value, where, "a number")
    try:
        return float(value)
    except OverflowError:
        raise _wrong(value, where, "a number that is less large") from None


def read_uuid(value: object, where: str) -> UUID:
    try:
        return UUID(read_text(value, where))
    except ValueError:
        raise _wrong(value, where, "a UUID") from None


def check_unique(where: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidInput(f"{where}: {shown(name)} is there {count} times; once is enough")


def shown(value: object) -> str:
    text = json.dumps(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _wrong(value: object, where: str, wanted: str) -> InvalidInput:
    return InvalidInput(f"{where} is {shown(value)}; give {wanted}")


def _unique_keys(pairs: list[tuple[str, Any]]) -> Fields:
    check_unique("the keys of an object", (key for key, _ in pairs))
    return dict(pairs)


def _refuse_constant(text: str) -> NoReturn:
    raise InvalidInput(f"the input is no JSON: {text} is no number")
