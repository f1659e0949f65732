import uuid
from typing import Final

from django.db import models
from django.db.models import Q

from queueapi.alerting.links import page_of
from queueapi.alerting.metrics import METRICS, SubjectKind
from queueapi.alerting.values import OpenAlert, Subject
from queueapi.choices import AlertMetric, AlertSeverity, AlertState

_ACKNOWLEDGED: Final = Q(acknowledged_at__isnull=False) & ~Q(acknowledged_by="")
_UNACKNOWLEDGED: Final = Q(acknowledged_at__isnull=True, acknowledged_by="")


class Alert(models.Model):
    """Something is as a rule says it should not be.

    rule         None: it was deleted; its name stays
    subject_key  what it is about, as `Subject.key`; `subject_name` is what that is called
    tenant       whose thing it is about; None: the system's
    since        when the threshold was exceeded first
    clear_since  since when the value is low enough for it to resolve
    told_at      when its rule's channels were to be told first; None: they were not, or there were none
    resolution   why it is over
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    rule = models.ForeignKey("queueapi.AlertRule", null=True, on_delete=models.SET_NULL, related_name="alerts")
    rule_name = models.CharField(max_length=100)
    metric = models.CharField(max_length=32, choices=AlertMetric)
    severity = models.CharField(max_length=16, choices=AlertSeverity)
    state = models.CharField(max_length=16, choices=AlertState, default=AlertState.FIRING)

    subject_key = models.CharField(max_length=300)
    subject_name = models.CharField(max_length=249)
    tenant = models.ForeignKey("queueapi.Tenant", null=True, on_delete=models.SET_NULL, related_name="alerts")
    queue = models.ForeignKey("queueapi.Queue", null=True, on_delete=models.SET_NULL, related_name="alerts")

    value = models.FloatField()
    threshold = models.FloatField()
    reason = models.CharField(max_length=1000)
    detail = models.CharField(max_length=500, blank=True, default="")
    since = models.DateTimeField()
    fired_at = models.DateTimeField()
    clear_since = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)
    escalated_at = models.DateTimeField(null=True)

    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, default="")
    note = models.CharField(max_length=500, blank=True, default="")
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering = ["-fired_at", "-id"]
        indexes = [
            models.Index(fields=["fired_at", "id"], name="alert_newest"),
            models.Index(fields=["state", "fired_at"], name="alert_by_state"),
            models.Index(fields=["tenant", "fired_at"], name="alert_of_tenant"),
            models.Index(fields=["resolved_at"], condition=Q(resolved_at__isnull=False), name="alert_by_resolution"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=AlertState.values), name="alert_state_is_legal"),
            models.UniqueConstraint(
                fields=["rule", "subject_key"],
                condition=~Q(state=AlertState.RESOLVED),
                name="alert_one_open_per_rule_and_subject",
            ),
            models.CheckConstraint(
                condition=Q(state=AlertState.RESOLVED, resolved_at__isnull=False)
                | (~Q(state=AlertState.RESOLVED) & Q(resolved_at__isnull=True)),
                name="alert_resolved_exactly_when_so",
            ),
            # Who sees to it is known, and nobody does of what fires or is silenced.
            models.CheckConstraint(
                condition=(Q(state=AlertState.ACKNOWLEDGED) & _ACKNOWLEDGED)
                | (Q(state__in=(AlertState.FIRING, AlertState.SILENCED)) & _UNACKNOWLEDGED)
                | (Q(state=AlertState.RESOLVED) & (_ACKNOWLEDGED | _UNACKNOWLEDGED)),
                name="alert_acknowledged_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule_name}: {self.subject_name}"

    @property
    def state_choice(self) -> AlertState:
        return AlertState(self.state)

    @property
    def severity_choice(self) -> AlertSeverity:
        return AlertSeverity(self.severity)

    @property
    def unit(self) -> str:
        return METRICS[AlertMetric(self.metric)].unit

    @property
    def link(self) -> str:
        """The path of the page that explains it: of a tenant's alert one that its people have as well."""
        return page_of(AlertMetric(self.metric), self.subject_name, self.queue_id)

    @property
    def subject(self) -> Subject:
        kind, _, identity = self.subject_key.partition(":")
        return Subject(SubjectKind(kind), self.subject_name, identity, self.tenant_id)

    @property
    def plain(self) -> OpenAlert:
        """As an evaluation wants it."""
        return OpenAlert(
            id=self.id,
            rule_id=self.rule_id,
            metric=AlertMetric(self.metric),
            subject=self.subject,
            state=self.state_choice,
            value=self.value,
            detail=self.detail,
            fired_at=self.fired_at,
            clear_since=self.clear_since,
            told_at=self.told_at,
            is_escalated=self.escalated_at is not None,
        )


class AlertEvaluation(models.Model):
    """When rules were last evaluated: one row, which whoever does so locks."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    at = models.DateTimeField(null=True)
    took_s = models.FloatField(default=0.0)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="alert_evaluation_one_row")]

    def __str__(self) -> str:
        return str(self.at)
