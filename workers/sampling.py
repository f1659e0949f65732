"""Offset samples: how far each group is on each partition, read through the provider's admin interface."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queueapi.models import Queue
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.loop import ConsumedPartition
from queuecore.messages import QueueMessage
from queuecore.metrics import EVENT_VERSION, METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event, OffsetSample
from queuecore.providers.base import Provider
from queuecore.sending import send
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from workers.host import consumed_partitions

_ACK_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Offsets:
    beginning: Mapping[ProviderPartition, int]
    end: Mapping[ProviderPartition, int]
    committed: Mapping[str, Mapping[ProviderPartition, int]]


def publish_samples(provider: Provider, service_id: str, clock: Clock = SYSTEM_CLOCK) -> int:
    """Sample every partition of every queue with three questions to the provider. How many were sent."""
    specs = [spec for queue in Queue.objects.select_related("tenant") for spec in consumed_partitions(queue)]
    offsets = _read_offsets(provider, specs)
    now_ms = clock.now_ms()
    sends = []
    for index, spec in enumerate(specs):
        event = Event(version=EVENT_VERSION, at_ms=now_ms, service_id=service_id, offset_sample=_sample(spec, offsets))
        info = TopicPartitionInfo(METRICS_TOPIC, index % METRICS_PARTITIONS, use_internal_partition=True)
        sends.append(send(provider.producer(), info, QueueMessage(None, event.SerializeToString())))
    for future in sends:
        future.result(_ACK_TIMEOUT_S)
    return len(sends)


def _read_offsets(provider: Provider, specs: Sequence[ConsumedPartition]) -> Offsets:
    admin = provider.admin()
    places = [spec.info.place for spec in specs]
    # A group is asked about all its places: two queues whose groups are called the same stay apart by them.
    by_group: defaultdict[str, list[ProviderPartition]] = defaultdict(list)
    for spec, place in zip(specs, places, strict=True):
        by_group[spec.group].append(place)
    committed = admin.committed_offsets(by_group)
    # Committed before end: a lag is then never too small to be true, and never negative.
    return Offsets(admin.beginning_offsets(places), admin.end_offsets(places), committed)


def _sample(spec: ConsumedPartition, offsets: Offsets) -> OffsetSample:
    place = spec.info.place
    return OffsetSample(
        queue_id=spec.queue_id,
        partition=spec.info.partition,
        topic=place.topic,
        group=spec.group,
        beginning_offset=offsets.beginning[place],
        end_offset=offsets.end[place],
        committed_offset=offsets.committed[spec.group].get(place),
    )
