import uuid
from typing import Any, Final

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower

from queueapi.quotas import QUOTAS

DEFAULT_PROFILE: Final = uuid.UUID("13814000-1dd2-11b2-8080-80808080d0d0")
LONGEST_BURST_S: Final = 3600
# What every database counts up to, and every clock.
_MOST: Final = 2**53


def optional_limit(**options: Any) -> "models.PositiveBigIntegerField[int | None, int | None]":
    """A number from 1 on; none: no limit."""
    validators = [MinValueValidator(1), MaxValueValidator(_MOST)]
    return models.PositiveBigIntegerField(null=True, blank=True, validators=validators, **options)


def positive_where_given(model: str, *names: str) -> list[models.CheckConstraint]:
    return [
        models.CheckConstraint(
            condition=Q(**{f"{name}__isnull": True}) | Q(**{f"{name}__gte": 1}),
            name=f"{model}_{name}_positive",
            violation_error_message=f"{name}: use 1 or more, or leave it out",
        )
        for name in names
    ]


class TenantProfile(models.Model):
    """What the tenants that have it may use, and what queues of their own may be like.

    Where a limit is empty, there is none. The default profile is always there: who has no other has that.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    description = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    # Of queues that are one tenant's own.
    max_queues = optional_limit()
    max_partitions_per_queue = optional_limit()
    min_retention_ms = optional_limit()
    max_retention_ms = optional_limit()
    # Empty: all there are.
    submit_strategies = models.JSONField(default=list, blank=True)
    processing_strategies = models.JSONField(default=list, blank=True)
    approves_isolation = models.BooleanField(default=False)
    # What a service must have to consume its tenants' own queues, where these do not ask for another; empty: nothing.
    label = models.CharField(max_length=100, blank=True, default="")

    # Its tenants' quotas, as `Quotas` has them, but for those who have their own.
    messages_per_s = optional_limit()
    bytes_per_s = optional_limit()
    burst_s = models.PositiveIntegerField(
        default=5, validators=[MinValueValidator(1), MaxValueValidator(LONGEST_BURST_S)]
    )
    partitions = optional_limit()
    stored_bytes = optional_limit()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="tenant_profile_name_unique",
                violation_error_message="name: another profile is called so, whatever the case; choose another name",
            ),
            models.CheckConstraint(
                condition=Q(min_retention_ms__isnull=True)
                | Q(max_retention_ms__isnull=True)
                | Q(max_retention_ms__gte=F("min_retention_ms")),
                name="tenant_profile_retention_in_order",
                violation_error_message="max_retention_ms: use no less than min_retention_ms",
            ),
            *positive_where_given(
                "tenant_profile",
                *("max_queues", "max_partitions_per_queue", "min_retention_ms", "max_retention_ms"),
                *QUOTAS,
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_default(self) -> bool:
        return self.id == DEFAULT_PROFILE

    def retention_ms(self, usual_ms: int) -> int:
        """For how long its tenants' own queues keep messages: as usual, or the nearest to that which it allows."""
        longest = usual_ms if self.max_retention_ms is None else min(usual_ms, self.max_retention_ms)
        return max(longest, self.min_retention_ms or 0)
