"""`Idempotency-Key`: a request that is sent again is answered again, and carried out once."""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from django.db import transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.crypto import salted_hmac
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.actions.idempotency import Asked, claim_key, free_key, keep_answer
from queueapi.models import IdempotencyKey
from queueapi.rest.conventions.principals import principal_of
from queueapi.rest.conventions.refusals import AnswerNotKept, KeyInUse, KeyReused

Handler = TypeVar("Handler", bound=Callable[..., Any])

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
# A larger answer is not kept.
MOST_KEPT_BYTES: Final = 256 * 1024

_SANE: Final = re.compile(r"[\x21-\x7e]{1,255}")
_KEPT_HEADERS: Final = ("ETag", "Location", "Retry-After")
_LEAVES: Final = "leaves_the_database"
_NOT_KEPT: Final = "answers_with_a_secret"


class _Undone(Exception):
    def __init__(self, response: HttpResponseBase) -> None:
        self.response = response


def leaves_the_database(handler: Handler) -> Handler:
    """For a view's method that does what no transaction takes back, such as sending a message. Its key is claimed
    under a lease before, instead of in the transaction of the change."""
    setattr(handler, _LEAVES, True)
    return handler


def answers_with_a_secret(handler: Handler) -> Handler:
    """For a view's method whose answer nobody may read again, such as a new token. That it was given is kept, and no
    more."""
    setattr(handler, _NOT_KEPT, True)
    return handler


def has_left(handler: Callable[..., Any]) -> bool:
    return getattr(handler, _LEAVES, False)


def answer_once(view: Any, request: Request, handler: Callable[..., Any], answer: Callable[[], Any]) -> Any:
    """What `answer` says, or said when the same request was sent before."""
    key = request.headers.get(HEADER)
    if key is None:
        return answer()
    asked = _asked(request, key)
    keep = partial(_keep, is_secret=getattr(handler, _NOT_KEPT, False))
    if has_left(handler):
        return _under_a_lease(asked, partial(_attempt, view, answer), keep)
    return _in_one_transaction(asked, partial(_attempt, view, answer, is_undone=True), keep)


def _in_one_transaction(asked: Asked, attempt: Callable[[], Any], keep: Callable[..., None]) -> Any:
    """Claim, change and answer are committed together: after a crash all of them are there, or none."""
    try:
        with transaction.atomic():
            claim = claim_key(asked)
            if not claim.is_ours:
                return _again(asked, claim.row)
            response = attempt()
            if response.status_code >= 500:
                raise _Undone(response)
            keep(claim.row, response)
            return response
    except _Undone as undone:
        return undone.response


def _under_a_lease(asked: Asked, attempt: Callable[[], Any], keep: Callable[..., None]) -> Any:
    """After a crash in between, the request is carried out again once the lease is over."""
    claim = claim_key(asked)
    if not claim.is_ours:
        return _again(asked, claim.row)
    response = attempt()
    if response.status_code >= 500:
        free_key(claim.row)
    else:
        keep(claim.row, response)
    return response


def _attempt(view: Any, answer: Callable[[], Any], *, is_undone: bool = False) -> Any:
    """The answer, or the problem that came of it; `is_undone`: with nothing left of what was done before that."""
    try:
        if not is_undone:
            return answer()
        with transaction.atomic():
            return answer()
    except Exception as error:  # noqa: BLE001, RUF100 - DRF's handler tells all of them apart
        return view.handle_exception(error)


def _asked(request: Request, key: str) -> Asked:
    if not _SANE.fullmatch(key):
        raise ValidationError({HEADER: ["use 1 to 255 printable ASCII characters without spaces, a UUID for example"]})
    body = json.dumps(request.data, sort_keys=True, default=str).encode()
    # Keyed: nobody who reads the table can try out what a body may have been, a password for example.
    digest = salted_hmac("queueapi.idempotency", body, algorithm="sha256").hexdigest()
    return Asked(principal_of(request), key, request.method or "", request.get_full_path(), digest)


def _again(asked: Asked, row: IdempotencyKey) -> HttpResponse:
    if not asked.is_of(row):
        raise KeyReused(
            f"this Idempotency-Key was sent with another request, {row.method} {row.path} at {row.created_at:%H:%M:%S} "
            "UTC; use a new key for each request"
        )
    if row.lease_expires_at is not None:
        raise KeyInUse(max(1, round((row.lease_expires_at - timezone.now()).total_seconds())))
    if row.body is None:
        raise AnswerNotKept
    response = HttpResponse(bytes(row.body), status=row.status)
    del response["Content-Type"]
    for name, value in row.headers.items():
        response[name] = value
    response[REPLAYED] = "true"
    return response


def _keep(row: IdempotencyKey, response: HttpResponse, *, is_secret: bool) -> None:
    body, content_type = _content(response)
    headers = {name: response[name] for name in _KEPT_HEADERS if name in response}
    if body:
        headers["Content-Type"] = content_type
    is_kept = len(body) <= MOST_KEPT_BYTES and not (is_secret and response.status_code < 300)
    keep_answer(row, response.status_code, headers, body if is_kept else None)


def _content(response: HttpResponse) -> tuple[bytes, str]:
    """As it will be sent: what a view answers with is not rendered yet, a problem is."""
    if not isinstance(response, Response):
        return response.content, response["Content-Type"]
    return b"" if response.data is None else JSONRenderer().render(response.data), "application/json"
