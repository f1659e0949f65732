"""Who somebody is, as far as rights go."""

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist

from queueapi.access.table import Resource, Verb, allows, is_within, scope_of, scopes_of
from queueapi.choices import Role
from queueapi.models import ApiToken


@dataclass(frozen=True, slots=True)
class Principal:
    """A person, or a program with a person's token.

    roles      a person's own, and that of the token if there is one: all of them must allow what is asked for
    tenant_id  whose things they see, besides what the system shares; None: everyone's
    scopes     what the token is for; None: there is no token, and everything the role allows
    """

    user_id: int
    roles: tuple[Role, ...]
    tenant_id: UUID | None
    scopes: frozenset[str] | None = None

    def may(self, verb: Verb, resource: Resource) -> bool:
        in_scope = self.scopes is None or scope_of(verb, resource) in self.scopes
        return in_scope and all(allows(role, verb, resource) for role in self.roles)

    @property
    def role(self) -> Role:
        """The one that limits it."""
        own, last = self.roles[0], self.roles[-1]
        return last if is_within(last, own) else own

    @property
    def effective_scopes(self) -> frozenset[str]:
        """What a token would need to be allowed the same."""
        allowed = frozenset.intersection(*(scopes_of(role) for role in self.roles))
        return allowed if self.scopes is None else allowed & self.scopes


def principal_of(user: User, token: ApiToken | None = None) -> Principal | None:
    """None for who has no role, and for a token whose tenant is not that of whoever made it any more."""
    standing = role_of(user)
    if standing is None:
        return None
    role, tenant_id = standing
    if token is None:
        return Principal(user.pk, (role,), tenant_id)
    if None not in (tenant_id, token.tenant_id) and tenant_id != token.tenant_id:
        return None
    roles = (role, token.role_choice)
    return Principal(user.pk, roles, token.tenant_id or tenant_id, frozenset(token.scopes))


def role_of(user: User) -> tuple[Role, UUID | None] | None:
    """A user's role, and the tenant it is for. Who was made by `manage.py createsuperuser` has no account, and is an
    administrator: the way in when nobody else is left."""
    try:
        return user.account.role_choice, user.account.tenant_id
    except ObjectDoesNotExist:
        return (Role.ADMINISTRATOR, None) if user.is_superuser else None
