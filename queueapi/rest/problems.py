"""Errors as application/problem+json, with a stable `code`."""

import logging
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import exception_handler

from queueapi import errors as refused
from queuecore import errors as queue

logger = logging.getLogger(__name__)

_STATUS: dict[type[queue.QueueError], int] = {
    queue.InvalidName: status.HTTP_400_BAD_REQUEST,
    refused.InvalidInput: status.HTTP_400_BAD_REQUEST,
    # Named in a body: what is named in a path is looked up there.
    queue.UnknownService: status.HTTP_400_BAD_REQUEST,
    queue.UnknownRebalance: status.HTTP_404_NOT_FOUND,
    refused.NotReplayable: status.HTTP_409_CONFLICT,
    refused.NotChangeable: status.HTTP_409_CONFLICT,
    refused.AlreadyFinal: status.HTTP_409_CONFLICT,
    queue.PayloadTooLarge: status.HTTP_413_REQUEST_ENTITY_TOO_LARGE,
    queue.ProviderUnavailable: status.HTTP_503_SERVICE_UNAVAILABLE,
    queue.StoreUnavailable: status.HTTP_503_SERVICE_UNAVAILABLE,
    queue.QueueError: status.HTTP_500_INTERNAL_SERVER_ERROR,
}


def problem_response(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler: the same shape whatever went wrong. What nobody foresaw is told to the log alone."""
    if isinstance(error, queue.QueueError):
        told = {"errors": error.fields["fields"]} if "fields" in error.fields else {}
        return _problem(_status_of(error), error.code, error.message, retryable=error.retryable, **told)
    if isinstance(error, RequestDataTooBig):
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        detail = f"the request's body is larger than {limit} bytes; send less at once"
        return _problem(status.HTTP_413_REQUEST_ENTITY_TOO_LARGE, queue.PayloadTooLarge.code, detail)
    response = exception_handler(error, context)
    if response is None:
        logger.error("%s failed", _asked(context), exc_info=error)
        detail = "something went wrong here; the server's log says what"
        return _problem(status.HTTP_500_INTERNAL_SERVER_ERROR, "internal_error", detail)
    problem = _problem(response.status_code, _code(error), _detail(error), **_field_errors(error))
    for name in ("WWW-Authenticate", "Retry-After", "Allow"):
        if name in response.headers:
            problem[name] = response.headers[name]
    return problem


def _problem(status_code: int, code: str, detail: str, **extra: Any) -> Response:
    body = {"type": "about:blank", "status": status_code, "code": code, "detail": detail, **extra}
    return Response(body, status=status_code, content_type="application/problem+json")


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
