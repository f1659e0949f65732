"""Where requests of one kind go, where their answers come from, and who shares the work."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from queuecore.errors import InvalidName
from queuecore.providers.base import DAY_MS, TopicSpec
from queuecore.topics import TopicPartitionInfo, check_base_topic, member_topic, with_prefix

if TYPE_CHECKING:
    from queuecore.config.queue_tree import QueueSettings
    from queuecore.factories.channels import Channel

_REQUESTS: Final = ".requests"
_RESPONSES: Final = ".responses"


@dataclass(frozen=True, slots=True)
class RequestTopics:
    """Topics of one kind of requests.

    requests   the partitions that requests go to
    specs      the request topic, as it is to be created
    responses  how the response topics are to be created; the name is what they begin with, before the service id
    group      as which responders share the requests
    """

    requests: tuple[TopicPartitionInfo, ...]
    specs: tuple[TopicSpec, ...]
    responses: TopicSpec
    group: str

    @classmethod
    def named(cls, base: str, *, partitions: int = 10, prefix: str = "", retention_ms: int = DAY_MS) -> "RequestTopics":
        """`<base>.requests`, with these partitions inside, and `<base>.responses.<service id>`. InvalidName where the
        base cannot be part of a topic."""
        topic = with_prefix(prefix, check_base_topic(f"{base}{_REQUESTS}"))
        return cls(
            tuple(TopicPartitionInfo(topic, number, use_internal_partition=True) for number in range(partitions)),
            (TopicSpec(topic, partitions, retention_ms=retention_ms),),
            TopicSpec(with_prefix(prefix, f"{base}{_RESPONSES}"), retention_ms=retention_ms),
            with_prefix(prefix, f"{base}-responders"),
        )

    @classmethod
    def of(cls, channel: "Channel", settings: "QueueSettings") -> "RequestTopics":
        """Those of the platform, such as `Channel.JS_REQUESTS`. InvalidName for a channel that has no answers."""
        from queuecore.catalogue import catalogue
        from queuecore.topics import SYSTEM_TENANT, group_name

        entry = channel.entry(settings)
        base = entry.topic.removesuffix(_REQUESTS)
        answers = next((one for one in catalogue(settings) if one.topic == f"{base}{_RESPONSES}"), None)
        if base == entry.topic or answers is None or entry.queue is None:
            raise InvalidName(
                f"{entry.topic} takes no requests; those that do end in {_REQUESTS}, as js_eval{_REQUESTS}"
            )
        routed = entry.routed(settings)
        inner = routed.use_internal_partition
        infos = tuple(
            TopicPartitionInfo(routed.topic, number, use_internal_partition=inner) for number in range(entry.partitions)
        )
        kept = answers.retention
        name = with_prefix(settings.prefix, answers.topic)
        return cls(
            infos,
            tuple(entry.specs(settings)),
            TopicSpec(
                name,
                retention_ms=kept.retention_ms,
                retention_bytes=kept.retention_bytes,
                segment_bytes=kept.segment_bytes,
            ),
            group_name(
                entry.read_by[0],
                entry.queue,
                SYSTEM_TENANT,
                None,
                prefix=settings.prefix,
                style=settings.group_id_style,
            ),
        )

    @property
    def name(self) -> str:
        """The request topic."""
        return self.requests[0].topic

    def response_spec(self, service_id: str) -> TopicSpec:
        """The topic of the answers to one instance. InvalidName where its id cannot be part of a topic."""
        return replace(self.responses, name=member_topic(self.responses.name, service_id))

    def is_response_topic(self, name: str) -> bool:
        """Whether answers go there: whoever sends a request must not have them written elsewhere."""
        family = f"{self.responses.name}."
        return name.startswith(family) and len(name) > len(family)
