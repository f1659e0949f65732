import uuid
from copy import copy
from enum import StrEnum
from typing import Final

from django.core.validators import BaseValidator, MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower

from queueapi.choices import ENDING_QUEUE_STATES, QueueState
from queuecore.deadletter.policy import OnLimit
from queuecore.delivery import Delivery
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.providers.base import DAY_MS, FOR_EVER, MIN_SEGMENT_BYTES
from queuecore.submit.strategies import DEFAULT_BATCH_SIZE, SubmitStrategyType
from queuecore.topics import SYSTEM_TENANT, ServiceType, TopicPartitionInfo, dead_letter_partition, state_partition

# What is longer is a slip of the finger.
_HOUR_MS: Final = 60 * 60 * 1000
_MOST_RETENTION_MS: Final = 100 * 365 * DAY_MS
MOST_PARTITIONS: Final = 1000
# What says which partitions a queue has.
PARTITION_FIELDS: Final = ("partitions", "first_partition", "former_first", "former_partitions")
# Kafka keeps a segment's size in 31 bits.
_MOST_SEGMENT_BYTES: Final = 2**31 - 1
_MOST_BYTES: Final = 2**60
_MOST_MESSAGES: Final = 10**12


def _choice(kinds: type[StrEnum], default: StrEnum) -> "models.CharField[str, str]":
    """One of an enumeration's values. What is none of them is refused with those there are."""
    return models.CharField(
        max_length=32,
        choices=[(kind.value, kind.value) for kind in kinds],
        default=default.value,
        error_messages={"invalid_choice": f"there is no %(value)r; choose one of {', '.join(kinds)}"},
    )


def _between(least: int, most: int, unit: str, otherwise: str = "") -> list[BaseValidator]:
    """Validators that say what to enter instead."""
    message = f"%(show_value)s cannot be; use {least:,} to {most:,} {unit}{otherwise}"
    return [MinValueValidator(least, message), MaxValueValidator(most, message)]


def _at_least(field: str, least: float) -> models.CheckConstraint:
    message = f"{field}: use {least:g} or more"
    return models.CheckConstraint(
        condition=models.Q(**{f"{field}__gte": least}), name=f"queue_{field}_in_range", violation_error_message=message
    )


def full_queue_name(name: str, tenant_id: uuid.UUID, tenant: str) -> str:
    """What tells a queue from all others: tenants commonly call their own as the shared ones are called."""
    return name if tenant_id == SYSTEM_TENANT else f"{name} of {tenant}"


class Queue(models.Model):
    """A named stream of one service type, and how it is consumed. Name, topic and service type never change: stored
    messages depend on them. Partitions are numbered, and no number ever means another one: a queue that is resized gets
    new numbers, from where the old ones end. Its old partitions are its former ones until they are consumed."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey("queueapi.Tenant", on_delete=models.PROTECT, related_name="queues")
    name = models.CharField(max_length=100)
    topic = models.CharField(max_length=180)
    service_type = _choice(ServiceType, ServiceType.TB_RULE_ENGINE)
    partitions = models.PositiveIntegerField(default=3, validators=_between(1, MOST_PARTITIONS, "partitions"))
    first_partition = models.PositiveIntegerField(default=0, editable=False)
    # While it is resized: nobody sends to these any more, and they alone are consumed.
    former_first = models.PositiveIntegerField(null=True, default=None, editable=False)
    former_partitions = models.PositiveIntegerField(null=True, default=None, editable=False)
    # Of the topic of its letters, which stays as it was made; None: as many as the queue has.
    letter_partitions = models.PositiveIntegerField(null=True, default=None, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    # Rises with every change of what is below, and of its pauses: whoever changes it says which version they saw.
    version = models.PositiveBigIntegerField(default=1, editable=False)

    state = models.CharField(max_length=16, choices=QueueState, default=QueueState.ACTIVE)
    # What creates, provisions, drains or deletes it, or last did.
    operation = models.ForeignKey(
        "queueapi.Operation", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    # Where messages go that are published while it is drained, or what it has left when it is deleted.
    successor = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="predecessors")

    handler = models.CharField(max_length=100)
    handler_options = models.JSONField(default=dict, blank=True)
    delivery = _choice(Delivery, Delivery.AT_LEAST_ONCE)
    consumer_per_partition = models.BooleanField(default=True)
    concurrency = models.PositiveIntegerField(default=4, validators=_between(1, 1000, "messages side by side"))
    poll_interval_ms = models.PositiveIntegerField(default=25, validators=_between(1, 60_000, "ms"))
    pack_processing_timeout_ms = models.PositiveIntegerField(default=60_000, validators=_between(1, DAY_MS, "ms"))
    state_topic = models.CharField(max_length=180, blank=True, default="")
    # What a service instance must have to consume it; empty: nothing.
    label = models.CharField(max_length=100, blank=True, default="")

    submit_strategy = _choice(SubmitStrategyType, SubmitStrategyType.BURST)
    batch_size = models.PositiveIntegerField(default=DEFAULT_BATCH_SIZE, validators=_between(1, 1_000_000, "messages"))

    processing_strategy = _choice(ProcessingStrategyType, ProcessingStrategyType.SKIP_ALL_FAILURES)
    # 0: without limit.
    retries = models.PositiveIntegerField(default=3, validators=_between(0, 1000, "retries", "; 0 is without limit"))
    failure_percentage = models.FloatField(default=0, validators=[MinValueValidator(0), MaxValueValidator(100)])
    retry_pause_ms = models.PositiveIntegerField(default=200, validators=_between(0, _HOUR_MS, "ms"))
    max_retry_pause_ms = models.PositiveIntegerField(default=5000, validators=_between(0, _HOUR_MS, "ms"))

    dlq_enabled = models.BooleanField(default=True)
    # Empty: the queue's own topic with `.dlq`.
    dlq_topic = models.CharField(max_length=249, blank=True, default="")
    # 1: no limit.
    dlq_max_ratio = models.FloatField(default=1, validators=[MaxValueValidator(1)])
    # 0: no limit.
    dlq_max_count = models.PositiveIntegerField(
        default=0, validators=_between(0, 1_000_000_000, "letters", "; 0 is without limit")
    )
    dlq_window_s = models.PositiveIntegerField(default=60, validators=_between(1, DAY_MS // 1000, "s"))
    dlq_on_limit = _choice(OnLimit, OnLimit.PAUSE_PARTITION)

    # FOR_EVER: nothing is removed for that reason.
    retention_ms = models.BigIntegerField(
        default=7 * DAY_MS, validators=_between(FOR_EVER, _MOST_RETENTION_MS, "ms", "; -1 is for ever")
    )
    retention_bytes = models.BigIntegerField(
        default=FOR_EVER, validators=_between(FOR_EVER, _MOST_BYTES, "bytes in each partition", "; -1 is without limit")
    )
    segment_bytes = models.BigIntegerField(
        default=50 * 1024 * 1024, validators=_between(MIN_SEGMENT_BYTES, _MOST_SEGMENT_BYTES, "bytes")
    )
    # None: what the provider is set to.
    replication_factor = models.PositiveIntegerField(
        null=True, blank=True, default=None, validators=_between(1, 100, "copies", "; none is the provider's default")
    )
    # What else the provider's topics are to be set to, by the provider's own names.
    custom_properties = models.JSONField(default=dict, blank=True)
    # 0: without limit.
    max_backlog = models.BigIntegerField(
        default=0, validators=_between(0, _MOST_MESSAGES, "messages", "; 0 is without limit")
    )

    class Meta:
        ordering = ["name"]
        indexes = [
            models.Index(fields=["name", "id"], name="queue_by_name"),
            models.Index(fields=["created_at", "id"], name="queue_newest"),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(version__gte=1), name="queue_has_a_version"),
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
                condition=models.Q(former_first__isnull=True, former_partitions__isnull=True)
                | models.Q(
                    former_first__isnull=False,
                    former_partitions__isnull=False,
                    former_partitions__gte=1,
                    first_partition__gte=models.F("former_first") + models.F("former_partitions"),
                ),
                name="queue_numbers_partitions_once",
            ),
            models.CheckConstraint(
                condition=models.Q(letter_partitions__isnull=True) | models.Q(letter_partitions__gte=1),
                name="queue_letters_have_partitions",
            ),
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
            models.CheckConstraint(condition=models.Q(state__in=QueueState.values), name="queue_state_is_legal"),
            models.CheckConstraint(
                condition=models.Q(successor__isnull=True)
                | (models.Q(state__in=ENDING_QUEUE_STATES) & ~models.Q(successor=models.F("id"))),
                name="queue_successor_is_another_while_ending",
            ),
            models.CheckConstraint(
                condition=models.Q(retention_ms__gte=FOR_EVER, retention_bytes__gte=FOR_EVER, max_backlog__gte=0),
                name="queue_retention_in_range",
                violation_error_message="retention: use -1 for ever, or more; max_backlog: use 0 or more",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.name

    @property
    def full_name(self) -> str:
        return full_queue_name(self.name, self.tenant_id, str(self.tenant))

    @property
    def full_topic(self) -> str:
        """What the provider's topics of its partitions are called, up to their numbers."""
        return TopicPartitionInfo(self.topic, None, self.tenant_id).full_topic_name

    @property
    def state_choice(self) -> QueueState:
        return QueueState(self.state)

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

    @property
    def letter_topic_partitions(self) -> int:
        return self.letter_partitions or self.partitions

    @property
    def routed_numbers(self) -> range:
        """Of the partitions that its messages go to."""
        return range(self.first_partition, self.first_partition + self.partitions)

    @property
    def former_numbers(self) -> range:
        """Of those that they went to before; empty where it is not being resized."""
        first = self.former_first or 0
        return range(first, first + (self.former_partitions or 0))

    @property
    def consumed_numbers(self) -> range:
        """Of those that are to be consumed now."""
        return self.former_numbers or self.routed_numbers

    @property
    def partition_numbers(self) -> list[int]:
        """Of all that have messages of its."""
        return [*self.former_numbers, *self.routed_numbers]

    def with_partitions(self, numbers: range) -> "Queue":
        """As it would be with these alone; not to be saved."""
        changed = copy(self)
        changed.first_partition, changed.partitions = numbers.start, len(numbers)
        changed.former_first = changed.former_partitions = None
        changed.letter_partitions = self.letter_topic_partitions
        return changed

    def topic_names(self) -> set[str]:
        """The topics that hold its messages, at the provider."""
        return {info.full_topic_name for info in self.partition_infos()}

    def state_topic_names(self) -> list[str]:
        """The topics that hold what its handlers remember: one for each of its partitions."""
        infos = self.partition_infos() if self.state_topic else []
        return [state_partition(info, self.state_topic).full_topic_name for info in infos]

    def partition_infos(self) -> list[TopicPartitionInfo]:
        return [self.partition_info(number) for number in self.partition_numbers]

    def partition_info(self, partition: int) -> TopicPartitionInfo:
        return TopicPartitionInfo(self.topic, partition, self.tenant_id)
