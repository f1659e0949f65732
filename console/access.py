"""Who may see the console, and as whom they act."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django_htmx.http import HttpResponseClientRedirect

from queueapi.actions.actor import Actor

View = Callable[..., HttpResponseBase]


def staff_only(view: View) -> View:
    """Strangers are sent to sign in, signed-in people who are not staff get the 403 page. Nothing is cached."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _to_sign_in(request)
        if not request.user.is_staff:
            return render(request, "403.html", status=403)
        return view(request, *args, **kwargs)

    return never_cache(guarded)


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in person, as actions want to know them."""
    user = request.user if isinstance(request.user, User) else None
    return Actor(request.user.get_username(), user, request.META.get("REMOTE_ADDR") or None)


def _to_sign_in(request: HttpRequest) -> HttpResponseBase:
    """A part of a page that finds the session over takes the whole page along."""
    htmx = getattr(request, "htmx", None)
    if htmx:
        return HttpResponseClientRedirect(redirect_to_login(htmx.current_url_abs_path or reverse("overview")).url)
    return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("overview"))
