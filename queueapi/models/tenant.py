import uuid

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from queueapi.choices import TenantState
from queueapi.models.tenant_profile import DEFAULT_PROFILE, LONGEST_BURST_S, optional_limit, positive_where_given
from queueapi.quotas import QUOTAS, Quotas
from queuecore.topics import SYSTEM_TENANT


class Tenant(models.Model):
    """Whose messages these are. The system tenant owns the queues that everyone shares."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    description = models.CharField(max_length=500, blank=True, default="")
    profile = models.ForeignKey(
        "queueapi.TenantProfile", on_delete=models.PROTECT, related_name="tenants", default=DEFAULT_PROFILE
    )
    state = models.CharField(max_length=16, choices=TenantState, default=TenantState.ACTIVE)
    # Why it is suspended.
    reason = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    # Its own quotas. None: its profile's.
    messages_per_s = optional_limit()
    bytes_per_s = optional_limit()
    burst_s = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(LONGEST_BURST_S)]
    )
    partitions = optional_limit()
    stored_bytes = optional_limit()

    class Meta:
        ordering = ["name"]
        indexes = [
            models.Index(fields=["name", "id"], name="tenant_by_name"),
            models.Index(fields=["created_at", "id"], name="tenant_newest"),
        ]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="tenant_name_unique",
                violation_error_message="name: another tenant is called so, whatever the case; choose another name",
            ),
            models.CheckConstraint(
                condition=Q(state=TenantState.ACTIVE, reason="") | (Q(state=TenantState.SUSPENDED) & ~Q(reason="")),
                name="tenant_suspended_for_a_reason",
            ),
            *positive_where_given("tenant", *QUOTAS),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_system(self) -> bool:
        return self.id == SYSTEM_TENANT

    @property
    def state_choice(self) -> TenantState:
        return TenantState(self.state)

    @property
    def quotas(self) -> Quotas:
        """Those that hold: its own, else its profile's."""
        own = {name: getattr(self, name) for name in QUOTAS}
        return Quotas(**{name: getattr(self.profile, name) if value is None else value for name, value in own.items()})
