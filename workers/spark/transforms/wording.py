"""Numbers in the sentences that explain a status."""

from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def number(value: int) -> str:
    """12400 is `12,400`, as pages write it."""
    return f"{value:,}"


def duration(seconds: float) -> str:
    """In the largest unit that it has two of: `90 s`, `4 min`, `36 h`. Rounded down: what is said has passed."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{number(int(seconds // size))} {unit}"
    return f"{int(seconds)} s"


def per_second(rate: float) -> str:
    """`210/s`; slow ones by the minute or hour, so that they are 0 only where nothing goes."""
    if rate <= 0:
        return "0/s"
    for factor, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if rate * factor >= 1:
            return f"{number(round(rate * factor))}/{unit}"
    return "less than 1/h"
