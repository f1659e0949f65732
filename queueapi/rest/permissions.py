"""Whether a request may do what it asks for, by the table in `queueapi.access.table`."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from queueapi.access.principals import Principal, principal_of
from queueapi.access.table import READ, WRITE, Resource, Verb, allows, scope_of
from queueapi.access.tenancy import is_shared
from queueapi.models import ApiToken

if TYPE_CHECKING:
    # Which asks for the classes of this module itself.
    from rest_framework.views import APIView

logger = logging.getLogger(__name__)

_NO_ROLE: Final = "this account has no role; an administrator can give it one"


class Need(NamedTuple):
    """What a request needs. `is_shared`: also for what the system shares with tenants."""

    verb: Verb
    resource: Resource
    is_shared: bool = False


class Access:
    """What a view's requests need: to read its resource, or to change it by `changes`. Some of its actions, by their
    names, need something else."""

    def __init__(self, resource: Resource, changes: Verb = WRITE, **actions: Need | Verb) -> None:
        self.resource = resource
        self._changes = changes
        self._actions: Mapping[str, Need] = {
            name: Need(need, resource) if isinstance(need, Verb) else need for name, need in actions.items()
        }

    def need(self, method: str, action: str | None) -> Need:
        if method in SAFE_METHODS:
            named = self._actions.get(action or "")
            return named if named is not None and named.verb == READ else Need(READ, self.resource)
        return self._actions.get(action or "", Need(self._changes, self.resource))


def requester(request: Request) -> Principal | None:
    """Who sent it; None for strangers, and for who has no role."""
    if isinstance(request.user, AnonymousUser):
        return None
    assert isinstance(request.user, User)  # noqa: S101 - narrows AbstractBaseUser, the project uses Django's own user
    return principal_of(request.user, request.auth if isinstance(request.auth, ApiToken) else None)


def requester_of(request: Request) -> Principal:
    """The same, behind the permission check."""
    principal = requester(request)
    if principal is None:
        raise PermissionDenied(_NO_ROLE)
    return principal


class HasRole(BasePermission):
    """Whoever has any role: for what is nobody's in particular."""

    message = _NO_ROLE

    def has_permission(self, request: Request, view: "APIView") -> bool:  # noqa: ARG002
        return requester(request) is not None


class Allowed(BasePermission):
    """What the view's `access` says. A view that declares none is refused to everybody."""

    message = _NO_ROLE

    def has_permission(self, request: Request, view: "APIView") -> bool:
        principal, access = requester(request), getattr(view, "access", None)
        if principal is None:
            return False
        if not isinstance(access, Access):
            logger.error("%s declares no access, and is refused to everybody", type(view).__name__)
            raise PermissionDenied("nobody may do this: it is not said who might; the server's log has its name")
        need = _need(access, request, view)
        if not principal.may(need.verb, need.resource):
            raise PermissionDenied(_why_not(principal, need))
        return True

    def has_object_permission(self, request: Request, view: Any, obj: Any) -> bool:
        need = _need(view.access, request, view)
        if need.verb != READ and not need.is_shared and is_shared(requester_of(request), obj):
            raise PermissionDenied("this is the system's, which tenants use and cannot change")
        return True


def _need(access: Access, request: Request, view: "APIView") -> Need:
    """A method that the view does not have is 405 for whoever may read there."""
    method = request.method or ""
    return access.need(method if hasattr(view, method.lower()) else "GET", getattr(view, "action", None))


def _why_not(principal: Principal, need: Need) -> str:
    asked = f"{need.verb} {need.resource}"
    if not all(allows(role, need.verb, need.resource) for role in principal.roles):
        return f"the role {principal.role} may not {asked}; ask somebody who may, or an administrator for another role"
    return f"this token is not for that; to {asked}, use one with the scope {scope_of(need.verb, need.resource)}"
