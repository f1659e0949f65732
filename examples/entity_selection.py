"""Which entities a query wants, and in which order: what `entity_queries.py` answers with."""

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MAX_SIZE = 1_000

Entity = dict[str, object]


class InvalidQuery(ValueError):
    """It asks for what there cannot be; the message says what to ask instead."""


@dataclass(frozen=True, slots=True)
class Query:
    """Entities of a type whose attributes compare as said, sorted by an attribute, a page of them.

    where  (attribute, one of `COMPARISONS`, value); what has no such attribute is left out, and so is what has a text
           there where the value is a number, or the other way round
    sort   an attribute; those without it come last, and equals by their ids, whatever the direction
    page   from 0 on
    """

    type: str
    where: Sequence[tuple[str, str, object]] = ()
    sort: str = "id"
    descending: bool = False
    page: int = 0
    size: int = 10

    @classmethod
    def read(cls, data: bytes) -> Self:
        """InvalidQuery for what is none."""
        try:
            query = cls(**json.loads(data))
            signs = [sign for _, sign, _ in query.where]
            is_page = query.page >= 0 and 0 < query.size <= MAX_SIZE
        except (TypeError, ValueError) as error:
            raise InvalidQuery(f"this is no query: {error}") from None
        if unknown := [sign for sign in signs if sign not in COMPARISONS]:
            raise InvalidQuery(f"there is no comparison {unknown[0]!r}; use {' '.join(COMPARISONS)}")
        if not is_page:
            raise InvalidQuery(f"page {query.page} of {query.size} cannot be; use 0 or more, of 1 to {MAX_SIZE}")
        return query

    def select(self, entities: Iterable[Entity]) -> dict[str, object]:
        """The page, and how many there are on all of them."""
        found = sorted((one for one in entities if self._matches(one)), key=lambda one: str(one["id"]))
        having = [one for one in found if one.get(self.sort) is not None]
        having.sort(key=lambda one: _rank(one[self.sort]), reverse=self.descending)
        found = having + [one for one in found if one.get(self.sort) is None]
        first = self.page * self.size
        return {"total": len(found), "entities": found[first : first + self.size]}

    def _matches(self, entity: Entity) -> bool:
        return entity["type"] == self.type and all(
            _is_so(entity.get(attribute), sign, value) for attribute, sign, value in self.where
        )


def _rank(value: object) -> tuple[bool, Any]:
    """Numbers come before texts, which all else is taken for."""
    return (False, value) if isinstance(value, int | float) else (True, str(value))


def _is_so(value: object, sign: str, wanted: object) -> bool:
    (is_text, mine), (is_wanted_text, theirs) = _rank(value), _rank(wanted)
    return value is not None and is_text == is_wanted_text and COMPARISONS[sign](mine, theirs)
