from typing import Final

from django.conf import settings
from django.db import models
from django.db.models import Q

from queueapi.choices import TENANT_ROLES, Role

TENANT_EXACTLY_FOR_ITS_ROLES: Final = Q(role__in=TENANT_ROLES, tenant__isnull=False) | (
    ~Q(role__in=TENANT_ROLES) & Q(tenant__isnull=True)
)


class Account(models.Model):
    """What a user is here to do, and for which tenant, if for one. A user without an account may do nothing, but for
    one that Django's own `createsuperuser` has made."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="account"
    )
    role = models.CharField(max_length=16, choices=Role)
    tenant = models.ForeignKey("queueapi.Tenant", null=True, on_delete=models.PROTECT, related_name="accounts")

    class Meta:
        ordering = ["user"]
        constraints = [
            models.CheckConstraint(condition=TENANT_EXACTLY_FOR_ITS_ROLES, name="account_tenant_exactly_for_its_roles")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role}"

    @property
    def role_choice(self) -> Role:
        return Role(self.role)
