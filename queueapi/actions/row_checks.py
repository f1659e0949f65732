"""Whether a row could be stored as it is. What cannot is refused with what to enter instead."""

import difflib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, router, transaction
from django.db.models import BaseConstraint, CheckConstraint, ForeignKey, Model, Q

from queueapi.errors import InvalidInput


def check_row(row: Model) -> None:
    """InvalidInput, with what is wrong under each field's name."""
    try:
        _clean(row)
    except ValidationError as error:
        raise InvalidInput("; ".join(_told(error)), fields=_by_field(row, error)) from error


def check_names(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """InvalidInput for the name of a field that is none of those that may be entered."""
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
            raise InvalidInput(f"a {what} has no field {name!r} that may be entered; {hint}")


@contextmanager
def storing(what: str) -> Iterator[None]:
    """Somebody else may have been quicker than the check: InvalidInput then."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        raise InvalidInput(
            f"somebody else has just changed what {what} depends on; look again, and try anew"
        ) from error


def _clean(row: Model) -> None:
    """Django's `full_clean`, which asks the database for each row that this one names, and once for each check
    constraint. Rows that were just read are there; and nearly always all constraints hold, so that they are asked about
    together, and one by one only to tell what is wrong."""
    try:
        row.clean_fields(exclude=set(_read(row)))
        row.clean()
        row.validate_unique()
        using = router.db_for_write(type(row), instance=row)
        for model, constraints in row.get_constraints():
            for constraint in _together(constraints):
                constraint.validate(model, row, using=using)
    except ValidationError:
        row.full_clean()
        raise


def _read(row: Model) -> Iterator[str]:
    """Fields that name another row, and have it."""
    for field in row._meta.concrete_fields:  # noqa: SLF001 - Django's documented way to ask a model
        if isinstance(field, ForeignKey) and field.is_cached(row) and getattr(row, field.attname) is not None:
            yield field.name


def _together(constraints: Iterable[BaseConstraint]) -> Iterator[BaseConstraint]:
    """The same, with one check constraint for all there are. What is unknown, as a value is missing, holds: alone, and
    beside others."""
    conditions = Q()
    for constraint in constraints:
        if isinstance(constraint, CheckConstraint):
            conditions &= Q(constraint.condition)
        else:
            yield constraint
    if conditions:
        yield CheckConstraint(condition=conditions, name="all_check_constraints")


def _by_field(row: Model, error: ValidationError) -> dict[str, list[str]]:
    """What a constraint says of one field, as in `name: another queue is called so`, stands there."""
    told: dict[str, list[str]] = {}
    names = {field.name for field in row._meta.concrete_fields}  # noqa: SLF001 - Django's documented way to ask a model
    for field, messages in error.message_dict.items():
        for message in messages:
            name, _, text = message.partition(": ")
            is_of_field = field == NON_FIELD_ERRORS and text and name in names
            told.setdefault(name if is_of_field else field, []).append(text if is_of_field else message)
    return told


def _told(error: ValidationError) -> Iterator[str]:
    for field, messages in error.message_dict.items():
        yield from messages if field == NON_FIELD_ERRORS else (f"{field}: {message}" for message in messages)
