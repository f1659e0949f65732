"""Offset samples: how far each group is on each partition, read through the provider's admin interface."""

import logging
from collections import defaultdict

from queueapi.models import Queue
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.loop import ConsumedPartition
from queuecore.groups.lag import Standing, read_standings
from queuecore.messages import QueueMessage
from queuecore.metrics import EVENT_VERSION, METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event, OffsetSample
from queuecore.providers.base import Provider
from queuecore.sending import send
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from workers.host import consumed_partitions

_ACK_TIMEOUT_S = 10
# How many partitions a warning names.
_NAMED = 3

logger = logging.getLogger(__name__)


def publish_samples(provider: Provider, service_id: str, clock: Clock = SYSTEM_CLOCK) -> int:
    """Sample every partition of every queue, asking the provider for all at once. How many were sent: those that do not
    exist, or that nobody leads at the moment, are left out with a warning."""
    specs = [spec for queue in Queue.objects.select_related("tenant") for spec in consumed_partitions(queue)]
    # A group is asked about all its places: two queues whose groups are called the same stay apart by them.
    by_group: defaultdict[str, list[ProviderPartition]] = defaultdict(list)
    for spec in specs:
        by_group[spec.group].append(spec.info.place)
    standings = read_standings(provider.admin(), by_group)
    now_ms = clock.now_ms()
    sends, unknown = [], []
    for index, spec in enumerate(specs):
        if (standing := standings[spec.group].get(spec.info.place)) is None:
            unknown.append(spec.info.place)
            continue
        event = Event(version=EVENT_VERSION, at_ms=now_ms, service_id=service_id, offset_sample=_sample(spec, standing))
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


def _sample(spec: ConsumedPartition, standing: Standing) -> OffsetSample:
    place = spec.info.place
    return OffsetSample(
        queue_id=spec.queue_id,
        partition=spec.info.partition,
        topic=place.topic,
        group=spec.group,
        beginning_offset=standing.beginning,
        end_offset=standing.end,
        committed_offset=standing.committed,
    )
