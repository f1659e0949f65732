"""Where whoever finds the session over goes, and where they come back to."""

from typing import Final
from urllib.parse import urlsplit, urlunsplit

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import is_valid_path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

_FIRST: Final = "overview"


def to_sign_in(request: HttpRequest) -> HttpResponseBase:
    """A part of a page that finds the session over takes the whole page along."""
    htmx = getattr(request, "htmx", None)
    if htmx:
        return HttpResponseClientRedirect(redirect_to_login(htmx.current_url_abs_path or reverse(_FIRST)).url)
    return redirect_to_login(request.get_full_path() if request.method == "GET" else _page_of_form(request))


def page_instead(request: HttpRequest, answer: HttpResponseBase) -> HttpResponseBase:
    """The answer, but for whose browser opens an address that only takes what is sent to it: from a tab that is there
    again, a link that was copied, or after signing in. A plan, or a form that was refused, is shown there: they get the
    page that led to it."""
    is_closed = isinstance(answer, HttpResponseNotAllowed) and request.method == "GET"
    # Browsers ask for HTML when they open a page, and not when a part of one is asked for.
    is_opened = "text/html" in request.headers.get("Accept", "") and not getattr(request, "htmx", False)
    return redirect(page_above(request.path)) if is_closed and is_opened else answer


def page_above(path: str) -> str:
    """The nearest address above it that there is."""
    above = path.rstrip("/").rpartition("/")[0]
    return f"{above}/" if not above or is_valid_path(f"{above}/") else page_above(above)


def _page_of_form(request: HttpRequest) -> str:
    """Where what was sent had been typed, as far as the browser tells: it is there again after signing in."""
    page = urlsplit(_came_from(request))
    return urlunsplit(("", "", page.path, page.query, "")) or reverse(_FIRST)


def _came_from(request: HttpRequest) -> str:
    """Empty where the browser does not tell, or it was another's page."""
    address = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
    return address if is_ours else ""
