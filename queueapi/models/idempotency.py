import uuid

from django.db import models
from django.db.models import Q


class IdempotencyKey(models.Model):
    """A request that may be sent again without being carried out again, and what it was answered with.

    Where a request changes the database alone, this row, the change and the answer are of one transaction: all of them
    are there, or none. Where it does more, the row comes first, under a lease that whoever died lets expire. Without a
    `status` it is still being carried out; without a `body` the answer was too large, or too secret, to be kept.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Who sent it: nobody is answered with what another asked for.
    principal = models.CharField(max_length=100)
    key = models.CharField(max_length=255)
    method = models.CharField(max_length=8)
    path = models.TextField()
    digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["principal", "key"], name="idempotency_key_once_per_principal"),
            models.CheckConstraint(
                condition=Q(status__isnull=True, lease_expires_at__isnull=False)
                | Q(status__gte=200, status__lt=500, lease_expires_at__isnull=True),
                name="idempotency_key_answered_or_leased",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.path} by {self.principal}"

    @property
    def is_answered(self) -> bool:
        return self.status is not None
