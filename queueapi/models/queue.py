import uuid
from enum import StrEnum

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower

from queuecore.deadletter.policy import OnLimit
from queuecore.delivery import Delivery
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.submit.strategies import DEFAULT_BATCH_SIZE, SubmitStrategyType
from queuecore.topics import SYSTEM_TENANT, ServiceType, TopicPartitionInfo, dead_letter_partition, state_partition


def _choice(kinds: type[StrEnum], default: StrEnum) -> "models.CharField[str, str]":
    """One of an enumeration's values. What is none of them is refused with those there are."""
    return models.CharField(
        max_length=32,
        choices=[(kind.value, kind.value) for kind in kinds],
        default=default.value,
        error_messages={"invalid_choice": f"there is no %(value)r; choose one of {', '.join(kinds)}"},
    )


def _at_least(field: str, least: float) -> models.CheckConstraint:
    message = f"{field}: use {least:g} or more"
    return models.CheckConstraint(
        condition=models.Q(**{f"{field}__gte": least}), name=f"queue_{field}_in_range", violation_error_message=message
    )


class Queue(models.Model):
    """A named stream of one service type, and how it is consumed. Name, topic, partitions and service type never
    change: stored messages depend on them."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey("queueapi.Tenant", on_delete=models.PROTECT, related_name="queues")
    name = models.CharField(max_length=100)
    topic = models.CharField(max_length=180)
    service_type = _choice(ServiceType, ServiceType.TB_RULE_ENGINE)
    partitions = models.PositiveIntegerField(default=3, validators=[MinValueValidator(1), MaxValueValidator(1000)])
    created_at = models.DateTimeField(auto_now_add=True)

    handler = models.CharField(max_length=100)
    handler_options = models.JSONField(default=dict, blank=True)
    delivery = _choice(Delivery, Delivery.AT_LEAST_ONCE)
    consumer_per_partition = models.BooleanField(default=True)
    concurrency = models.PositiveIntegerField(default=4, validators=[MinValueValidator(1), MaxValueValidator(1000)])
    poll_interval_ms = models.PositiveIntegerField(default=25, validators=[MinValueValidator(1)])
    pack_processing_timeout_ms = models.PositiveIntegerField(default=60_000, validators=[MinValueValidator(1)])
    state_topic = models.CharField(max_length=180, blank=True, default="")
    # What a service instance must have to consume it; empty: nothing.
    label = models.CharField(max_length=100, blank=True, default="")

    submit_strategy = _choice(SubmitStrategyType, SubmitStrategyType.BURST)
    batch_size = models.PositiveIntegerField(default=DEFAULT_BATCH_SIZE, validators=[MinValueValidator(1)])

    processing_strategy = _choice(ProcessingStrategyType, ProcessingStrategyType.SKIP_ALL_FAILURES)
    # 0: without limit.
    retries = models.PositiveIntegerField(default=3, validators=[MaxValueValidator(1000)])
    failure_percentage = models.FloatField(default=0, validators=[MinValueValidator(0), MaxValueValidator(100)])
    retry_pause_ms = models.PositiveIntegerField(default=200)
    max_retry_pause_ms = models.PositiveIntegerField(default=5000)

    dlq_enabled = models.BooleanField(default=True)
    # Empty: the queue's own topic with `.dlq`.
    dlq_topic = models.CharField(max_length=249, blank=True, default="")
    # 1: no limit.
    dlq_max_ratio = models.FloatField(default=1, validators=[MaxValueValidator(1)])
    # 0: no limit.
    dlq_max_count = models.PositiveIntegerField(default=0)
    dlq_window_s = models.PositiveIntegerField(default=60, validators=[MinValueValidator(1)])
    dlq_on_limit = _choice(OnLimit, OnLimit.PAUSE_PARTITION)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                "tenant",
                name="queue_name_unique_per_tenant",
                violation_error_message="name: another queue is called so, whatever the case; choose another name",
            ),
            models.UniqueConstraint(
                "topic",
                "tenant",
                name="queue_topic_unique_per_tenant",
                violation_error_message="topic: this is another queue's; choose another topic",
            ),
            models.CheckConstraint(condition=models.Q(partitions__gte=1), name="queue_has_partitions"),
            models.CheckConstraint(
                condition=models.Q(max_retry_pause_ms__gte=models.F("retry_pause_ms")),
                name="queue_longest_pause_not_below_first",
                violation_error_message="max_retry_pause_ms: use no less than retry_pause_ms",
            ),
            *(
                _at_least(field, 1)
                for field in (
                    "concurrency", "poll_interval_ms", "pack_processing_timeout_ms", "batch_size", "dlq_window_s"
                )
            ),
            models.CheckConstraint(
                condition=models.Q(failure_percentage__gte=0, failure_percentage__lte=100),
                name="queue_failure_percentage_in_range",
                violation_error_message="failure_percentage: use 0 (off) to 100, it is in percent",
            ),
            models.CheckConstraint(
                condition=models.Q(dlq_max_ratio__gt=0, dlq_max_ratio__lte=1),
                name="queue_dlq_max_ratio_in_range",
                violation_error_message="dlq_max_ratio: use more than 0, and at most 1 for no limit",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.name

    @property
    def only_tenant_id(self) -> uuid.UUID | None:
        """The one tenant whose messages it takes; None where it takes everyone's."""
        return None if self.tenant_id == SYSTEM_TENANT else self.tenant_id

    @property
    def is_retrying(self) -> bool:
        """Whether anything that fails is tried again."""
        return self.processing_strategy.startswith("RETRY")

    @property
    def has_letter_limit(self) -> bool:
        return bool(self.dlq_max_count) or self.dlq_max_ratio < 1

    @property
    def letter_topic(self) -> str:
        """Where its dead letters go, at the provider."""
        return self.dlq_topic or dead_letter_partition(self.partition_info(0)).full_topic_name

    def topic_names(self) -> set[str]:
        """The topics that hold its messages, at the provider."""
        return {info.full_topic_name for info in self.partition_infos()}

    def state_topic_names(self) -> list[str]:
        """The topics that hold what its handlers remember: one for each of its partitions."""
        infos = self.partition_infos() if self.state_topic else []
        return [state_partition(info, self.state_topic).full_topic_name for info in infos]

    def partition_infos(self) -> list[TopicPartitionInfo]:
        return [self.partition_info(number) for number in range(self.partitions)]

    def partition_info(self, partition: int) -> TopicPartitionInfo:
        return TopicPartitionInfo(self.topic, partition, self.tenant_id)
