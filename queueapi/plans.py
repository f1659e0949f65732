"""How a queue's row says that it is to be consumed, as the runtime wants it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from queueapi.models import Queue
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.deadletter.policy import DeadLetterPolicy, OnLimit
from queuecore.delivery import Delivery
from queuecore.errors import ConfigurationError
from queuecore.processing.strategies import ProcessingStrategy, processing_strategy
from queuecore.submit.strategies import submit_strategy
from queuecore.topics import ServiceType, TopicPartitionInfo, group_name

Kind = TypeVar("Kind", bound=StrEnum)


def consumption_plans(queue: Queue, service_id: str, epochs: Mapping[int, int] | None = None) -> list[ConsumptionPlan]:
    """How these partitions are consumed, each under its epoch; without, all of them. One plan for each, or one for all.
    ConfigurationError says what cannot be done so."""
    infos = tuple(info for info in queue.partition_infos() if epochs is None or info.partition in epochs)
    if not queue.consumer_per_partition:
        return [_plan(queue, service_id, infos, None, epochs or {})] if infos else []
    return [_plan(queue, service_id, (info,), info.partition, _only(info.partition, epochs or {})) for info in infos]


def _only(partition: int | None, epochs: Mapping[int, int]) -> Mapping[int, int]:
    return {partition: epochs[partition]} if partition is not None and partition in epochs else {}


def other_groups(queue: Queue) -> list[str]:
    """The groups that would read the queue if its consumers were divided the other way."""
    others = [None] if queue.consumer_per_partition else queue.partition_numbers
    return [_group(queue, partition) for partition in others]


def whole_queue_group(queue: Queue) -> str:
    """The group that reads all partitions; where each has a group of its own, what the names of these begin with."""
    return _group(queue, None)


def all_groups(queue: Queue) -> list[str]:
    """Every group that reads the queue, or has read it when its consumers were divided the other way."""
    return [_group(queue, partition) for partition in (None, *queue.partition_numbers)]


def _group(queue: Queue, partition: int | None) -> str:
    return group_name(ServiceType.of(queue.service_type), queue.name, queue.tenant_id, partition)


def _plan(
    queue: Queue,
    service_id: str,
    infos: tuple[TopicPartitionInfo, ...],
    partition: int | None,
    epochs: Mapping[int, int],
) -> ConsumptionPlan:
    return ConsumptionPlan(
        queue=queue.name,
        group=_group(queue, partition),
        infos=infos,
        handler_name=queue.handler,
        queue_id=str(queue.id),
        service_id=service_id,
        delivery=_one_of(Delivery, "delivery", queue.delivery),
        submit=submit_strategy(queue.submit_strategy, queue.batch_size),
        processing=_processing(queue),
        letters=_letters(queue),
        timeout_ms=queue.pack_processing_timeout_ms,
        concurrency=queue.concurrency,
        poll_interval_ms=queue.poll_interval_ms,
        # The partition's next owner takes this place, which displaces whoever still holds it.
        member_id=None if partition is None else f"partition-{partition}",
        state_topic=queue.state_topic,
        epochs=epochs,
    )


def _processing(queue: Queue) -> ProcessingStrategy:
    return processing_strategy(
        queue.processing_strategy,
        retries=queue.retries,
        failure_percentage=queue.failure_percentage,
        pause_ms=queue.retry_pause_ms,
        max_pause_ms=queue.max_retry_pause_ms,
    )


def _letters(queue: Queue) -> DeadLetterPolicy:
    return DeadLetterPolicy(
        enabled=queue.dlq_enabled,
        topic=queue.dlq_topic,
        partitions=queue.letter_partitions or 0,
        max_ratio=queue.dlq_max_ratio,
        max_count=queue.dlq_max_count,
        window_s=queue.dlq_window_s,
        on_limit=_one_of(OnLimit, "dlq_on_limit", queue.dlq_on_limit),
    )


def _one_of(kinds: type[Kind], field: str, value: str) -> Kind:
    try:
        return kinds(value)
    except ValueError:
        raise ConfigurationError(f"there is no {field} {value!r}; choose one of {', '.join(kinds)}") from None
