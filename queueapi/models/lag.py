"""How far behind consumers are. Filled by the pipeline, read by pages."""

from django.db import models

from queueapi.choices import LagStatus

# Below all lags where samples do not tell: what is null has no place in an order that both databases agree on. A part
# of the text, and no parameter, as an index is found by the same expression alone.
KNOWN_LAG_S = models.Func("lag_seconds", template="COALESCE(%(expressions)s, -1e0)", output_field=models.FloatField())
# Whether a partition is in trouble, for an order of the worst first; told in the same way for the same reason.
IS_TROUBLED = models.Func(
    "status",
    template=f"(CASE WHEN %(expressions)s = '{LagStatus.OK.value}' THEN 0 ELSE 1 END)",
    output_field=models.IntegerField(),
)


class LagCurrent(models.Model):
    """How far behind a queue's consumer is on one partition, as of the newest sample.

    lag_seconds     how long ago what the group is at was stored; None where samples do not tell
    trend_per_s     by how many messages the lag grows each second; below 0 it shrinks
    drain_eta_s     when it will have caught up, if nothing changes; None where it never would, or nothing is known
    oldest_age_s    how old the oldest message is that waits
    reason          one sentence that explains the status
    status_since    when it became so
    """

    queue = models.ForeignKey("queueapi.Queue", on_delete=models.CASCADE, related_name="lag")
    partition = models.PositiveIntegerField()
    topic = models.CharField(max_length=249)
    consumer_group = models.CharField(max_length=249)
    end_offset = models.PositiveBigIntegerField()
    committed_offset = models.PositiveBigIntegerField(null=True)
    lag_messages = models.PositiveBigIntegerField()
    lag_seconds = models.FloatField(null=True)
    produced_per_s = models.FloatField(null=True)
    consumed_per_s = models.FloatField(null=True)
    trend_per_s = models.FloatField(null=True)
    drain_eta_s = models.FloatField(null=True)
    oldest_age_s = models.FloatField(null=True)
    status = models.CharField(max_length=8, choices=LagStatus, default=LagStatus.OK)
    reason = models.CharField(max_length=300, blank=True, default="")
    status_since = models.DateTimeField(null=True)
    as_of = models.DateTimeField()

    class Meta:
        ordering = ["queue", "partition"]
        verbose_name_plural = "current lag"
        indexes = [
            models.Index(fields=["topic", "partition", "id"], name="lag_current_by_topic"),
            models.Index(fields=["status", "lag_seconds"], name="lag_current_worst"),
            models.Index(fields=["lag_messages", "id"], name="lag_current_by_messages"),
            models.Index(KNOWN_LAG_S, "id", name="lag_current_by_seconds"),
            models.Index(IS_TROUBLED, KNOWN_LAG_S, "id", name="lag_current_worst_first"),
        ]
        constraints = [models.UniqueConstraint(fields=["queue", "partition"], name="lag_current_once_per_partition")]

    def __str__(self) -> str:
        return f"{self.topic}: {self.lag_messages}"

    @property
    def status_choice(self) -> LagStatus:
        return LagStatus(self.status)


class LagHistory(models.Model):
    """One queue's lag, all partitions together, in one stretch of time that begins `at`.

    lag_messages, lag_seconds   the most there was in the stretch
    produced, consumed          messages in the stretch
    status                      the worst there was
    samples                     of how many samples of partitions it is made
    """

    queue = models.ForeignKey("queueapi.Queue", on_delete=models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    lag_messages = models.PositiveBigIntegerField()
    lag_seconds = models.FloatField(null=True)
    produced = models.PositiveBigIntegerField(default=0)
    consumed = models.PositiveBigIntegerField(default=0)
    status = models.CharField(max_length=8, choices=LagStatus, default=LagStatus.OK)
    samples = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True
        ordering = ["queue", "at"]
        indexes = [models.Index(fields=["at"], name="%(class)s_by_time")]
        constraints = [models.UniqueConstraint(fields=["queue", "at"], name="%(class)s_once")]

    def __str__(self) -> str:
        return f"{self.queue_id} at {self.at:%Y-%m-%d %H:%M}: {self.lag_messages}"


class LagMinute(LagHistory):
    class Meta(LagHistory.Meta):
        pass


class LagHour(LagHistory):
    class Meta(LagHistory.Meta):
        pass


class LagDay(LagHistory):
    class Meta(LagHistory.Meta):
        pass
