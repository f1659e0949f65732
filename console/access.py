"""Who may see the console and work in it, by the same table as the REST interface, and as whom they act."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeGuard

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django_htmx.http import HttpResponseClientRedirect

from queueapi.access.backends import address_of
from queueapi.access.principals import Principal, principal_of
from queueapi.access.table import OPERATE, READ, Resource, Verb
from queueapi.actions.actor import Actor
from queueapi.choices import Role
from queueapi.request_ids import current_request_id

View = Callable[..., HttpResponseBase]
Need = tuple[Verb, Resource]

_SAFE = ("GET", "HEAD", "OPTIONS")


def guarded(view: View, resource: Resource, changes: Need | None = None) -> View:
    """Strangers are sent to sign in. Whoever may not read the resource, or, to change anything, not do what `changes`
    says, gets the 403 page with the reason; so do tenants' people, whose console is not this one. Nothing is cached."""
    to_change = changes or (OPERATE, resource)

    @wraps(view)
    def guard(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _to_sign_in(request)
        principal = signed_in(request)
        verb, needed = (READ, resource) if request.method in _SAFE else to_change
        if not sees_console(principal) or not principal.may(verb, needed):
            return render(request, "403.html", {"verb": verb, "resource": needed}, status=403)
        return view(request, *args, **kwargs)

    return never_cache(guard)


def sees_console(principal: Principal | None) -> TypeGuard[Principal]:
    return principal is not None and principal.tenant_id is None


def signed_in(request: HttpRequest) -> Principal | None:
    """None for strangers, and for who has no role."""
    user = getattr(request, "user", None)
    return principal_of(user) if isinstance(user, User) else None


def standing(request: HttpRequest) -> dict[str, Any]:
    """For every template: the role of who looks, if any, and whether this console is for them."""
    principal = signed_in(request)
    role = None if principal is None else principal.role
    return {"role": role, "sees_console": sees_console(principal), "only_looks": role == Role.AUDITOR}


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in person, as actions want to know them."""
    user = request.user if isinstance(request.user, User) else None
    return Actor(request.user.get_username(), user, address_of(request), request_id=current_request_id())


def _to_sign_in(request: HttpRequest) -> HttpResponseBase:
    """A part of a page that finds the session over takes the whole page along."""
    htmx = getattr(request, "htmx", None)
    if htmx:
        return HttpResponseClientRedirect(redirect_to_login(htmx.current_url_abs_path or reverse("overview")).url)
    return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("overview"))
