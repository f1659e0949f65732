"""What topics and consumer groups are called.

Topic:         [prefix.]<base>[.isolated.<tenantId>][.<partition>]
Letters:       [prefix.]<base>[.isolated.<tenantId>].dlq
Payloads:      <letters>.payloads, for what is too large for a letter
Notifications: [prefix.]<base>.notifications.<serviceId>, [prefix.]<base>.edge.notifications.<edgeId>
Responses:     [prefix.]<base>.responses.<serviceId>
Tasks:         [prefix.]tasks.<job type>
Group:         [prefix.]<serviceType>_<queueName>[-isolated-<tenantId>]-consumer[-<partition>]
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, NamedTuple
from uuid import UUID

from queuecore.errors import ConfigurationError, InvalidName

SYSTEM_TENANT: Final = UUID("13814000-1dd2-11b2-8080-808080808080")

# Kafka's limit. A base leaves room for `.isolated.<uuid>` and `.<partition>`.
MAX_TOPIC_LENGTH: Final = 249
MAX_BASE_LENGTH: Final = 180
MAX_PREFIX_LENGTH: Final = 60
# Of one topic, or of one queue. What settings may ask for is less: `config` has its own, lower limit.
MAX_PARTITIONS: Final = 10_000

MAIN_QUEUE: Final = "Main"
EDGE_QUEUE: Final = "Edge"
# Shadows of every rule engine's Main: no queue of a user's can have these names.
CALCULATED_FIELDS: Final = "CalculatedFields"
CALCULATED_FIELD_STATES: Final = "CalculatedFieldStates"

GroupIdStyle = Literal["switchyard", "thingsboard"]

_ALLOWED = re.compile(r"[A-Za-z0-9._-]+")
_LABELS = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_RESERVED_ENDING = re.compile(r"\.(\d+|dlq|payloads|notifications)$")
_RESERVED_INSIDE = re.compile(r"\.(isolated|notifications|responses)\.")


class ServiceType(StrEnum):
    """The kinds of services a platform is made of; each has queues of its own."""

    TB_CORE = "TB_CORE"
    TB_RULE_ENGINE = "TB_RULE_ENGINE"
    TB_TRANSPORT = "TB_TRANSPORT"
    JS_EXECUTOR = "JS_EXECUTOR"
    TB_VC_EXECUTOR = "TB_VC_EXECUTOR"
    EDQS = "EDQS"
    TASK_PROCESSOR = "TASK_PROCESSOR"

    # An enumeration's own runs in Python, and routing looks up every message's service type.
    __hash__ = str.__hash__

    @classmethod
    def of(cls, text: str) -> "ServiceType":
        """The type written so, in any case and with '-' or '_'. ConfigurationError lists the types there are."""
        try:
            return cls(text.replace("-", "_").upper())
        except ValueError:
            raise ConfigurationError(f"there is no service type {text!r}; choose one of {', '.join(cls)}") from None


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


def state_partition(source: TopicPartitionInfo, topic: str) -> TopicPartitionInfo:
    """Where the state of a queue's partition is kept: in a topic that is divided as the queue's own is."""
    return TopicPartitionInfo(topic, source.partition, source.tenant_id, source.use_internal_partition)


def payload_partition(letters: ProviderPartition) -> TopicPartitionInfo:
    """Where the payloads of these letters go that are too large for them."""
    return TopicPartitionInfo(f"{letters.topic}.payloads", letters.partition, use_internal_partition=True)


def notification_topic(base: str, service_id: str, prefix: str = "") -> str:
    """The topic that one instance of a service reads alone. `base` is its service's topic, as `tb_core`."""
    return member_topic(f"{base}.notifications", service_id, prefix)


def edge_notification_topic(edge_id: UUID | str, base: str = "tb_core", prefix: str = "") -> str:
    """The topic of what one edge is to be told. Its group has the same name."""
    return member_topic(f"{base}.edge.notifications", str(edge_id), prefix)


def response_topic(base: str, service_id: str, prefix: str = "") -> str:
    """Where answers to one instance's requests go. `base` is what it asked, as `js_eval` for `js_eval.requests`."""
    return member_topic(f"{base}.responses", service_id, prefix)


def task_topic(job_type: str, prefix: str = "") -> str:
    """The topic of one type of jobs, in lower case."""
    return check_base_topic(member_topic("tasks", job_type.lower(), prefix))


def member_topic(family: str, member: str, prefix: str = "") -> str:
    """The topic of one of those that a family of topics is for: a service, an edge, a job type. InvalidName says why
    a member's id cannot be part of a topic."""
    if not _LABELS.fullmatch(member):
        raise InvalidName(
            f"{member!r} cannot end the name of a topic {family}.…; "
            "use ASCII letters, digits, '_' and '-', with single dots between them"
        )
    return check_topic(with_prefix(prefix, f"{family}.{member}"))


def group_name(
    service_type: ServiceType,
    queue: str,
    tenant_id: UUID | None,
    partition: int | None,
    *,
    prefix: str = "",
    style: GroupIdStyle = "switchyard",
) -> str:
    """The group that reads a queue, or one partition of it."""
    isolated = f"-isolated-{tenant_id}" if tenant_id and tenant_id != SYSTEM_TENANT else ""
    suffix = "" if partition is None else f"-{partition}"
    ending = f"{isolated}-consumer{suffix}"
    if style == "thingsboard" and (name := _thingsboard_group(service_type, queue, ending)):
        return with_prefix(prefix, name)
    return with_prefix(prefix, f"{service_type}_{queue}{ending}").lower()


def _thingsboard_group(service_type: ServiceType, queue: str, ending: str) -> str | None:
    """What that platform calls the group. Core services and task processors share one for all partitions there; for
    the service types it has no scheme for, None."""
    match service_type:
        case ServiceType.TB_RULE_ENGINE:
            return f"{'cf' if queue == CALCULATED_FIELDS else 're'}-{queue}{ending}"
        case ServiceType.TB_CORE:
            return {MAIN_QUEUE: "tb-core-node", EDGE_QUEUE: "tb-core-edge-consumer"}.get(queue)
        case ServiceType.TASK_PROCESSOR:
            return f"{queue.lower()}-task-consumer-group"
        case _:
            return None


def notification_group(base: str, service_id: str, prefix: str = "", style: GroupIdStyle = "switchyard") -> str:
    """The group of `notification_topic`: one for each instance, so that it alone reads what is meant for it."""
    if style == "thingsboard" and base == "tb_transport":
        return with_prefix(prefix, f"transport-node-{service_id}")
    return with_prefix(prefix, f"{base.replace('_', '-')}-notifications-node-{service_id}")


def check_prefix(prefix: str) -> str:
    """`prefix`, or InvalidName with the reason why names cannot begin with it. None at all is fine."""
    if prefix and not _LABELS.fullmatch(prefix):
        raise InvalidName(
            f"prefix {prefix!r} may hold only ASCII letters, digits, '_' and '-', with single dots between them"
        )
    return _check_length(prefix, MAX_PREFIX_LENGTH, "prefix")


def check_no_clash(names: Iterable[str]) -> None:
    """InvalidName where two of these could not live at one provider: Kafka takes `a.b` and `a_b` for the same."""
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(name.replace(".", "_"), name)
        if other != name:
            raise InvalidName(f"topics {other!r} and {name!r} differ in '.' and '_' alone, which Kafka does not allow")


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
    if inside := _RESERVED_INSIDE.search(name):
        raise InvalidName(
            f"topic {name!r} holds {inside[0]!r}, which Switchyard puts there itself; choose another name"
        )
    return name


def check_partitions(topic: str, partitions: int) -> int:
    """`partitions`, or ConfigurationError where a topic cannot have so many."""
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise ConfigurationError(
            f"topic {topic!r} cannot have {partitions} partitions; at least 1 partition and at most {MAX_PARTITIONS}"
        )
    return partitions


def _check_length(name: str, limit: int, what: str = "topic") -> str:
    if len(name) > limit:
        raise InvalidName(f"{what} {name[:30]}… has {len(name)} characters; {limit} is the most")
    return name
