import uuid

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from queueapi.choices import ChannelKind, DeliveryState, NoticeKind


class AlertChannel(models.Model):
    """A way to tell people of alerts. What `options` holds depends on the kind: `queueapi.alerting.channels`. Some of
    it is secret, and shown to nobody.

    version  rises with every change of it, also of what is not shown
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=16, choices=ChannelKind)
    options = models.JSONField(default=dict)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    version = models.PositiveBigIntegerField(default=1, editable=False)

    class Meta:
        ordering = ["name"]
        indexes = [
            models.Index(fields=["name", "id"], name="alert_channel_by_name"),
            models.Index(fields=["created_at", "id"], name="alert_channel_newest"),
        ]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="alert_channel_name_unique",
                violation_error_message="name: another channel is called so, whatever the case; choose another name",
            ),
            models.CheckConstraint(condition=Q(kind__in=ChannelKind.values), name="alert_channel_kind_is_known"),
        ]

    def __str__(self) -> str:
        return self.name


class AlertDelivery(models.Model):
    """One message to one channel, made in the transaction of what it tells: nothing is lost. It is tried until it is
    sent, or given up.

    due_at  when it is tried next; whoever tries it sets this later, so that nobody else does meanwhile
    error   what went wrong last
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    channel = models.ForeignKey(AlertChannel, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    state = models.CharField(max_length=16, choices=DeliveryState, default=DeliveryState.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=1000, blank=True, default="")

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "alert deliveries"
        indexes = [
            models.Index(fields=["channel", "created_at", "id"], name="alert_delivery_of_channel"),
            models.Index(fields=["due_at"], condition=Q(state=DeliveryState.PENDING), name="alert_delivery_due"),
            models.Index(
                fields=["channel", "created_at", "id"],
                condition=Q(state=DeliveryState.PENDING),
                name="alert_delivery_next",
            ),
            models.Index(
                fields=["finished_at"], condition=Q(finished_at__isnull=False), name="alert_delivery_by_finish"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state=DeliveryState.PENDING, finished_at__isnull=True)
                | Q(state=DeliveryState.SENT, finished_at__isnull=False, attempts__gte=1)
                # What waited for a channel that was switched off is given up without a try.
                | Q(state=DeliveryState.FAILED, finished_at__isnull=False),
                name="alert_delivery_finished_exactly_when_so",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} to {self.channel_id}: {self.state}"


class AlertNotice(models.Model):
    """What one message says of one alert, as it was then. Each channel is told each thing of an alert once."""

    delivery = models.ForeignKey(AlertDelivery, on_delete=models.CASCADE, related_name="notices")
    alert = models.ForeignKey("queueapi.Alert", on_delete=models.CASCADE, related_name="notices", db_index=False)
    channel = models.ForeignKey(AlertChannel, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=16, choices=NoticeKind)
    told = models.JSONField()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["channel"], name="alert_notice_of_channel")]
        constraints = [models.UniqueConstraint(fields=["alert", "channel", "kind"], name="alert_notice_once")]

    def __str__(self) -> str:
        return f"{self.alert_id} {self.kind}"
