"""Topics as the provider has them, with what each is for and whose it is."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, islice
from typing import Final
from uuid import UUID

from django.db.models import Q, QuerySet

from queueapi import runtime
from queueapi.models import Queue
from queueapi.models.queue import PARTITION_FIELDS
from queuecore.groups.lag import describe_existing
from queuecore.metrics import METRICS_TOPIC
from queuecore.providers.base import TopicDescription, TopicSpec
from queuecore.topics import ProviderPartition, TopicPartitionInfo, payload_partition

_PARTITION: Final = re.compile(r"\.\d+$")
_NAMING: Final = ("id", "name", "topic", "tenant", *PARTITION_FIELDS, "dlq_topic", "state_topic")


class TopicKind(StrEnum):
    """What a topic holds. `unknown`: nothing that this installation's queues or its runtime put there."""

    QUEUE = "queue"
    DEAD_LETTERS = "dead_letters"
    STATE = "state"
    NOTIFICATIONS = "notifications"
    RESPONSES = "responses"
    METRICS = "metrics"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TopicOwner:
    """What a topic is for. Several queues may share one for their dead letters."""

    kind: TopicKind
    queues: tuple[Queue, ...] = ()

    @property
    def tenant_id(self) -> UUID | None:
        """Whose it is; None where it is nobody's, or several tenants'."""
        tenants = {queue.tenant_id for queue in self.queues}
        return tenants.pop() if len(tenants) == 1 else None


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """What a list is narrowed to; what is None or empty narrows nothing. `queue` is an id, or a name in any case."""

    kind: TopicKind | None = None
    queue: str = ""
    tenant: UUID | None = None
    text: str = ""

    def takes(self, name: str, owner: TopicOwner) -> bool:
        return (
            (self.kind is None or owner.kind is self.kind)
            and (not self.queue or any(self._is_named(queue) for queue in owner.queues))
            and (self.tenant is None or any(queue.tenant_id == self.tenant for queue in owner.queues))
            and self.text.lower() in name.lower()
        )

    @property
    def is_about_owners(self) -> bool:
        """Whether whose a topic is decides on more than its line."""
        return self.kind is not None or bool(self.queue) or self.tenant is not None

    def _is_named(self, queue: Queue) -> bool:
        return self.queue.lower() in (queue.name.lower(), str(queue.id))


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """A topic's name and owner: what is known without a look at it. The owner is None where it was not needed yet."""

    name: str
    owner: TopicOwner | None


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """A topic as it is. Sums are None where a partition's part is not known: nobody leads it, or nobody measures."""

    name: str
    owner: TopicOwner
    description: TopicDescription

    @property
    def spec(self) -> TopicSpec:
        return self.description.spec

    @property
    def size_bytes(self) -> int | None:
        return _sum(one.size_bytes for one in self.description.partitions)

    @property
    def beginning(self) -> int | None:
        """The oldest offsets of all partitions together: of one alone, its own."""
        return _sum(one.beginning for one in self.description.partitions)

    @property
    def end(self) -> int | None:
        """The offsets that come next, likewise."""
        return _sum(one.end for one in self.description.partitions)

    @property
    def messages(self) -> int | None:
        """Offsets from the beginnings to the ends; compaction may have emptied some of them."""
        return None if self.beginning is None or self.end is None else self.end - self.beginning


class TopicOwners:
    """Whose each topic is, by the queues there are. One look at the database, however many topics are asked for."""

    def __init__(self, queues: Iterable[Queue]) -> None:
        self._streams: dict[str, Queue] = {}
        self._states: dict[str, Queue] = {}
        self._letters: defaultdict[str, list[Queue]] = defaultdict(list)
        for queue in queues:
            self._streams[stream_of(queue)] = queue
            letters = queue.letter_topic
            for name in (letters, payload_partition(ProviderPartition(letters, 0)).full_topic_name):
                self._letters[name].append(queue)
            if queue.state_topic:
                self._states[TopicPartitionInfo(queue.state_topic, tenant_id=queue.tenant_id).full_topic_name] = queue

    def owner(self, topic: str) -> TopicOwner:
        if queues := self._letters.get(topic):
            return TopicOwner(TopicKind.DEAD_LETTERS, tuple(queues))
        stream = _PARTITION.sub("", topic)
        if queue := self._streams.get(stream):
            return TopicOwner(TopicKind.QUEUE, (queue,))
        if queue := self._states.get(stream):
            return TopicOwner(TopicKind.STATE, (queue,))
        return TopicOwner(_kind_by_name(topic))


def stream_of(queue: Queue) -> str:
    """What the topics of its partitions begin with."""
    return TopicPartitionInfo(queue.topic, tenant_id=queue.tenant_id).full_topic_name


def topic_owners(names: Iterable[str] | None = None) -> TopicOwners:
    """By all queues, or by those that topics of these names can belong to."""
    return TopicOwners(Queue.objects.only(*_NAMING) if names is None else queues_naming(names))


def queues_naming(names: Iterable[str]) -> QuerySet[Queue]:
    """Those that topics of these names can belong to: of ten thousand queues few. With what names their topics."""
    # A topic's name begins with what its queue calls it.
    begins = {part for name in names for part in accumulate(name.split("."), "{}.{}".format)}
    called = Q(topic__in=begins) | Q(dlq_topic__in=begins) | Q(state_topic__in=begins)
    return Queue.objects.filter(called).only(*_NAMING)


def list_topics(wanted: TopicFilter, behind: str = "", limit: int | None = None) -> list[ListedTopic]:
    """Of those that the filter leaves, so many that are behind this name, in order, with one question to the provider:
    for so many names, or where something is looked for, for those of all."""
    admin = runtime.provider().admin()
    if wanted == TopicFilter():
        return [ListedTopic(name, None) for name in admin.topic_names(behind, limit)]
    names = iter(admin.topic_names(behind))
    if not wanted.is_about_owners:
        found = (ListedTopic(name, None) for name in names if wanted.text.lower() in name.lower())
        return list(islice(found, limit))
    owners = topic_owners()
    listed = (ListedTopic(name, owner) for name in names if wanted.takes(name, owner := owners.owner(name)))
    return list(islice(listed, limit))


def topics_with_figures(topics: Sequence[ListedTopic]) -> list[TopicFigures]:
    """These as they are, with one more question however many they are, and another for whose they are where that is not
    known. One that was removed meanwhile is left out."""
    described = _describe(one.name for one in topics)
    unknown = [one.name for one in topics if one.owner is None]
    owners = topic_owners(unknown) if unknown else TopicOwners(())
    return [
        TopicFigures(one.name, one.owner or owners.owner(one.name), described[one.name])
        for one in topics
        if one.name in described
    ]


def find_topic(name: str) -> TopicFigures | None:
    description = _describe([name]).get(name)
    return None if description is None else TopicFigures(name, topic_owners([name]).owner(name), description)


def _describe(names: Iterable[str]) -> Mapping[str, TopicDescription]:
    return describe_existing(runtime.provider().admin(), names)


def _kind_by_name(topic: str) -> TopicKind:
    if topic == METRICS_TOPIC:
        return TopicKind.METRICS
    if ".notifications." in topic:
        return TopicKind.NOTIFICATIONS
    return TopicKind.RESPONSES if ".responses." in topic else TopicKind.UNKNOWN


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
