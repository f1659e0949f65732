"""Errors as application/problem+json, with a stable `code`."""

import logging
import math
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import exceptions, status
from rest_framework.renderers import JSONRenderer
from rest_framework.views import exception_handler

from queueapi import errors as refused
from queueapi.config import config
from queueapi.request_ids import current_request_id
from queuecore import errors as queue

logger = logging.getLogger(__name__)

CONTENT_TYPE: Final = "application/problem+json"

_STATUS: dict[type[queue.QueueError], int] = {
    queue.InvalidName: status.HTTP_400_BAD_REQUEST,
    refused.InvalidInput: status.HTTP_400_BAD_REQUEST,
    # Named in a body: what is named in a path is looked up there.
    queue.UnknownService: status.HTTP_400_BAD_REQUEST,
    queue.OffsetOutOfRange: status.HTTP_400_BAD_REQUEST,
    queue.InvalidMessage: status.HTTP_400_BAD_REQUEST,
    queue.UnknownRebalance: status.HTTP_404_NOT_FOUND,
    queue.UnknownTopic: status.HTTP_404_NOT_FOUND,
    refused.NotAllowed: status.HTTP_403_FORBIDDEN,
    refused.NotReplayable: status.HTTP_409_CONFLICT,
    refused.NotChangeable: status.HTTP_409_CONFLICT,
    refused.QueueNotActive: status.HTTP_409_CONFLICT,
    refused.NotRemovable: status.HTTP_409_CONFLICT,
    refused.ChangedMeanwhile: status.HTTP_409_CONFLICT,
    refused.AlreadyFinal: status.HTTP_409_CONFLICT,
    refused.AlreadyUnderWay: status.HTTP_409_CONFLICT,
    refused.LastAdministrator: status.HTTP_409_CONFLICT,
    refused.AppendOnly: status.HTTP_409_CONFLICT,
    refused.TenantSuspended: status.HTTP_409_CONFLICT,
    refused.PlanChanged: status.HTTP_409_CONFLICT,
    refused.Incompatible: status.HTTP_409_CONFLICT,
    queue.GroupActive: status.HTTP_409_CONFLICT,
    queue.PayloadTooLarge: status.HTTP_413_REQUEST_ENTITY_TOO_LARGE,
    queue.QueueOverloaded: status.HTTP_429_TOO_MANY_REQUESTS,
    refused.TooManyTails: status.HTTP_429_TOO_MANY_REQUESTS,
    queue.ProviderUnavailable: status.HTTP_503_SERVICE_UNAVAILABLE,
    queue.StoreUnavailable: status.HTTP_503_SERVICE_UNAVAILABLE,
    queue.QueueError: status.HTTP_500_INTERNAL_SERVER_ERROR,
}
_FAILED: Final = "something went wrong here; the server's log says what, beside the request id"


def problem_response(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """DRF's exception handler: the same shape whatever went wrong, and JSON whatever the view answers with. What nobody
    foresaw is told to the log alone."""
    if isinstance(error, queue.QueueError):
        told = {"errors": error.fields["fields"]} if "fields" in error.fields else {}
        problem = _problem(_status_of(error), error.code, error.message, retryable=error.retryable, **told)
        if isinstance(error, queue.QueueOverloaded):
            # Whole seconds, and never 0: that would mean at once.
            problem["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
        return problem
    if isinstance(error, RequestDataTooBig):
        limit = config().rest.max_body_bytes
        detail = f"the request's body is larger than {limit} bytes; send less at once"
        return _problem(status.HTTP_413_REQUEST_ENTITY_TOO_LARGE, queue.PayloadTooLarge.code, detail)
    response = exception_handler(error, context)
    if response is None:
        logger.error("%s failed", _asked(context), exc_info=error)
        return _problem(status.HTTP_500_INTERNAL_SERVER_ERROR, "internal_error", _FAILED)
    problem = _problem(response.status_code, _code(error), _detail(error), **_field_errors(error))
    for name in ("WWW-Authenticate", "Retry-After", "Allow"):
        if name in response.headers:
            problem[name] = response.headers[name]
    return problem


def problem_of(error: exceptions.APIException) -> HttpResponse:
    """The same outside of DRF's views."""
    response = _problem(error.status_code, _code(error), _detail(error))
    if (wait := getattr(error, "wait", None)) is not None:
        response["Retry-After"] = str(wait)
    return response


def answer_problem(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Instead of the page that Django answers with where no view of ours was reached, or it failed outside of it."""
    code, detail = HTTPStatus(response.status_code).phrase.lower().replace(" ", "_"), response.reason_phrase
    if response.status_code == status.HTTP_404_NOT_FOUND:
        detail = f"there is no {request.path!r}; /api/v1/docs shows all there is{_without_slash(request.path)}"
    elif response.status_code >= status.HTTP_500_INTERNAL_SERVER_ERROR:
        code, detail = "internal_error", _FAILED
    return _problem(response.status_code, code, detail)


def _problem(status_code: int, code: str, detail: str, **extra: Any) -> HttpResponse:
    told = {"type": "about:blank", "status": status_code, "code": code, "detail": detail, **extra}
    body = JSONRenderer().render({**told, "request_id": current_request_id()})
    return HttpResponse(body, status=status_code, content_type=CONTENT_TYPE)


def _without_slash(path: str) -> str:
    return "; no path of ours ends with a slash" if path.endswith("/") else ""


def _asked(context: dict[str, Any]) -> str:
    request = context.get("request")
    return f"{request.method} {request.path!r}" if request else "a request"


def _status_of(error: queue.QueueError) -> int:
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def _code(error: Exception) -> str:
    if isinstance(error, exceptions.ValidationError):
        return "invalid_input"
    if isinstance(error, Http404):
        return "not_found"
    return str(getattr(error, "default_code", "refused"))


def _detail(error: Exception) -> str:
    if isinstance(error, exceptions.ValidationError):
        return "some of what was sent cannot be used; see errors"
    if isinstance(error, Http404):
        return "there is no such thing here"
    return str(getattr(error, "detail", error))


def _field_errors(error: Exception) -> dict[str, Any]:
    return {"errors": error.detail} if isinstance(error, exceptions.ValidationError) else {}
