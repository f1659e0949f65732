import uuid
from datetime import datetime

from django.conf import settings
from django.db import models

from queueapi.choices import Role
from queueapi.models.account import TENANT_EXACTLY_FOR_ITS_ROLES


class ApiToken(models.Model):
    """What a program shows instead of a name and a password. The secret itself is known to whoever was given it alone.

    prefix  how it begins, by which it is found and told apart
    digest  the SHA-256 of all of it
    role    the most that it may do; less where whoever made it may less
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    scopes = models.JSONField()
    role = models.CharField(max_length=16, choices=Role)
    tenant = models.ForeignKey("queueapi.Tenant", null=True, on_delete=models.PROTECT, related_name="tokens")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="tokens")
    created_at = models.DateTimeField(auto_now_add=True)
    # None: never.
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["created_at"], name="token_newest")]
        constraints = [
            models.CheckConstraint(condition=TENANT_EXACTLY_FOR_ITS_ROLES, name="token_tenant_exactly_for_its_roles")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def role_choice(self) -> Role:
        return Role(self.role)

    def is_valid_at(self, now: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
