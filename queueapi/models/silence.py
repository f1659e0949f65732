import uuid

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from queueapi.alerting.values import Silencing


class Silence(models.Model):
    """Somebody's word that of some alerts nobody is to be told for a while: of those that match all it names.

    subject_key  as `Subject.key`; empty: whatever they are about
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    rule = models.ForeignKey("queueapi.AlertRule", null=True, blank=True, on_delete=models.CASCADE)
    tenant = models.ForeignKey("queueapi.Tenant", null=True, blank=True, on_delete=models.CASCADE)
    queue = models.ForeignKey("queueapi.Queue", null=True, blank=True, on_delete=models.CASCADE)
    subject_key = models.CharField(max_length=300, blank=True, default="")
    reason = models.CharField(max_length=500)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(default=timezone.now)
    until = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["created_at", "id"], name="silence_newest")]
        constraints = [
            models.CheckConstraint(
                condition=Q(until__gt=F("created_at")),
                name="silence_ends_later",
                violation_error_message="until: use a time that is yet to come",
            ),
            models.CheckConstraint(
                condition=Q(rule__isnull=False) | Q(tenant__isnull=False) | Q(queue__isnull=False) | ~Q(subject_key=""),
                name="silence_of_something",
                violation_error_message="name a rule, a tenant, a queue or a subject; nothing silences everything",
            ),
        ]

    def __str__(self) -> str:
        return f"until {self.until:%Y-%m-%d %H:%M}: {self.reason}"

    @property
    def is_active(self) -> bool:
        return self.until > timezone.now()

    @property
    def plain(self) -> Silencing:
        """As an evaluation wants it."""
        return Silencing(self.rule_id, self.tenant_id, self.queue_id, self.subject_key)
