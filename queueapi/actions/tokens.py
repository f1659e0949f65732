"""API tokens: made, shown once, and revoked."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from queueapi.access.principals import role_of
from queueapi.access.secrets import new_secret
from queueapi.access.table import SCOPES, is_within, scopes_of
from queueapi.access.tokens import TOKENS
from queueapi.actions.actor import Actor, audit
from queueapi.choices import Role
from queueapi.errors import InvalidInput, NotAllowed
from queueapi.models import ApiToken, Tenant

LIFETIME: Final = timedelta(days=90)
_LONGEST_NAME: Final = 100


def create_token(
    actor: Actor,
    name: str,
    scopes: Collection[str],
    *,
    role: Role | None = None,
    tenant: Tenant | None = None,
    expires_at: datetime | None,
) -> tuple[ApiToken, str]:
    """A token of whoever acts, and its secret, which nobody is told again. Left out, role and tenant are their own.

    NotAllowed for more than they may themselves, and for who was let in by a token: that one's end would be none.
    InvalidInput says what to enter instead.
    """
    maker = _maker(actor)
    own_role, own_tenant_id = _standing(maker)
    role = role or own_role
    tenant_id = tenant.pk if tenant else own_tenant_id
    _check_ceiling(role, own_role)
    if own_tenant_id is not None and tenant_id != own_tenant_id:
        raise NotAllowed("a tenant's people make tokens for their own tenant; leave the tenant out")
    _check_tenant(role, has_tenant=tenant_id is not None)
    secret = new_secret()
    token = ApiToken(
        name=_checked_name(name),
        prefix=secret.prefix,
        digest=secret.digest,
        scopes=_checked_scopes(scopes, role),
        role=role,
        tenant_id=tenant_id,
        created_by=maker,
        expires_at=_checked_expiry(expires_at),
    )
    with transaction.atomic():
        token.save(force_insert=True)
        audit(actor, "create", "token", token.id, tenant_id=token.tenant_id, after=_told(token))
    return token, secret.text


def revoke_token(actor: Actor, token: ApiToken) -> ApiToken:
    """Let nobody in by it any more: here at once, in other processes within seconds. One that was revoked stays so."""
    with transaction.atomic():
        locked = ApiToken.objects.select_for_update().get(pk=token.pk)
        if locked.revoked_at is None:
            locked.revoked_at = timezone.now()
            locked.save(update_fields=["revoked_at"])
            audit(actor, "revoke", "token", locked.id, tenant_id=locked.tenant_id, before=_told(locked))
        transaction.on_commit(TOKENS.forget)
    return locked


def _maker(actor: Actor) -> User:
    if actor.user is None or actor.token_id is not None:
        raise NotAllowed("a token makes no tokens, which could outlive it; sign in with a password")
    return actor.user


def _standing(user: User) -> tuple[Role, Any]:
    standing = role_of(user)
    if standing is None:
        raise NotAllowed(f"{user.get_username()} has no role, and nothing that a token could do")
    return standing


def _check_ceiling(role: Role, own: Role) -> None:
    if not is_within(role, own):
        raise NotAllowed(f"the role {role} may more than {own}, which is yours; choose yours, or a lesser one")


def _check_tenant(role: Role, *, has_tenant: bool) -> None:
    if role.is_of_tenant != has_tenant:
        remedy = "name its tenant" if role.is_of_tenant else "leave the tenant out, or choose a tenant's role"
        raise InvalidInput(f"tenant: a token of the role {role} cannot be made so; {remedy}")


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= _LONGEST_NAME or "\0" in name:
        raise InvalidInput(f"name: say in 1 to {_LONGEST_NAME} characters what the token is for")
    return name


def _checked_scopes(scopes: Collection[str], role: Role) -> list[str]:
    if not scopes:
        raise InvalidInput(f"scopes: name at least one of {', '.join(SCOPES)}")
    if unknown := sorted(set(scopes) - set(SCOPES)):
        raise InvalidInput(f"scopes: there is no {unknown[0]!r}; choose of {', '.join(SCOPES)}")
    if useless := sorted(set(scopes) - scopes_of(role)):
        raise InvalidInput(f"scopes: the role {role} has no use for {useless[0]}; leave it out")
    return sorted(set(scopes))


def _checked_expiry(expires_at: datetime | None) -> datetime | None:
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput(
            f"expires_at: {expires_at:%Y-%m-%dT%H:%M:%SZ} is over; name a time to come, or null for never"
        )
    return expires_at


def _told(token: ApiToken) -> dict[str, Any]:
    return {
        "name": token.name,
        "prefix": token.prefix,
        "scopes": token.scopes,
        "role": token.role,
        "tenant": str(token.tenant_id) if token.tenant_id else None,
        "expires_at": token.expires_at and token.expires_at.isoformat(),
    }
