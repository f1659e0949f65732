import uuid

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower

from queuecore.topics import SYSTEM_TENANT, ServiceType, TopicPartitionInfo


class Queue(models.Model):
    """A named stream of one service type. Name and topic never change: stored messages depend on them."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey("queueapi.Tenant", on_delete=models.PROTECT, related_name="queues")
    name = models.CharField(max_length=100)
    topic = models.CharField(max_length=180)
    service_type = models.CharField(
        max_length=32, choices=[(kind.value, kind.value) for kind in ServiceType], default=ServiceType.TB_RULE_ENGINE
    )
    partitions = models.PositiveIntegerField(default=3, validators=[MinValueValidator(1), MaxValueValidator(1000)])
    handler = models.CharField(max_length=100)
    poll_interval_ms = models.PositiveIntegerField(default=25, validators=[MinValueValidator(1)])
    retries = models.PositiveIntegerField(default=3, validators=[MaxValueValidator(1000)])
    retry_pause_ms = models.PositiveIntegerField(default=200)
    max_retry_pause_ms = models.PositiveIntegerField(default=5000)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(Lower("name"), "tenant", name="queue_name_unique_per_tenant"),
            models.UniqueConstraint("topic", "tenant", name="queue_topic_unique_per_tenant"),
            models.CheckConstraint(condition=models.Q(partitions__gte=1), name="queue_has_partitions"),
            models.CheckConstraint(
                condition=models.Q(max_retry_pause_ms__gte=models.F("retry_pause_ms")),
                name="queue_longest_pause_not_below_first",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def only_tenant_id(self) -> uuid.UUID | None:
        """The one tenant whose messages it takes; None where it takes everyone's."""
        return None if self.tenant_id == SYSTEM_TENANT else self.tenant_id

    def partition_infos(self) -> list[TopicPartitionInfo]:
        return [self.partition_info(number) for number in range(self.partitions)]

    def partition_info(self, partition: int) -> TopicPartitionInfo:
        return TopicPartitionInfo(self.topic, partition, self.tenant_id)
