"""Times as somebody writes them."""

from datetime import datetime
from typing import Final

from django.utils.dateparse import parse_datetime

# At either end of the calendar a time is none in some other zone.
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 9998


def read_time(text: str) -> datetime | None:
    """Without its zone where none is written. None for what is no time, or none in every zone."""
    try:
        time = parse_datetime(text)
    except ValueError:
        return None
    return time if time is not None and is_one_everywhere(time) else None


def is_one_everywhere(time: datetime) -> bool:
    """Whether it can be told in every zone, as databases and clocks have it."""
    return _FIRST_YEAR <= time.year <= _LAST_YEAR


def read_aware_time(text: str) -> datetime | None:
    """The same of a time with its zone."""
    time = read_time(text)
    return time if time is not None and time.tzinfo else None
