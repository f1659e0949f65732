"""ETags of single things: a digest of the representation. A thing whose secrets are hidden there has a version in it:
no change goes unseen."""

import hashlib
from typing import Any, Final

from django.utils.http import parse_etags
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.serializer_helpers import ReturnDict

from queueapi.rest.conventions.refusals import PreconditionFailed

ETAG: Final = "ETag"


def etag_of(data: Any) -> str:
    """Strong: another byte is another tag, but for what the serializer calls `untagged`. What it does not show and
    gives as `tagged_beside()` makes another tag as well."""
    serializer = getattr(data, "serializer", None)
    untagged = getattr(serializer, "untagged", ())
    tagged = {name: value for name, value in data.items() if name not in untagged}
    if (beside := getattr(serializer, "tagged_beside", None)) is not None:
        tagged[""] = beside()
    return f'"{hashlib.sha256(JSONRenderer().render(tagged)).hexdigest()[:32]}"'


def is_thing(response: Any) -> bool:
    """Whether the answer is one thing: what one serializer made, not a page and not a list."""
    return isinstance(response, Response) and response.status_code < 300 and isinstance(response.data, ReturnDict)


def answer_conditionally(request: Request, response: Response) -> Response:
    """With its ETag; 304 and no more where that is known already."""
    tag = etag_of(response.data)
    known = parse_etags(request.headers.get("If-None-Match", ""))
    if "*" in known or tag in {each.removeprefix("W/") for each in known}:
        response = Response(status=304)
    response[ETAG] = tag
    return response


def has_precondition(request: Request) -> bool:
    return "If-Match" in request.headers or "If-None-Match" in request.headers


def check_precondition(request: Request, tag: str) -> None:
    """PreconditionFailed where the thing is not as the request wants it to be. Ask while nobody else can change it."""
    wanted = parse_etags(request.headers.get("If-Match", "*"))
    if "*" not in wanted and tag not in wanted:
        raise PreconditionFailed(f"it has changed: its ETag is {tag} now; load it anew, and decide again")
    refused = parse_etags(request.headers.get("If-None-Match", ""))
    if "*" in refused or tag in {each.removeprefix("W/") for each in refused}:
        raise PreconditionFailed("If-None-Match names it as it is; leave that out to change it, or use If-Match")


def refuse_precondition(request: Request) -> None:
    """For what has no ETag: a list matches none."""
    if "If-Match" in request.headers:
        raise PreconditionFailed("this is not one thing, so no ETag can match; leave If-Match out")
