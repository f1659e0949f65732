"""The id of the request that is being answered: the same in its answer, in log lines, and in what actions are told."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final
from uuid import uuid4

LONGEST: Final = 128

_SANE: Final = re.compile(rf"[A-Za-z0-9._:/+=@-]{{1,{LONGEST}}}")
_current: ContextVar[str | None] = ContextVar("request_id", default=None)


def current_request_id() -> str | None:
    """None where no request is being answered, as in workers."""
    return _current.get()


def usable_request_id(given: str | None) -> str:
    """The client's own, where it is one that may stand in a log line; else a new one."""
    return given if given is not None and _SANE.fullmatch(given) else uuid4().hex


@contextmanager
def answering(request_id: str) -> Iterator[None]:
    """What is done within belongs to that request."""
    before = _current.get()
    _current.set(request_id)
    try:
        yield
    finally:
        # Not by its token: a server may go on in another context than it began in.
        _current.set(before)


class RequestIdFilter(logging.Filter):
    """Gives each record `request_tag`: its request's id in brackets, or nothing. What Django says of a request when it
    is answered, it says with the request beside."""

    def filter(self, record: logging.LogRecord) -> bool:
        request_id = current_request_id() or getattr(getattr(record, "request", None), "request_id", None)
        record.request_tag = "" if request_id is None else f" [{request_id}]"
        return True
