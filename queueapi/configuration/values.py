"""What a key of a configuration document may hold. Ranges and choices are the actions' to judge."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import models


@dataclass(frozen=True, slots=True)
class Kind:
    """`words` say what is expected. What `may_be_secret` is not repeated when it is refused."""

    words: str
    fits: Callable[[Any], bool]
    is_optional: bool = False
    may_be_secret: bool = False

    def problem(self, value: object) -> str | None:
        """Why it cannot be this; None: it can."""
        if value is None and self.is_optional:
            return None
        if self.fits(value):
            return None
        shown = "this" if self.may_be_secret else repr(value)
        return f"{shown if len(shown) <= 60 else f'{shown[:60]}…'} cannot be; give {self.words}"


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        # A whole number with hundreds of digits.
        return False


def _is_id(value: object) -> bool:
    try:
        return isinstance(value, str) and str(UUID(value)) == value.lower()
    except ValueError:
        return False


def _is_text(value: object) -> bool:
    """One that every database can hold: without NUL, and without half of a surrogate pair."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _are_texts(values: object) -> bool:
    return isinstance(values, list) and all(map(_is_text, values))


TEXT: Final = Kind("text", _is_text)
TEXT_OR_NULL: Final = Kind("text, or null", _is_text, is_optional=True)
YES_OR_NO: Final = Kind("true or false", lambda value: isinstance(value, bool))
ID: Final = Kind("a UUID, or leave it out", _is_id)
LIST_OF_TEXTS: Final = Kind("a list of texts", _are_texts)
FILES: Final = Kind(
    "the text of each file under its name",
    lambda value: isinstance(value, dict) and _are_texts([*value, *value.values()]),
)

_OF_FIELDS: Final[tuple[tuple[type, Kind], ...]] = (
    (models.BooleanField, YES_OR_NO),
    (
        models.IntegerField,
        Kind("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    ),
    (models.FloatField, Kind("a number", _is_number)),
    (models.CharField, TEXT),
)
_JSON: Final[dict[type, Kind]] = {
    dict: Kind("an object, {} for nothing", lambda value: isinstance(value, dict), may_be_secret=True),
    list: Kind("a list, [] for nothing", lambda value: isinstance(value, list)),
}


def kind_of_field(model: type[models.Model], name: str) -> Kind:
    field = model._meta.get_field(name)  # noqa: SLF001 - Django's documented way to ask a model
    if isinstance(field, models.JSONField):
        return _JSON[type(field.get_default())]
    kind = next(kind for type_, kind in _OF_FIELDS if isinstance(field, type_))
    return Kind(f"{kind.words}, or null", kind.fits, is_optional=True) if field.null else kind
