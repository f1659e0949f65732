"""Fields for lengths of time and sizes, as people write them: `7 d`, `250 ms`, `50 MiB`. A bare number is of the unit
that the REST interface has."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError

_WRITTEN: Final = re.compile(r"(-?[0-9][0-9 ,_]*(?:\.[0-9]+)?) *([A-Za-z]*)")
_MOST_CHARACTERS: Final = 40


# From the smallest on, each with how much it is of the first.
MILLISECONDS: Final[Mapping[str, int]] = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
BYTES: Final[Mapping[str, int]] = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}


def exactly(value: int, units: Mapping[str, int]) -> str:
    """In the largest of these units in which it is whole: what was set is told as it is, and not about so."""
    whole = [unit for unit, size in units.items() if value % size == 0] if value else [next(iter(units))]
    return f"{value // units[whole[-1]]:,} {whole[-1]}"


class MeasuredField(forms.CharField):
    """`unlimited` is what stands for -1, where that has a meaning."""

    units: ClassVar[Mapping[str, int]]
    example: ClassVar[str]

    def __init__(self, unlimited: str = "", **options: Any) -> None:
        self._unlimited = unlimited
        attributes = {"autocomplete": "off", "spellcheck": "false"}
        super().__init__(widget=forms.TextInput(attrs=attributes), max_length=_MOST_CHARACTERS, **options)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, int):
            return value
        if value == -1 and self._unlimited:
            return self._unlimited
        return exactly(value, self.units)

    def clean(self, value: Any) -> int | None:
        text = super().clean(value)
        if not text:
            return None
        if self._unlimited and text.lower() in (self._unlimited, "-1"):
            return -1
        found = _WRITTEN.fullmatch(text)
        units = {unit.lower(): size for unit, size in self.units.items()}
        size = units.get(found[2].lower() or next(iter(units))) if found else None
        exact = Decimal(re.sub("[ ,_]", "", found[1])) * size if found and size else None
        if exact is None or exact != int(exact):
            raise ValidationError(self._refusal(text))
        return int(exact)

    def _refusal(self, text: str) -> str:
        otherwise = f', or "{self._unlimited}"' if self._unlimited else ""
        return f'"{text}" cannot be read; write it as "{self.example}", in {", ".join(self.units)}{otherwise}'


class MillisecondsField(MeasuredField):
    units = MILLISECONDS
    example = "90 s"


class BytesField(MeasuredField):
    units = BYTES
    example = "50 MiB"
