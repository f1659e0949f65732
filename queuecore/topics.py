"""What topics and consumer groups are called.

Topic:   [prefix.]<base>[.isolated.<tenantId>][.<partition>]
Letters: [prefix.]<base>[.isolated.<tenantId>].dlq
Group:   [prefix.]<serviceType>_<queueName>[-isolated-<tenantId>]-consumer[-<partition>]
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from queuecore.errors import InvalidName

SYSTEM_TENANT: Final = UUID("13814000-1dd2-11b2-8080-808080808080")

# Kafka's limit. A base leaves room for `.isolated.<uuid>` and `.<partition>`.
MAX_TOPIC_LENGTH: Final = 249
MAX_BASE_LENGTH: Final = 180

_ALLOWED = re.compile(r"[A-Za-z0-9._-]+")
_RESERVED_ENDING = re.compile(r"\.(\d+|dlq|notifications)$")


class ServiceType(StrEnum):
    TB_CORE = "TB_CORE"
    TB_RULE_ENGINE = "TB_RULE_ENGINE"
    TB_TRANSPORT = "TB_TRANSPORT"
    JS_EXECUTOR = "JS_EXECUTOR"
    TB_VC_EXECUTOR = "TB_VC_EXECUTOR"
    EDQS = "EDQS"
    TASK_PROCESSOR = "TASK_PROCESSOR"


class ProviderPartition(NamedTuple):
    """A partition as the provider knows it: its topic and the number inside that topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


@dataclass(frozen=True, slots=True, eq=False)
class TopicPartitionInfo:
    """One partition of a queue. Two are equal when they name the same place at the provider.

    The names are made once, here: a send only looks them up.
    """

    topic: str
    partition: int | None = None
    tenant_id: UUID | None = None
    use_internal_partition: bool = False
    my_partition: bool = True
    full_topic_name: str = field(init=False)
    place: ProviderPartition = field(init=False)

    def __post_init__(self) -> None:
        isolated = self.tenant_id is not None and self.tenant_id != SYSTEM_TENANT
        name = f"{self.topic}.isolated.{self.tenant_id}" if isolated else self.topic
        if self.partition is not None and not self.use_internal_partition:
            name = f"{name}.{self.partition}"
        inner = self.partition or 0 if self.use_internal_partition else 0
        object.__setattr__(self, "full_topic_name", name)
        object.__setattr__(self, "place", ProviderPartition(name, inner))

    @property
    def provider_partition(self) -> int:
        """The partition inside the provider's topic: always 0 where each partition is a topic of its own."""
        return self.place.partition

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicPartitionInfo):
            return NotImplemented
        return (self.full_topic_name, self.partition) == (other.full_topic_name, other.partition)

    def __hash__(self) -> int:
        return hash((self.full_topic_name, self.partition))

    def __str__(self) -> str:
        inner = f"[{self.partition}]" if self.use_internal_partition else ""
        return f"{self.full_topic_name}{inner}"


def with_prefix(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def dead_letter_partition(source: TopicPartitionInfo) -> TopicPartitionInfo:
    """Where letters of `source` go: one topic per queue, with its queue's partitions inside."""
    isolated = TopicPartitionInfo(source.topic, tenant_id=source.tenant_id).full_topic_name
    return TopicPartitionInfo(f"{isolated}.dlq", source.partition, use_internal_partition=True)


def group_name(service_type: ServiceType, queue: str, tenant_id: UUID | None, partition: int | None) -> str:
    isolated = f"-isolated-{tenant_id}" if tenant_id and tenant_id != SYSTEM_TENANT else ""
    suffix = "" if partition is None else f"-{partition}"
    return f"{service_type}_{queue}{isolated}-consumer{suffix}".lower()


def check_topic(name: str) -> str:
    """`name`, or InvalidName with the reason why no provider could hold it."""
    if not name or name in {".", ".."}:
        raise InvalidName("a topic needs a name; use letters, digits, '.', '_' and '-'")
    if not _ALLOWED.fullmatch(name):
        raise InvalidName(f"topic {name!r} may hold only ASCII letters, digits, '.', '_' and '-'")
    return _check_length(name, MAX_TOPIC_LENGTH)


def check_base_topic(name: str) -> str:
    """`name`, or InvalidName with the reason why it cannot begin the names that are made of it."""
    _check_length(check_topic(name), MAX_BASE_LENGTH)
    if ending := _RESERVED_ENDING.search(name):
        raise InvalidName(f"topic {name!r} ends in {ending[0]!r}, which Switchyard appends itself; drop it")
    return name


def _check_length(name: str, limit: int) -> str:
    if len(name) > limit:
        raise InvalidName(f"topic {name[:30]}… has {len(name)} characters; {limit} is the most")
    return name
