"""Who asks, as far as limits and keys are concerned."""

from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request

from queueapi.models import ApiToken


def principal_of(request: Request | HttpRequest) -> str:
    """A token, else a user, else an address. Costs no query."""
    token: Any = getattr(request, "auth", None)
    if getattr(token, "pk", None) is not None:
        return principal_of_token(token)
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return f"user:{user.pk}"
    return f"address:{request.META.get('REMOTE_ADDR') or 'unknown'}"


def principal_of_token(token: ApiToken) -> str:
    return f"token:{token.pk}"


def is_anonymous(principal: str) -> bool:
    return principal.startswith("address:")
