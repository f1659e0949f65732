from django.db import models
from django.db.models import Q

SYSTEM_ACTOR = "system"


class Pause(models.Model):
    """Somebody's word that a queue stands still: the whole of it, one tenant's messages, or one partition.

    It holds until it is lifted, whoever restarts in between. One that an operation needs is lifted by that alone.
    """

    queue = models.ForeignKey("queueapi.Queue", on_delete=models.CASCADE, related_name="pauses")
    tenant = models.ForeignKey("queueapi.Tenant", null=True, on_delete=models.CASCADE, related_name="pauses")
    partition = models.PositiveIntegerField(null=True)
    operation = models.ForeignKey("queueapi.Operation", null=True, on_delete=models.PROTECT, related_name="holds")
    reason = models.CharField(max_length=500)
    paused_by = models.CharField(max_length=150)
    paused_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-paused_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(tenant__isnull=True) | Q(partition__isnull=True), name="pause_of_tenant_or_partition"
            ),
            models.UniqueConstraint(
                fields=["queue"], condition=Q(tenant__isnull=True, partition__isnull=True), name="pause_once_per_queue"
            ),
            models.UniqueConstraint(
                fields=["queue", "tenant"],
                condition=Q(tenant__isnull=False, operation__isnull=True),
                name="pause_once_per_tenant",
            ),
            models.UniqueConstraint(
                fields=["queue", "tenant", "operation"],
                condition=Q(operation__isnull=False),
                name="pause_once_per_operation",
            ),
            models.CheckConstraint(
                condition=Q(operation__isnull=True) | Q(tenant__isnull=False), name="pause_of_operation_is_of_tenant"
            ),
            models.UniqueConstraint(
                fields=["queue", "partition"], condition=Q(partition__isnull=False), name="pause_once_per_partition"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.what} of {self.queue}: {self.reason}"

    @property
    def is_by_system(self) -> bool:
        """Whether a consumer paused itself, as something was wrong."""
        return self.paused_by == SYSTEM_ACTOR

    @property
    def is_of_everything(self) -> bool:
        return self.tenant_id is None and self.partition is None

    @property
    def what(self) -> str:
        """What stands still, in words."""
        if self.tenant is not None:
            return f"tenant {self.tenant}"
        return "everything" if self.partition is None else f"partition {self.partition}"
