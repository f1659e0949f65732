import uuid

from django.conf import settings
from django.db import models

from queueapi.choices import FINAL_OPERATION_STATES, PAUSABLE_OPERATION_STATES, OperationState


class Operation(models.Model):
    """A change under way. This row is the truth; the Celery task is only its wake-up.

    Whoever runs it holds the lease, and extends it as it goes on: a task delivered twice finds the lease taken,
    a runner that died lets it expire, and the sweeper sends another wake-up.

    One that waits has no runner: until `due_at` for something to happen, or while `paused_at` is set for a person.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=50, db_index=True)
    summary = models.CharField(max_length=200)
    state = models.CharField(max_length=16, choices=OperationState, default=OperationState.PENDING)
    params = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    error = models.TextField(blank=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    lease_owner = models.CharField(max_length=100, blank=True)
    lease_expires_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    # Whose it is: whose people or tokens started it, or whose queues it is about; None: the system's.
    tenant = models.ForeignKey("queueapi.Tenant", null=True, on_delete=models.SET_NULL, related_name="operations")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    woken_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["state", "lease_expires_at"])]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(finished_at__isnull=False, state__in=FINAL_OPERATION_STATES)
                | (models.Q(finished_at__isnull=True) & ~models.Q(state__in=FINAL_OPERATION_STATES)),
                name="operation_finished_exactly_when_final",
            ),
            models.CheckConstraint(condition=models.Q(done__lte=models.F("total")), name="operation_done_within_total"),
        ]

    def __str__(self) -> str:
        return self.summary

    @property
    def state_choice(self) -> OperationState:
        return OperationState(self.state)

    @property
    def is_paused(self) -> bool:
        """Whether it waits for somebody to resume it."""
        return self.paused_at is not None and self.state in PAUSABLE_OPERATION_STATES

    @property
    def percent(self) -> int:
        return self.done * 100 // self.total if self.total else 0


class OperationLogEntry(models.Model):
    """One line of what an operation did."""

    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="log")
    at = models.DateTimeField(auto_now_add=True)
    text = models.TextField()

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "operation log entries"

    def __str__(self) -> str:
        return self.text
