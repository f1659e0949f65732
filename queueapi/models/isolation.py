import uuid
from typing import Final

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from queueapi.choices import OPEN_ISOLATION_STATES, IsolationState, OperationState

_UNDECIDED: Final = (IsolationState.REQUESTED,)


class IsolationRequest(models.Model):
    """A tenant's wish for queues of its own, what was decided on it, and how far that is carried out.

    queues      which of the shared queues, each by its name, with what is to be other than there
    decided_by  who approved or refused it; None: nobody had to
    decision    why, or by which rule
    cut         how far each shared partition reached when the last message of the tenant had come there, as
                `{queue id: [[partition, offset], ...]}`; empty: that is not known yet
    version     rises with every change of it: whoever changes it says which version they saw
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey("queueapi.Tenant", on_delete=models.CASCADE, related_name="isolation_requests")
    state = models.CharField(max_length=16, choices=IsolationState, default=IsolationState.REQUESTED)
    queues = models.JSONField()
    reason = models.CharField(max_length=500)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="isolation_requests"
    )
    requested_by_name = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="isolation_decisions"
    )
    decided_by_name = models.CharField(max_length=150, blank=True, default="")
    decided_at = models.DateTimeField(null=True)
    decision = models.CharField(max_length=500, blank=True, default="")

    # What carries it out, or last did.
    operation = models.ForeignKey("queueapi.Operation", null=True, on_delete=models.SET_NULL, related_name="+")
    # Why it has failed.
    error = models.TextField(blank=True, default="")
    cut = models.JSONField(default=dict)
    version = models.PositiveBigIntegerField(default=1)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["created_at", "id"], name="isolation_newest"),
            models.Index(fields=["tenant", "created_at"], name="isolation_of_tenant"),
            models.Index(fields=["state", "created_at"], name="isolation_by_state"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=IsolationState.values), name="isolation_state_is_legal"),
            models.UniqueConstraint(
                fields=["tenant"], condition=Q(state__in=OPEN_ISOLATION_STATES), name="isolation_one_open_per_tenant"
            ),
            models.CheckConstraint(
                condition=Q(state__in=_UNDECIDED, decided_at__isnull=True)
                | (~Q(state__in=_UNDECIDED) & Q(decided_at__isnull=False)),
                name="isolation_decided_exactly_when_so",
            ),
            # Who asked may take it back, no more.
            models.CheckConstraint(
                condition=Q(state=IsolationState.REFUSED)
                | Q(decided_by__isnull=True)
                | Q(requested_by__isnull=True)
                | ~Q(decided_by=F("requested_by")),
                name="isolation_approved_by_another",
            ),
            models.CheckConstraint(
                condition=~Q(error="") & Q(state=IsolationState.FAILED) | Q(error="") & ~Q(state=IsolationState.FAILED),
                name="isolation_error_exactly_when_failed",
            ),
        ]

    def __str__(self) -> str:
        return f"isolation of {self.tenant}"

    @property
    def state_choice(self) -> IsolationState:
        return IsolationState(self.state)

    @property
    def is_cancelled(self) -> bool:
        """Whether it came to nothing as somebody wanted it so, and nothing went wrong."""
        ends = (OperationState.CANCELLING, OperationState.CANCELLED)
        return self.state == IsolationState.FAILED and self.operation is not None and self.operation.state in ends

    @property
    def queue_names(self) -> list[str]:
        return [asked["name"] for asked in self.queues]


class IsolationComment(models.Model):
    """What somebody had to say on a request."""

    request = models.ForeignKey(IsolationRequest, on_delete=models.CASCADE, related_name="comments")
    author_name = models.CharField(max_length=150)
    at = models.DateTimeField(auto_now_add=True)
    text = models.CharField(max_length=2000)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.author_name}: {self.text}"
