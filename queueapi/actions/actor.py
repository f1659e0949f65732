"""Who is behind a change."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from queueapi.models import AuditEntry
from queueapi.models.pause import SYSTEM_ACTOR


@dataclass(frozen=True, slots=True)
class Actor:
    """A person, or a part of the system where `user` is None."""

    name: str
    user: User | None = None
    address: str | None = None


SYSTEM = Actor(SYSTEM_ACTOR)


def audit(
    actor: Actor,
    action: str,
    object_type: str,
    object_id: object,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    """Write one audit entry. Call it in the transaction of the change it tells about."""
    AuditEntry.objects.create(
        actor=actor.user,
        actor_name=actor.name,
        address=actor.address,
        action=action,
        object_type=object_type,
        object_id=str(object_id),
        before=before,
        after=after,
    )
