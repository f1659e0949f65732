"""Pages by cursor of what a provider has: things with names, in order. A cursor is the name a page begins behind."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from queueapi.rest.page_sizes import PARAMETER, asked_page_size

PAGE_SIZE: Final = 50
MAX_PAGE_SIZE: Final = 200

PAGE_PARAMETERS: Final = [
    OpenApiParameter("cursor", str, description="Where the page begins: from `next` of the one before."),
    OpenApiParameter(
        PARAMETER,
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": PAGE_SIZE},
        description="How many at most.",
    ),
]


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


def page_found(request: Request, find: Callable[[str, int], Sequence[T]]) -> tuple[list[T], str | None]:
    """Those of one page, and the address of the next page. Of items that are ordered by name, and found by the name
    that they are behind; of these so many are wanted at most."""
    size = asked_page_size(request, PAGE_SIZE, MAX_PAGE_SIZE)
    cursor = request.query_params.get("cursor")
    # One more than is shown tells whether there are more.
    found = find(_behind(cursor) if cursor else "", size + 1)
    page = list(found[:size])
    if len(found) <= size:
        return page, None
    cursor = urlsafe_b64encode(page[-1].name.encode()).decode()
    return page, replace_query_param(request.build_absolute_uri(), "cursor", cursor)


def paged(following: str | None, results: Any) -> Response:
    return Response({"next": following, "results": results})


def _behind(cursor: str) -> str:
    try:
        return urlsafe_b64decode(cursor).decode()
    except ValueError as error:
        raise NotFound("this cursor is none of ours; begin without one") from error
