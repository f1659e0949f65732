"""People of every role, and how they send requests."""

from typing import Any

from django.contrib.auth.models import User
from rest_framework.test import APIClient

from queueapi.actions.actor import Actor
from queueapi.actions.tokens import create_token
from queueapi.choices import Role
from queueapi.models import Account, ApiToken, Tenant

PASSWORD = "correct horse battery"


def person(name: str, role: Role, tenant: Tenant | None = None) -> User:
    """Somebody whose password nobody waits for: who signs in with it asks for `signing_in`."""
    user = User.objects.create_user(name)
    Account.objects.create(user=user, role=role, tenant=tenant)
    return user


def api_of(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def token_of(user: User, scopes: list[str], **options: Any) -> tuple[ApiToken, str]:
    return create_token(Actor(user.get_username(), user), "test", scopes, **{"expires_at": None, **options})


def bearer(secret: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client
