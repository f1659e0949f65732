"""Tables that the Spark job fills and pages read."""

from django.db import models


class LagCurrent(models.Model):
    """How far behind a queue's consumer is on one partition, as of the newest sample."""

    queue = models.ForeignKey("queueapi.Queue", on_delete=models.CASCADE, related_name="lag")
    partition = models.PositiveIntegerField()
    topic = models.CharField(max_length=249)
    consumer_group = models.CharField(max_length=249)
    end_offset = models.PositiveBigIntegerField()
    committed_offset = models.PositiveBigIntegerField(null=True)
    lag_messages = models.PositiveBigIntegerField()
    produced_per_s = models.FloatField(null=True)
    consumed_per_s = models.FloatField(null=True)
    as_of = models.DateTimeField()

    class Meta:
        ordering = ["queue", "partition"]
        verbose_name_plural = "current lag"
        indexes = [models.Index(fields=["topic", "partition", "id"], name="lag_current_by_topic")]
        constraints = [models.UniqueConstraint(fields=["queue", "partition"], name="lag_current_once_per_partition")]

    def __str__(self) -> str:
        return f"{self.topic}: {self.lag_messages}"


class PipelineRun(models.Model):
    """One batch of the pipeline. Its row is written with the batch's summaries, in one transaction."""

    query = models.CharField(max_length=50)
    batch_id = models.BigIntegerField()
    events = models.PositiveBigIntegerField()
    newest_event_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()

    class Meta:
        ordering = ["-finished_at"]
        constraints = [models.UniqueConstraint(fields=["query", "batch_id"], name="pipeline_batch_once")]

    def __str__(self) -> str:
        return f"{self.query} batch {self.batch_id}"
