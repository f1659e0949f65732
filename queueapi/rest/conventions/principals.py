"""Who asks, as far as limits and keys are concerned."""

from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request


def principal_of(request: Request | HttpRequest) -> str:
    """A token, else a user, else an address. Costs no query."""
    token: Any = getattr(request, "auth", None)
    if getattr(token, "pk", None) is not None:
        return f"token:{token.pk}"
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return f"user:{user.pk}"
    return f"address:{request.META.get('REMOTE_ADDR') or 'unknown'}"


def is_anonymous(principal: str) -> bool:
    return principal.startswith("address:")
