"""What holds for every request: the headers of a page, and how long a session lasts."""

import time
from collections.abc import Callable
from typing import Any, Final, cast

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.middleware.gzip import GZipMiddleware

_POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; style-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'; object-src 'none'"
)
# The page of drf-spectacular has a style in its head.
_POLICY_OF_SWAGGER: Final = _POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")

# When somebody was last seen, in seconds; written once a minute at most.
_SEEN: Final = "seen"
_SEEN_EVERY_S: Final = 60

_REST: Final = "/api/"


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Everything comes from this host, and neither scripts nor styles are inline."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        policy = _POLICY_OF_SWAGGER if _is_swagger(request) else _POLICY
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return respond


def _is_swagger(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and match.url_name == "api-docs"


def compressed_pages(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Pages are sent compressed where the browser takes that, with some bytes of chance, so that their length tells
    nothing of what is secret in them. The REST interface is left alone: its tags name what exactly was sent."""
    compress = cast(Callable[[HttpRequest], HttpResponse], GZipMiddleware(get_response))

    def respond(request: HttpRequest) -> HttpResponse:
        return get_response(request) if request.path.startswith(_REST) else compress(request)

    return respond


def sessions_end_unused(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """A session lasts for SESSION_COOKIE_AGE from when it was last written, which is when somebody does something. A
    page that keeps itself up to date does so without them."""

    def respond(request: HttpRequest) -> HttpResponse:
        is_by_itself = bool(getattr(request, "htmx", False)) and request.method == "GET"
        if not is_by_itself and SESSION_KEY in request.session and _is_long_ago(request.session.get(_SEEN, 0)):
            _note_seen(request)
        return get_response(request)

    return respond


def _is_long_ago(seen: int) -> bool:
    return time.time() - seen >= _SEEN_EVERY_S


@receiver(user_logged_in)
def _note_seen(request: HttpRequest, **_: Any) -> None:
    request.session[_SEEN] = int(time.time())
