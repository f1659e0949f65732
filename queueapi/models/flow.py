"""What consumers did, for whom, and how evenly it is spread. Filled by the pipeline, read by pages."""

from django.db import models


class ProcessingFigures(models.Model):
    """What became of a queue's messages in one stretch of time that begins `at`, and how long attempts took, in
    milliseconds."""

    queue = models.ForeignKey("queueapi.Queue", on_delete=models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    polled = models.PositiveBigIntegerField(default=0)
    polled_bytes = models.PositiveBigIntegerField(default=0)
    handled = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    timed_out = models.PositiveBigIntegerField(default=0)
    retried = models.PositiveBigIntegerField(default=0)
    dead_lettered = models.PositiveBigIntegerField(default=0)
    dropped = models.PositiveBigIntegerField(default=0)
    p50_ms = models.FloatField(null=True)
    p95_ms = models.FloatField(null=True)
    p99_ms = models.FloatField(null=True)
    # How many attempts took up to each bound of `queuecore.metrics`: percentiles of longer stretches are made of these.
    buckets = models.JSONField(default=list)

    class Meta:
        abstract = True
        ordering = ["queue", "at"]
        indexes = [models.Index(fields=["at"], name="%(class)s_by_time")]
        constraints = [models.UniqueConstraint(fields=["queue", "at"], name="%(class)s_once")]

    def __str__(self) -> str:
        return f"{self.queue_id} at {self.at:%Y-%m-%d %H:%M}: {self.handled}"


class ProcessingMinute(ProcessingFigures):
    class Meta(ProcessingFigures.Meta):
        indexes = [models.Index(fields=["at"], name="processing_minute_by_time")]
        constraints = [models.UniqueConstraint(fields=["queue", "at"], name="processing_minute_once")]


class ProcessingHour(ProcessingFigures):
    class Meta(ProcessingFigures.Meta):
        pass


class ProcessingDay(ProcessingFigures):
    class Meta(ProcessingFigures.Meta):
        pass


class DeadLetterTrend(models.Model):
    """How many letters of one error came in one hour that begins `at`."""

    queue = models.ForeignKey("queueapi.Queue", on_delete=models.CASCADE, related_name="+", db_index=False)
    fingerprint = models.CharField(max_length=16)
    at = models.DateTimeField()
    letters = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["queue", "fingerprint", "at"]
        indexes = [models.Index(fields=["at"], name="letter_trend_by_time")]
        constraints = [models.UniqueConstraint(fields=["queue", "fingerprint", "at"], name="letter_trend_once")]

    def __str__(self) -> str:
        return f"{self.fingerprint} at {self.at:%Y-%m-%d %H:%M}: {self.letters}"


class TenantUsageDay(models.Model):
    """What one tenant used on one day, by UTC: messages and bytes that were stored and handled, and what its own queues
    held when that was last looked at; None where it has none, or nobody could tell."""

    # Not a reference: what a tenant used is charged for after it is gone.
    tenant_id = models.UUIDField()
    day = models.DateField()
    sent = models.PositiveBigIntegerField(default=0)
    sent_bytes = models.PositiveBigIntegerField(default=0)
    handled = models.PositiveBigIntegerField(default=0)
    handled_bytes = models.PositiveBigIntegerField(default=0)
    errors = models.PositiveBigIntegerField(default=0)
    dead_letters = models.PositiveBigIntegerField(default=0)
    stored_bytes = models.PositiveBigIntegerField(null=True)

    class Meta:
        ordering = ["-day", "tenant_id"]
        indexes = [models.Index(fields=["day", "tenant_id"], name="tenant_usage_by_day")]
        constraints = [models.UniqueConstraint(fields=["tenant_id", "day"], name="tenant_usage_once")]

    def __str__(self) -> str:
        return f"{self.tenant_id} on {self.day}: {self.handled}"


class PartitionHeat(models.Model):
    """How much of a queue's messages of the last minutes one partition had.

    share      of all of the queue's, 0 to 1
    entities   those that most of its messages were of: `[{"key", "is_uuid", "tenant_id", "messages"}]`, most first
    tenants    the same of tenants: `[{"tenant_id", "messages"}]`
    """

    queue = models.ForeignKey("queueapi.Queue", on_delete=models.CASCADE, related_name="heat", db_index=False)
    partition = models.PositiveIntegerField()
    messages = models.PositiveBigIntegerField(default=0)
    share = models.FloatField()
    is_hot = models.BooleanField(default=False)
    entities = models.JSONField(default=list)
    tenants = models.JSONField(default=list)
    as_of = models.DateTimeField()

    class Meta:
        ordering = ["queue", "partition"]
        verbose_name_plural = "partition heat"
        indexes = [models.Index(fields=["is_hot", "queue"], name="partition_heat_hot")]
        constraints = [models.UniqueConstraint(fields=["queue", "partition"], name="partition_heat_once")]

    def __str__(self) -> str:
        return f"{self.queue_id}[{self.partition}]: {self.share:.0%}"


class QueueSkew(models.Model):
    """How unevenly a queue's messages are spread, and what would change that.

    skew     the fullest partition's messages, of what each would have if all had the same
    what_if  `[{"partitions", "hash_function", "skew", "moved"}]`: the skew that another count or hash would give to the
             entities seen, and what part of the messages would go elsewhere
    """

    queue = models.OneToOneField("queueapi.Queue", on_delete=models.CASCADE, related_name="skew")
    skew = models.FloatField()
    entities_seen = models.PositiveIntegerField(default=0)
    what_if = models.JSONField(default=list)
    as_of = models.DateTimeField()

    class Meta:
        ordering = ["-skew"]

    def __str__(self) -> str:
        return f"{self.queue_id}: {self.skew:.2f}"
