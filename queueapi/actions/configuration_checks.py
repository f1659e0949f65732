"""What entering a configuration document's entries has in common: what came of one, what it names, what it lacks, and
what never changes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.db.models import Model, QuerySet

from queueapi.configuration.sections import Section
from queueapi.errors import InvalidInput
from queueapi.names import unknown_name

Values = dict[str, Any]
Row = TypeVar("Row", bound=Model)

NEVER: Final = "{name} is {is_!r}, and never changes; {remedy}"


@dataclass(frozen=True, slots=True)
class Entered:
    """`before` is None where it was not there. `secret_in` names the key of which something changed that neither
    shows."""

    before: Values | None
    after: Values
    warnings: tuple[str, ...] = ()
    secret_in: str = ""


def named(key: str, thing: str, rows: QuerySet[Row], name: str) -> Row:
    """The one that an entry's key names, whatever its case. InvalidInput where there is none."""
    found = rows.filter(name__iexact=name).first()
    if found is None:
        names = rows.values_list("name", flat=True)
        raise InvalidInput(f"{key}: {unknown_name(thing, name, names)}")
    return found


def check_needed(section: Section, values: Mapping[str, Any]) -> None:
    if any(name not in values for name in section.needed):
        raise too_little(section, values)


def too_little(section: Section, values: Mapping[str, Any], **more: list[str]) -> InvalidInput:
    """Names all that a new thing lacks."""
    missing = {name: [f"a new {section.thing} needs this"] for name in section.needed if name not in values}
    return InvalidInput(f"this is not enough for a new {section.thing}", fields=missing | more)


def check_fixed(before: Values, wanted: Mapping[str, Any], remedy: str) -> None:
    """InvalidInput names all that differ."""
    if wrong := dict(_differing(before, wanted, remedy)):
        raise InvalidInput(f"{', '.join(wrong)} cannot change", fields=wrong)


def _differing(before: Values, wanted: Mapping[str, Any], remedy: str) -> Iterator[tuple[str, list[str]]]:
    for name, value in wanted.items():
        if before[name] != value:
            yield name, [NEVER.format(name="it", is_=before[name], remedy=remedy)]
