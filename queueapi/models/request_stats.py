"""What service instances asked of each other. Filled by the pipeline, read by pages."""

from django.db import models


class RequestFigures(models.Model):
    """One service instance's requests to one topic.

    lag_p50_ms ...  how long answers took; None where none came
    lag_buckets     how many took up to each bound of `queuecore.requests.LAG_BOUNDS_MS`
    """

    service_id = models.CharField(max_length=100)
    request_topic = models.CharField(max_length=249)
    pending = models.PositiveBigIntegerField(default=0)
    pending_limit = models.PositiveBigIntegerField(default=0)
    pending_memory_bytes = models.PositiveBigIntegerField(default=0)
    oldest_pending_ms = models.PositiveBigIntegerField(default=0)
    sent = models.PositiveBigIntegerField(default=0)
    answered = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    timed_out = models.PositiveBigIntegerField(default=0)
    not_stored = models.PositiveBigIntegerField(default=0)
    cancelled = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)
    late = models.PositiveBigIntegerField(default=0)
    orphans = models.PositiveBigIntegerField(default=0)
    lag_p50_ms = models.FloatField(null=True)
    lag_p95_ms = models.FloatField(null=True)
    lag_p99_ms = models.FloatField(null=True)
    lag_buckets = models.JSONField(default=list)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.service_id} to {self.request_topic}: {self.pending}"


class RequestCurrent(RequestFigures):
    """As of the newest sample: what is pending then; the counts are of the minute before.

    age_buckets     of those that are pending, how many wait up to each of these bounds; empty where nobody told
    """

    age_buckets = models.JSONField(default=list)
    as_of = models.DateTimeField()

    class Meta:
        ordering = ["request_topic", "service_id"]
        indexes = [
            models.Index(fields=["as_of"], name="request_current_by_time"),
            models.Index(fields=["pending", "id"], name="request_current_by_pending"),
        ]
        constraints = [models.UniqueConstraint(fields=["service_id", "request_topic"], name="request_current_once")]


class RequestHistory(RequestFigures):
    """Of one stretch of time that begins `at`: the most that was pending, and what was counted."""

    at = models.DateTimeField()

    class Meta:
        abstract = True
        ordering = ["request_topic", "service_id", "at"]
        indexes = [models.Index(fields=["at"], name="%(class)s_by_time")]
        constraints = [models.UniqueConstraint(fields=["service_id", "request_topic", "at"], name="%(class)s_once")]


class RequestStats(RequestHistory):
    """Of a minute."""

    class Meta(RequestHistory.Meta):
        verbose_name_plural = "request stats"
        indexes = [models.Index(fields=["at"], name="request_stats_by_time")]
        constraints = [models.UniqueConstraint(fields=["service_id", "request_topic", "at"], name="request_stats_once")]


class RequestHour(RequestHistory):
    class Meta(RequestHistory.Meta):
        pass


class RequestDay(RequestHistory):
    class Meta(RequestHistory.Meta):
        pass
