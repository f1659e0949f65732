"""Fields for lengths of time and sizes, as people write them: `7 d`, `250 ms`, `50 MiB`. A bare number is of the unit
that the REST interface has."""

import re
from decimal import Decimal
from typing import Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError

_WRITTEN: Final = re.compile(r"(-?[0-9][0-9 ,_]*(?:\.[0-9]+)?) *([A-Za-z]*)")
_MOST_CHARACTERS: Final = 40


class MeasuredField(forms.CharField):
    """`units` from the smallest on, each with how much it is of the first. `unlimited` is what stands for -1, where
    that has a meaning."""

    units: ClassVar[dict[str, int]]
    example: ClassVar[str]

    def __init__(self, unlimited: str = "", **options: Any) -> None:
        self._unlimited = unlimited
        attributes = {"autocomplete": "off", "spellcheck": "false"}
        super().__init__(widget=forms.TextInput(attrs=attributes), max_length=_MOST_CHARACTERS, **options)

    def prepare_value(self, value: Any) -> Any:
        """In the largest unit that is exact."""
        if not isinstance(value, int):
            return value
        if value == -1 and self._unlimited:
            return self._unlimited
        unit = next(unit for unit in reversed(self.units) if value % self.units[unit] == 0)
        return f"{value // self.units[unit]} {unit if value else next(iter(self.units))}"

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
    units = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
    example = "90 s"


class BytesField(MeasuredField):
    units = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
    example = "50 MiB"
