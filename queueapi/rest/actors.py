"""Who sent a request, as actions want to know it."""

from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest

from queueapi.actions.actor import Actor


def actor_of(request: HttpRequest) -> Actor:
    user = request.user
    if isinstance(user, AnonymousUser):
        raise TypeError("an anonymous request reached an action; the view lacks its permission check")
    assert isinstance(user, User)  # noqa: S101 - narrows AbstractBaseUser, the project uses Django's own user
    return Actor(user.get_username(), user, request.META.get("REMOTE_ADDR") or None)
