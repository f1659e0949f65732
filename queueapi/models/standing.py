from dataclasses import fields

from django.db import models

from queueapi.choices import ConsumerState
from queuecore.consuming.counting import ConsumptionCounts


class ConsumerStanding(models.Model):
    """How one consumer of a service instance is, as its host last told.

    counts         what it counted in its life, as `ConsumptionCounts`
    tenants        the same for each tenant, under its id, as far as it is more than 0; under an empty one what names no
                   tenant, under `other` what names one that cannot be, or came when there were too many to tell apart
    queue_version  of the queue as it was when this consumer was made so: its pauses hold
    handled_per_s  messages done in each second since its host told before; None: it tells for the first time
    budget         what each of these seconds was spent on, as `TimeBudget`
    """

    # Of a service instance, which is in the cluster's own database.
    service_id = models.CharField(max_length=100, db_index=True)
    queue = models.ForeignKey("queueapi.Queue", on_delete=models.CASCADE, related_name="consumers")
    consumer_group = models.CharField(max_length=249)
    partitions = models.JSONField(default=list)
    queue_version = models.PositiveBigIntegerField(default=0)
    state = models.CharField(max_length=16, choices=ConsumerState)
    reason = models.TextField(blank=True)
    since = models.DateTimeField()
    as_of = models.DateTimeField()

    counts = models.JSONField(default=dict)
    tenants = models.JSONField(default=dict)
    handled_per_s = models.FloatField(null=True)
    budget = models.JSONField(default=dict)

    # Whether its host is, for whoever has asked.
    is_alive = False

    class Meta:
        ordering = ["consumer_group", "service_id"]
        constraints = [
            # Two queues' groups may have the same name.
            models.UniqueConstraint(fields=["service_id", "queue", "consumer_group"], name="consumer_standing_once")
        ]

    def __str__(self) -> str:
        return f"{self.consumer_group} in {self.service_id}"

    @property
    def what(self) -> str:
        """What it reads, in words."""
        named = ", ".join(map(str, self.partitions))
        return f"partition {named}" if len(self.partitions) == 1 else f"partitions {named}"

    @property
    def statistics(self) -> dict[str, int]:
        """The counts under the names that ThingsBoard's statistics have."""
        known = {field.name for field in fields(ConsumptionCounts)}
        return ConsumptionCounts(**{name: count for name, count in self.counts.items() if name in known}).original()

    @property
    def retried(self) -> int:
        """Deliveries after a failed one."""
        return int(self.counts.get("tmp_failed", 0)) + int(self.counts.get("tmp_timed_out", 0))

    @property
    def given_up(self) -> int:
        return int(self.counts.get("dead_lettered", 0)) + int(self.counts.get("dropped", 0))

    @property
    def state_choice(self) -> ConsumerState:
        return ConsumerState(self.state)


class StaleCommits(models.Model):
    """How many commits of a queue's consumers were refused because another had the partition by then. Kept apart from
    how consumers are: who is refused ends, and is forgotten."""

    queue = models.OneToOneField("queueapi.Queue", on_delete=models.CASCADE, related_name="stale_commits")
    refused = models.PositiveBigIntegerField()
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["queue"]
        verbose_name_plural = "stale commits"

    def __str__(self) -> str:
        return f"{self.refused} refused"
