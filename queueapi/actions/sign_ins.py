"""Wrong passwords, and the lock-out that follows of too many. Whoever is locked out at one address is not at another: a
stranger cannot keep anybody from working."""

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from queueapi.actions.actor import Actor, audit
from queueapi.config import config
from queueapi.models import SignInFailures

# Strangers leave rows behind: older ones mean nothing any more.
_FORGOTTEN_AFTER: Final = timedelta(days=1)
_LONGEST_NAME: Final = 150
_LONGEST_ADDRESS: Final = 64


def locked_until(name: str, address: str | None) -> datetime | None:
    """Until when no password of this name is looked at from there; None: it is."""
    row = SignInFailures.objects.filter(**_key(name, address), locked_until__gt=timezone.now()).first()
    return None if row is None else row.locked_until


def record_failure(name: str, address: str | None) -> None:
    """A wrong password. After so many in a row, each not long after the last, there is a lock."""
    settings, now = config(), timezone.now()
    lock = timedelta(minutes=settings.lockout_minutes)
    with transaction.atomic():
        SignInFailures.objects.filter(last_at__lt=now - max(lock, _FORGOTTEN_AFTER)).delete()
        row, _ = SignInFailures.objects.select_for_update().get_or_create(
            **_key(name, address), defaults={"last_at": now}
        )
        row.failures = row.failures + 1 if row.last_at >= now - lock else 1
        row.last_at = now
        if row.failures >= settings.lockout_failures:
            row.locked_until, row.failures = now + lock, 0
            told = {"failures": settings.lockout_failures, "until": row.locked_until.isoformat()}
            audit(Actor(row.name, address=address), "lock_out", "user_name", row.name[:100], after=told)
        row.save()


def forget_failures(name: str, address: str | None) -> None:
    """The right password."""
    SignInFailures.objects.filter(**_key(name, address)).delete()


def _key(name: str, address: str | None) -> dict[str, str]:
    return {
        "name": name.casefold().replace("\0", "")[:_LONGEST_NAME],
        "address": (address or "")[:_LONGEST_ADDRESS],
    }
