"""The `queue:` tree: every setting of the queues themselves, typed, with its default.

An installation has it as `config().queue`; who uses `queuecore` alone reads it with `queue_options.queue_settings`. A
provider's settings are under its name, and mean the same under each.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from queuecore.config import section, setting
from queuecore.config.provider_settings import ClientSettings, InMemorySettings, KafkaSettings, LogSettings
from queuecore.topics import GroupIdStyle, check_base_topic, check_prefix, check_topic, task_topic

QueueType = Literal["log", "kafka", "in-memory"]
HashName = Literal["murmur3_128", "murmur3_32", "sha256", "fnv1a"]
SubmitStrategyType = Literal["BURST", "BATCH", "SEQUENTIAL", "SEQUENTIAL_BY_ORIGINATOR", "SEQUENTIAL_BY_TENANT"]
ProcessingStrategyType = Literal[
    "SKIP_ALL_FAILURES",
    "SKIP_ALL_FAILURES_AND_TIMED_OUT",
    "RETRY_ALL",
    "RETRY_FAILED",
    "RETRY_TIMED_OUT",
    "RETRY_FAILED_AND_TIMED_OUT",
]
PartitionsPerType = tuple[tuple[str, int], ...]

MAX_PARTITIONS: Final = 1_000


def _topic(default: str, help_text: str, key: str = "") -> str:
    made: str = setting(default, help_text, key=key, parse=check_base_topic, kind="topic")
    return made


def _partitions(default: int, help_text: str, falls_back_to: str = "") -> int:
    made: int = setting(default, help_text, minimum=1, maximum=MAX_PARTITIONS, falls_back_to=falls_back_to)
    return made


def _topic_or_nothing(raw: str) -> str:
    return check_topic(raw) if raw else raw


def _partitions_per_type(raw: str) -> PartitionsPerType:
    counts: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in raw.split(";"))):
        job_type, _, count = (part.strip() for part in entry.upper().partition(":"))
        task_topic(job_type)
        if not count.isdecimal() or not 1 <= int(count) <= MAX_PARTITIONS:
            raise ValueError(f"has an entry {entry!r}; write TYPE:24, with 1 to {MAX_PARTITIONS} partitions")
        if job_type in counts:
            raise ValueError(f"names {job_type} twice")
        counts[job_type] = int(count)
    return tuple(counts.items())


@dataclass(frozen=True, slots=True)
class CoreSettings:
    topic: str = _topic("tb_core", "Topic of core platform messages.")
    partitions: int = _partitions(10, "Partitions of the core topic.", "queue.partitions.count")
    ota_topic: str = _topic("tb_ota_package", "Topic of OTA update distribution.", key="ota.topic")
    usage_stats_topic: str = _topic("tb_usage_stats", "Topic of usage statistics.", key="usage-stats-topic")
    housekeeper_topic: str = _topic("tb_housekeeper", "Topic of clean-up tasks.", key="housekeeper.topic")


@dataclass(frozen=True, slots=True)
class SubmitStrategySettings:
    type: SubmitStrategyType = setting("BURST", "How the messages of a pack are handed to the handlers of `Main`.")
    batch_size: int = setting(1000, "Messages handed over together by `BATCH`.", key="batch-size", minimum=1)


@dataclass(frozen=True, slots=True)
class ProcessingStrategySettings:
    type: ProcessingStrategyType = setting("SKIP_ALL_FAILURES", "What becomes of messages of `Main` that fail.")


@dataclass(frozen=True, slots=True)
class DeadLetterSettings:
    enabled: bool = setting(True, "Whether messages of `Main` that are given up go to its dead-letter topic.")
    topic: str = setting(
        "", "That topic. Empty: the topic of `Main` with `.dlq`.", parse=_topic_or_nothing, kind="topic"
    )


@dataclass(frozen=True, slots=True)
class RuleEngineSettings:
    """The rule engine's `Main`, as a new installation gets it."""

    topic: str = _topic("tb_rule_engine", "Topic of the rule engine's queue `Main`.")
    partitions: int = _partitions(10, "Partitions of `Main`.", "queue.partitions.count")
    replication_factor: int = setting(
        1,
        "Replicas of the topics of `Main` on Kafka, if more than the others'.",
        key="replication-factor",
        minimum=1,
        falls_back_to="queue.kafka.replication_factor",
    )
    pack_processing_timeout_ms: int = setting(
        60_000,
        "Milliseconds one attempt at a pack of `Main` may take.",
        key="pack-processing-timeout",
        minimum=1,
        falls_back_to="queue.pack-processing-timeout",
    )
    max_retries: int = setting(
        3, "How often a message of `Main` is tried again before it is given up.", key="max-retries", minimum=0
    )
    submit_strategy: SubmitStrategySettings = field(
        default=SubmitStrategySettings(), metadata=section("submit-strategy")
    )
    processing_strategy: ProcessingStrategySettings = field(
        default=ProcessingStrategySettings(), metadata=section("processing-strategy")
    )
    dlq: DeadLetterSettings = field(default=DeadLetterSettings(), metadata=section())


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    topic: str = _topic("tb_edge", "Topic of edge synchronization.")
    partitions: int = _partitions(10, "Partitions of the edge topic.", "queue.partitions.count")


@dataclass(frozen=True, slots=True)
class VersionControlSettings:
    topic: str = _topic("tb_version_control", "Topic of version-control operations.")
    partitions: int = _partitions(10, "Partitions of the version-control topic.", "queue.partitions.count")


@dataclass(frozen=True, slots=True)
class EdqsSettings:
    partitions: int = _partitions(12, "Partitions of each topic of entity data queries.")


@dataclass(frozen=True, slots=True)
class TaskSettings:
    partitions: int = _partitions(12, "Partitions of the topic of a job type that `partitions_per_type` does not name.")
    partitions_per_type: PartitionsPerType = setting(
        (), "Job types with partitions of their own.", parse=_partitions_per_type, kind="TYPE:24;TYPE2:6"
    )


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Of requests that services of the platform ask each other."""

    max_pending_requests: int = setting(
        10_000, "Requests of one instance that may wait for their answers; one more is refused.", minimum=1
    )
    max_request_timeout_ms: int = setting(
        60_000, "Milliseconds a request waits for its answer, at most.", key="max_request_timeout", minimum=1
    )
    poll_interval_ms: int = setting(
        25, "Milliseconds by which a timeout may be told late.", key="poll_interval", minimum=1
    )


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    count: int = _partitions(10, "Partitions of core, rule-engine, edge and version-control topics that set none.")
    hash_function_name: HashName = setting("murmur3_128", "Which partition an entity's messages go to.")
    use_internal_partition: bool = setting(
        False, "Whether partitions are partitions of one provider topic, instead of topics `<topic>.<n>` of their own."
    )


@dataclass(frozen=True, slots=True)
class QueueSettings:
    type: QueueType = setting("log", "Where messages live. `in-memory` is for one process, as in tests.")
    prefix: str = setting("", "Begins the names of all topics and groups.", parse=check_prefix)
    group_id_style: GroupIdStyle = setting(
        "switchyard", "How groups are called: `tb_rule_engine_main-consumer-3`, or `re-Main-consumer-3`."
    )
    pack_processing_timeout_ms: int = setting(
        60_000,
        "Milliseconds one attempt at a pack may take, where a queue sets none.",
        key="pack-processing-timeout",
        minimum=1,
    )
    core: CoreSettings = field(default=CoreSettings(), metadata=section())
    rule_engine: RuleEngineSettings = field(default=RuleEngineSettings(), metadata=section("rule-engine"))
    edge: EdgeSettings = field(default=EdgeSettings(), metadata=section())
    vc: VersionControlSettings = field(default=VersionControlSettings(), metadata=section())
    edqs: EdqsSettings = field(default=EdqsSettings(), metadata=section())
    tasks: TaskSettings = field(default=TaskSettings(), metadata=section())
    requests: RequestSettings = field(default=RequestSettings(), metadata=section())
    partitions: PartitionSettings = field(default=PartitionSettings(), metadata=section())
    # Writers to the log share one flush, so that those who come meanwhile wait for each other without lingering.
    log: LogSettings = field(default=LogSettings(linger_ms=0), metadata=section())
    kafka: KafkaSettings = field(default=KafkaSettings(), metadata=section())
    in_memory: InMemorySettings = field(default=InMemorySettings(linger_ms=0), metadata=section("in-memory"))

    @property
    def client(self) -> ClientSettings:
        """How producers and consumers of the provider in use behave."""
        sections: dict[QueueType, ClientSettings] = {"log": self.log, "kafka": self.kafka, "in-memory": self.in_memory}
        return sections[self.type]
