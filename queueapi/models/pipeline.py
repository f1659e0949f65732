"""What the pipeline itself did."""

from datetime import timedelta

from django.db import models


class PipelineRun(models.Model):
    """One batch of the pipeline. Its row is written with the batch's summaries, in one transaction.

    events   all that were new, those that were unusable among them
    rows     of summaries that it wrote
    offsets  where reading goes on behind it, by partition: what is below is in the summaries, whoever reads it again
    """

    query = models.CharField(max_length=50)
    batch_id = models.BigIntegerField()
    events = models.PositiveBigIntegerField()
    offsets = models.JSONField(default=dict)
    unusable = models.PositiveBigIntegerField(default=0)
    rows = models.PositiveBigIntegerField(default=0)
    newest_event_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()

    class Meta:
        ordering = ["-finished_at"]
        constraints = [models.UniqueConstraint(fields=["query", "batch_id"], name="pipeline_batch_once")]

    def __str__(self) -> str:
        return f"{self.query} batch {self.batch_id}"

    @property
    def took(self) -> timedelta:
        return self.finished_at - self.started_at

    @property
    def lag(self) -> timedelta | None:
        """How old the newest event was when its figures were there; None: there was none."""
        return None if self.newest_event_at is None else self.finished_at - self.newest_event_at


class PipelineStanding(models.Model):
    """How the pipeline is: one row, written by whoever runs it, whatever came of that.

    error           why the last run failed; empty where it did not
    failed_runs     how many failed, one after the other
    backlog_events  how many events waited when the last run ended
    store_id        of whose events the summaries are made; empty: of whoever's that come next
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    ran_at = models.DateTimeField()
    succeeded_at = models.DateTimeField(null=True)
    took_s = models.FloatField(default=0.0)
    error = models.TextField(blank=True, default="")
    code = models.CharField(max_length=50, blank=True, default="")
    failed_runs = models.PositiveIntegerField(default=0)
    backlog_events = models.PositiveBigIntegerField(null=True)
    store_id = models.CharField(max_length=32, blank=True, default="")

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="pipeline_standing_one_row")]

    def __str__(self) -> str:
        return self.error or "well"
