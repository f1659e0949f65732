"""Whether a row could be stored as it is. What cannot is refused with what to enter instead."""

import difflib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Model

from queueapi.errors import InvalidInput


def check_row(row: Model) -> None:
    """InvalidInput, with what is wrong under each field's name."""
    try:
        row.full_clean()
    except ValidationError as error:
        raise InvalidInput("; ".join(_told(error)), fields=error.message_dict) from error


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


def _told(error: ValidationError) -> Iterator[str]:
    for field, messages in error.message_dict.items():
        yield from messages if field == NON_FIELD_ERRORS else (f"{field}: {message}" for message in messages)
