"""Who sent a request, as actions want to know it."""

from django.contrib.auth.models import AnonymousUser, User
from rest_framework.request import Request

from queueapi.access.backends import address_of
from queueapi.access.principals import principal_of
from queueapi.actions.actor import Actor
from queueapi.models import ApiToken
from queueapi.request_ids import current_request_id


def actor_of(request: Request) -> Actor:
    user = request.user
    if isinstance(user, AnonymousUser):
        raise TypeError("an anonymous request reached an action; the view lacks its permission check")
    assert isinstance(user, User)  # noqa: S101 - narrows AbstractBaseUser, the project uses Django's own user
    token = request.auth if isinstance(request.auth, ApiToken) else None
    principal = principal_of(user, token)
    return Actor(
        user.get_username(),
        user,
        address_of(request),
        token_id=None if token is None else token.pk,
        tenant_id=None if principal is None else principal.tenant_id,
        request_id=current_request_id(),
    )
