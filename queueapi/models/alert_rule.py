import uuid
from typing import Final

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower

from queueapi.alerting.metrics import METRICS, SubjectKind
from queueapi.alerting.values import Rule
from queueapi.choices import AlertMetric, AlertSeverity

LONGEST_S: Final = 7 * 24 * 3600

_METRICS_OF: Final = {
    kind: tuple(metric.value for metric, told in METRICS.items() if told.kind == kind) for kind in SubjectKind
}
# Rules that are always there are known by these ids.
_DEFAULTS: Final = uuid.UUID("13814000-1dd2-11b2-8080-8080808a1e27")


def default_rule_id(metric: AlertMetric) -> uuid.UUID:
    return uuid.uuid5(_DEFAULTS, metric.value)


def _seconds(default: int | None = 0) -> "models.PositiveIntegerField[int, int]":
    return models.PositiveIntegerField(default=default, validators=[MaxValueValidator(LONGEST_S)])


class AlertRule(models.Model):
    """When an alert fires, of what, and who is told.

    threshold         it fires when the value is above this for `for_s`
    resolve_at        and resolves when the value is this or less for `resolve_for_s`; None: the threshold
    tenant, queue, request_topic
                      for what it is, where it is not for everything: for that it takes the place of wider rules
    escalate_after_s  who is told besides when nobody has acknowledged it for so long; None: nobody
    version           rises with every change of it
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    description = models.CharField(max_length=500, blank=True, default="")
    metric = models.CharField(max_length=32, choices=AlertMetric)
    severity = models.CharField(max_length=16, choices=AlertSeverity, default=AlertSeverity.WARNING)
    enabled = models.BooleanField(default=True)

    threshold = models.FloatField(validators=[MinValueValidator(0)])
    resolve_at = models.FloatField(null=True, blank=True, validators=[MinValueValidator(0)])
    for_s = _seconds()
    resolve_for_s = _seconds()

    tenant = models.ForeignKey(
        "queueapi.Tenant", null=True, blank=True, on_delete=models.CASCADE, related_name="alert_rules"
    )
    queue = models.ForeignKey(
        "queueapi.Queue", null=True, blank=True, on_delete=models.CASCADE, related_name="alert_rules"
    )
    request_topic = models.CharField(max_length=249, blank=True, default="")

    channels = models.ManyToManyField("queueapi.AlertChannel", blank=True, related_name="rules")
    escalate_after_s = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(LONGEST_S)]
    )
    escalation_channels = models.ManyToManyField("queueapi.AlertChannel", blank=True, related_name="escalating_rules")

    created_at = models.DateTimeField(auto_now_add=True)
    version = models.PositiveBigIntegerField(default=1, editable=False)

    class Meta:
        ordering = ["name"]
        indexes = [
            models.Index(fields=["name", "id"], name="alert_rule_by_name"),
            models.Index(fields=["created_at", "id"], name="alert_rule_newest"),
        ]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="alert_rule_name_unique",
                violation_error_message="name: another rule is called so, whatever the case; choose another name",
            ),
            models.CheckConstraint(condition=Q(metric__in=AlertMetric.values), name="alert_rule_metric_is_known"),
            models.CheckConstraint(condition=Q(severity__in=AlertSeverity.values), name="alert_rule_severity_is_known"),
            models.CheckConstraint(
                condition=Q(threshold__gte=0)
                & (Q(resolve_at__isnull=True) | Q(resolve_at__gte=0, resolve_at__lte=F("threshold"))),
                name="alert_rule_limits_in_order",
                violation_error_message="resolve_at: use no more than threshold; left out, it is the threshold",
            ),
            models.CheckConstraint(
                condition=Q(tenant__isnull=True, queue__isnull=True)
                | Q(tenant__isnull=True, request_topic="")
                | Q(queue__isnull=True, request_topic=""),
                name="alert_rule_has_one_scope",
                violation_error_message="name one of tenant, queue and request_topic; with none it is for everything",
            ),
            models.CheckConstraint(
                condition=Q(tenant__isnull=True, queue__isnull=True) | Q(metric__in=_METRICS_OF[SubjectKind.QUEUE]),
                name="alert_rule_of_queues_has_their_metric",
                violation_error_message=f"a rule for a tenant or a queue is about one of "
                f"{', '.join(_METRICS_OF[SubjectKind.QUEUE])}",
            ),
            models.CheckConstraint(
                condition=Q(request_topic="") | Q(metric__in=_METRICS_OF[SubjectKind.REQUESTS]),
                name="alert_rule_of_requests_has_their_metric",
                violation_error_message=f"a rule for a request topic is about one of "
                f"{', '.join(_METRICS_OF[SubjectKind.REQUESTS])}",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def metric_choice(self) -> AlertMetric:
        return AlertMetric(self.metric)

    @property
    def severity_choice(self) -> AlertSeverity:
        return AlertSeverity(self.severity)

    @property
    def is_default(self) -> bool:
        """Whether it came with the system: such a one is changed or switched off, not deleted."""
        return self.id == default_rule_id(self.metric_choice)

    @property
    def unit(self) -> str:
        return METRICS[self.metric_choice].unit

    @property
    def plain(self) -> Rule:
        """As an evaluation wants it. For many, fetch their channels before."""
        is_escalated = bool(self.escalation_channels.all())
        return Rule(
            id=self.id,
            metric=self.metric_choice,
            threshold=self.threshold,
            resolve_at=self.threshold if self.resolve_at is None else self.resolve_at,
            for_s=self.for_s,
            resolve_for_s=self.resolve_for_s,
            enabled=self.enabled,
            tenant_id=self.tenant_id,
            queue_id=self.queue_id,
            request_topic=self.request_topic,
            tells=bool(self.channels.all()),
            escalate_after_s=self.escalate_after_s if is_escalated else None,
        )


class AlertBreach(models.Model):
    """A rule's threshold is exceeded, and not for long enough yet."""

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="breaches", db_index=False)
    subject_key = models.CharField(max_length=300)
    since = models.DateTimeField()

    class Meta:
        ordering = ["rule", "subject_key"]
        verbose_name_plural = "alert breaches"
        constraints = [models.UniqueConstraint(fields=["rule", "subject_key"], name="alert_breach_once")]

    def __str__(self) -> str:
        return f"{self.rule_id} {self.subject_key}"
