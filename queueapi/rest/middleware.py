"""What every answer has, whoever made it: a request id; under /api/ the shape of errors, and the rate that is left."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from queueapi.request_ids import answering, usable_request_id
from queueapi.rest.conventions.rates import rate_of
from queueapi.rest.conventions.refusals import RateLimited
from queueapi.rest.problems import CONTENT_TYPE, answer_problem, problem_of

Answering = Callable[[HttpRequest], HttpResponse]

API: Final = "/api/"
REQUEST_ID: Final = "X-Request-Id"


def request_id(get_response: Answering) -> Answering:
    """First of all: what the others refuse has an id as well."""

    def respond(request: HttpRequest) -> HttpResponse:
        given = usable_request_id(request.headers.get(REQUEST_ID))
        request.request_id = given  # type: ignore[attr-defined] # for what is said when it is answered
        with answering(given):
            response = get_response(request)
        response.headers[REQUEST_ID] = given
        return response

    return respond


def api_answers(get_response: Answering) -> Answering:
    """Also for what never reaches a view: an unknown path, a host that is not ours, a failure of another middleware."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not request.path.startswith(API):
            return response
        if response.status_code >= 400 and response.headers.get("Content-Type") != CONTENT_TYPE:
            response = answer_problem(request, response)
        rate = rate_of(request)
        if rate.is_exceeded and response.status_code != RateLimited.status_code:
            response = problem_of(RateLimited(rate.limit, rate.reset_s))
        for name, value in rate.headers.items():
            response.headers[name] = value
        return response

    return respond
