"""Requests that are carried out once, however often they are sent: their keys are claimed, kept, freed, forgotten."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from queueapi.config import config
from queueapi.models import IdempotencyKey

# Longer than any request takes: after that, whoever carried it out has died.
LEASE: Final = timedelta(seconds=60)
# Nobody waits for long while old ones go.
CHUNK: Final = 2_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as far as it must be the same one when it is sent again."""

    principal: str
    key: str
    method: str
    path: str
    digest: str

    def is_of(self, row: IdempotencyKey) -> bool:
        return (self.method, self.path, self.digest) == (row.method, row.path, row.digest)


@dataclass(frozen=True, slots=True)
class Claim:
    """The key's row, and whether the request is now the claimant's to carry out."""

    row: IdempotencyKey
    is_ours: bool


def claim_key(asked: Asked) -> Claim:
    """Of two at once one has it; the database decides. Within a transaction the other waits for how that ends."""
    while True:
        try:
            with transaction.atomic():
                row = IdempotencyKey.objects.create(
                    principal=asked.principal,
                    key=asked.key,
                    method=asked.method,
                    path=asked.path,
                    digest=asked.digest,
                    lease_expires_at=timezone.now() + LEASE,
                )
            return Claim(row, is_ours=True)
        except IntegrityError:
            found = _found(asked)
            # It may have been freed meanwhile.
            if found is not None:
                return found


def keep_answer(row: IdempotencyKey, status: int, headers: Mapping[str, str], body: bytes | None) -> None:
    """From now on the request is answered with this. Nothing is kept for who has lost the claim."""
    held = IdempotencyKey.objects.filter(pk=row.pk, lease_expires_at=row.lease_expires_at)
    held.update(status=status, headers=dict(headers), body=body, lease_expires_at=None)


def free_key(row: IdempotencyKey) -> None:
    """The request came to nothing, and may be carried out again."""
    IdempotencyKey.objects.filter(pk=row.pk, lease_expires_at=row.lease_expires_at).delete()


def purge_keys(before: datetime, chunk: int = CHUNK) -> int:
    """Forget requests that were sent before then. How many there were."""
    removed = 0
    while ids := list(IdempotencyKey.objects.filter(created_at__lt=before).values_list("pk", flat=True)[:chunk]):
        IdempotencyKey.objects.filter(pk__in=ids).delete()
        removed += len(ids)
    return removed


def keys_kept_since() -> datetime:
    """Older ones are as if they had never been, whether they are gone yet or not."""
    return timezone.now() - timedelta(hours=config().rest.idempotency_hours)


def _found(asked: Asked) -> Claim | None:
    row = IdempotencyKey.objects.filter(principal=asked.principal, key=asked.key).first()
    if row is None:
        return None
    if row.created_at < keys_kept_since():
        IdempotencyKey.objects.filter(pk=row.pk).delete()
        return None
    if row.lease_expires_at is None or row.lease_expires_at > timezone.now() or not asked.is_of(row):
        return Claim(row, is_ours=False)
    return _taken_over(row)


def _taken_over(row: IdempotencyKey) -> Claim | None:
    """Its claimant has died. None: somebody else was faster."""
    held = IdempotencyKey.objects.filter(pk=row.pk, lease_expires_at=row.lease_expires_at)
    row.lease_expires_at = timezone.now() + LEASE
    return Claim(row, is_ours=True) if held.update(lease_expires_at=row.lease_expires_at) else None
