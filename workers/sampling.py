"""Offset samples: how far each group is on each partition, read through the provider's admin interface."""

import logging
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from django.db.models import QuerySet

from queueapi.choices import STANDING_QUEUE_STATES
from queueapi.models import Queue
from queueapi.plans import consumption_plans
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ConfigurationError
from queuecore.groups.lag import Standing, read_standings
from queuecore.messages import QueueMessage
from queuecore.metrics import EVENT_VERSION, METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event, OffsetSample
from queuecore.providers.base import Provider
from queuecore.sending import send
from queuecore.topics import ProviderPartition, TopicPartitionInfo

_ACK_TIMEOUT_S = 10
# How many partitions a warning names.
_NAMED = 3

logger = logging.getLogger(__name__)


class _Consumed(NamedTuple):
    """A partition, and the group that reads it."""

    queue_id: str
    group: str
    info: TopicPartitionInfo


def publish_samples(provider: Provider, service_id: str, clock: Clock = SYSTEM_CLOCK) -> int:
    """Sample every partition of every queue, asking the provider for all at once. How many were sent: those that do not
    exist, or that nobody leads at the moment, are left out with a warning."""
    consumed = [one for queue in _queues() for one in _consumed(queue)]
    # A group is asked about all its places: two queues whose groups are called the same stay apart by them.
    by_group: defaultdict[str, list[ProviderPartition]] = defaultdict(list)
    for one in consumed:
        by_group[one.group].append(one.info.place)
    standings = read_standings(provider.admin(), by_group)
    now_ms = clock.now_ms()
    sends, unknown = [], []
    for index, one in enumerate(consumed):
        if (standing := standings[one.group].get(one.info.place)) is None:
            unknown.append(one.info.place)
            continue
        event = Event(version=EVENT_VERSION, at_ms=now_ms, service_id=service_id, offset_sample=_sample(one, standing))
        info = TopicPartitionInfo(METRICS_TOPIC, index % METRICS_PARTITIONS, use_internal_partition=True)
        sends.append(send(provider.producer(), info, QueueMessage(None, event.SerializeToString())))
    for future in sends:
        future.result(_ACK_TIMEOUT_S)
    if unknown:
        logger.warning(
            "%d partition(s) are not sampled, as they do not exist or nobody leads them: %s; look at the topics and at "
            "the brokers that have them",
            len(unknown),
            ", ".join(map(str, unknown[:_NAMED])) + (", …" if len(unknown) > _NAMED else ""),
        )
    return len(sends)


def _queues() -> QuerySet[Queue]:
    return Queue.objects.filter(state__in=STANDING_QUEUE_STATES)


def _consumed(queue: Queue) -> Iterator[_Consumed]:
    """Nothing of a queue that cannot be consumed as it is: nobody knows the names of its groups."""
    try:
        plans = consumption_plans(queue, "")
    except ConfigurationError as error:
        logger.warning("queue %s is not sampled: %s", queue.name, error)
        return
    for plan in plans:
        yield from (_Consumed(plan.queue_id, plan.group, info) for info in plan.infos)


def _sample(consumed: _Consumed, standing: Standing) -> OffsetSample:
    place = consumed.info.place
    return OffsetSample(
        queue_id=consumed.queue_id,
        partition=consumed.info.partition,
        topic=place.topic,
        group=consumed.group,
        beginning_offset=standing.beginning,
        end_offset=standing.end,
        committed_offset=standing.committed,
    )
