"""How people are let in by name and password."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from queueapi.actions.sign_ins import forget_failures, locked_until, record_failure


class LockingBackend(ModelBackend):
    """Django's own, which counts wrong passwords, and looks at none of who is locked out. Users come with their
    account: every request asks for it."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **_: Any
    ) -> User | None:
        if username is None or password is None or "\0" in username:
            return None
        address = address_of(request)
        if locked_until(username, address) is not None:
            raise PermissionDenied
        user = super().authenticate(request, username=username, password=password)
        if user is None:
            record_failure(username, address)
            return None
        forget_failures(username, address)
        return self.get_user(user.pk)

    def get_user(self, user_id: int) -> User | None:
        user = User.objects.select_related("account").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


def address_of(request: HttpRequest | None) -> str | None:
    """Where a request came from, as far as the server knows."""
    return None if request is None else request.META.get("REMOTE_ADDR") or None
