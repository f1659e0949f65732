"""Pages that keep themselves up to date: the page whole, or only its live part when htmx asks for that."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

# htmx ends polling when it gets this status, and still shows the answer.
_LAST_UPDATE = 286


def render_live(
    request: HttpRequest, page: str, part: str, context: dict[str, Any], *, is_final: bool = False
) -> HttpResponse:
    """`is_final`: nothing will change any more, so this answer is the last one asked for."""
    only_part = bool(getattr(request, "htmx", False))
    status = _LAST_UPDATE if only_part and is_final else 200
    response = render(request, part if only_part else page, {**context, "is_final": is_final}, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response
