"""Who is behind a change."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from queueapi.models import AuditEntry
from queueapi.models.pause import SYSTEM_ACTOR


@dataclass(frozen=True, slots=True)
class Actor:
    """A person, or a part of the system where `user` is None.

    token_id    of the token by which they were let in, if by one
    tenant_id   for whom they act; None: for the system
    request_id  of the request that they sent, if it has one
    """

    name: str
    user: User | None = None
    address: str | None = None
    token_id: UUID | None = None
    tenant_id: UUID | None = None
    request_id: str | None = None


SYSTEM = Actor(SYSTEM_ACTOR)


def audit(
    actor: Actor,
    action: str,
    object_type: str,
    object_id: object,
    *,
    tenant_id: UUID | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    """Write one audit entry. Call it in the transaction of the change it tells about. `tenant_id` is whose thing it is;
    left out: that of who changes it."""
    AuditEntry.objects.create(
        actor=actor.user,
        actor_name=actor.name,
        token_id=actor.token_id,
        address=actor.address,
        request_id=actor.request_id,
        tenant_id=tenant_id or actor.tenant_id,
        action=action,
        object_type=object_type,
        object_id=str(object_id),
        before=before,
        after=after,
    )
