"""Who may see the console and work in it, by the same table as the REST interface, as whom they act, and what of all
rows is theirs to see."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeGuard, TypeVar

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from console.signing_in import page_instead, to_sign_in
from queueapi.access.backends import address_of
from queueapi.access.principals import Principal, principal_of
from queueapi.access.table import OPERATE, READ, Resource, Verb
from queueapi.access.tenancy import visible
from queueapi.actions.actor import Actor
from queueapi.choices import Role
from queueapi.request_ids import current_request_id

View = Callable[..., HttpResponseBase]
Need = tuple[Verb, Resource]
Row = TypeVar("Row", bound=Model)

_SAFE = ("GET", "HEAD", "OPTIONS")


def guarded(view: View, resource: Resource, changes: Need | None = None, own: View | None = None) -> View:
    """Strangers are sent to sign in. Whoever may not read the resource, or, to change anything, not do what `changes`
    says, gets the 403 page with the reason. A tenant's people get `own` instead of the view, which shows them what is
    their tenant's and nothing else; where there is none, the page is not for them. Nothing is cached."""
    to_change = changes or (OPERATE, resource)

    @wraps(view)
    def guard(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return to_sign_in(request)
        principal = signed_in(request)
        shown = view if sees_console(principal) else own
        verb, needed = (READ, resource) if request.method in _SAFE else to_change
        if principal is None or shown is None or not principal.may(verb, needed):
            told = {"verb": verb, "resource": needed, "is_elsewhere": shown is None}
            return render(request, "403.html", told, status=403)
        return page_instead(request, shown(request, *args, **kwargs))

    return never_cache(guard)


def sees_console(principal: Principal | None) -> TypeGuard[Principal]:
    """Whether they run the system: a tenant's people have pages of their own."""
    return principal is not None and principal.tenant_id is None


def signed_in(request: HttpRequest) -> Principal | None:
    """None for strangers, and for who has no role."""
    user = getattr(request, "user", None)
    return principal_of(user) if isinstance(user, User) else None


def viewer(request: HttpRequest) -> Principal:
    """Who looks at a page that is guarded."""
    principal = signed_in(request)
    if principal is None:
        raise TypeError("somebody without a role reached a page; its address lacks its guard")
    return principal


def seen(request: HttpRequest, rows: QuerySet[Row]) -> QuerySet[Row]:
    """Of these rows those that whoever looks may know of."""
    return visible(viewer(request), rows)


def is_told_details(request: HttpRequest) -> bool:
    """Whether whoever looks runs the system: ids of services and texts of errors are not for a tenant's people."""
    return viewer(request).tenant_id is None


def standing(request: HttpRequest) -> dict[str, Any]:
    """For every template: the role of who looks, if any, whether they run the system, and else whose people they
    are."""
    principal = signed_in(request)
    role = None if principal is None else principal.role
    return {
        "role": role,
        "sees_console": sees_console(principal),
        "own_tenant": None if principal is None else principal.tenant_id,
        "only_looks": role == Role.AUDITOR,
    }


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in person, as actions want to know them."""
    user = request.user if isinstance(request.user, User) else None
    principal = signed_in(request)
    return Actor(
        request.user.get_username(),
        user,
        address_of(request),
        tenant_id=None if principal is None else principal.tenant_id,
        request_id=current_request_id(),
    )
