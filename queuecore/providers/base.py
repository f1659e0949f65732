"""The contract every provider keeps: producer, consumer, reader, transactions, admin.

Offsets count records within a provider partition, rise and never repeat; after compaction or an aborted
transaction some are missing. A provider object belongs to the process that opened it: nothing is inherited across
a fork.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, NamedTuple, Protocol, Self, runtime_checkable

from queuecore.errors import ConfigurationError, ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, Record, RecordMetadata
from queuecore.providers.options import check_choices
from queuecore.topics import ProviderPartition, TopicPartitionInfo, check_partitions

SendCallback = Callable[[RecordMetadata | None, QueueError | None], None]


class Brief(tuple[Any, ...]):
    """A callback of who does not ask where its message was stored: a function, and what it is called with beside the
    error. A producer that would have to find out leaves the metadata out. Made by `tuple.__new__` where there are many.
    """

    __slots__ = ()

    def __call__(self, metadata: RecordMetadata | None, error: QueueError | None) -> None:  # noqa: ARG002
        function, thing = self
        function(thing, error)


# Where to, what, and whom to tell.
Sending = tuple[TopicPartitionInfo, QueueMessage, SendCallback]
# Which assignment of each partition a consumer acts for.
Epochs = Mapping[ProviderPartition, int]
Cleanup = Literal["delete", "compact", "compact,delete"]

DAY_MS = 24 * 60 * 60 * 1000
FOR_EVER = -1


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """What a topic is created with. `FOR_EVER` as a retention means that nothing is removed for that reason."""

    name: str
    partitions: int = 1
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = FOR_EVER
    segment_bytes: int = 50 * 1024 * 1024
    cleanup: Cleanup = "delete"
    # None: a new topic gets what the provider is set to, an existing one keeps what it has. Where there is one machine
    # only, there is one copy.
    replication_factor: int | None = None
    min_insync_replicas: int | None = None
    # What else the provider is to set, by its own names: those of `Capabilities.topic_properties`. One that is left out
    # stays as it is.
    properties: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_choices(self, cleanup=Cleanup)
        check_partitions(self.name, self.partitions)
        for what, value in (("retention_ms", self.retention_ms), ("retention_bytes", self.retention_bytes)):
            if value < FOR_EVER:
                raise ConfigurationError(f"topic {self.name!r}: {what} is {value}; use {FOR_EVER} for ever, or more")
        if self.segment_bytes < MIN_SEGMENT_BYTES:
            raise ConfigurationError(
                f"topic {self.name!r}: segment_bytes is {self.segment_bytes}; {MIN_SEGMENT_BYTES} is the least"
            )
        for name in _COPIES:
            if (value := getattr(self, name)) is not None and value < 1:
                raise ConfigurationError(f"topic {self.name!r}: {name} is {value}; 1 is the least")

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup

    @property
    def is_deleted_from(self) -> bool:
        """Whether retention removes old records."""
        return "delete" in self.cleanup


# Kafka 4 takes no less.
MIN_SEGMENT_BYTES = 1024 * 1024
_COPIES = ("replication_factor", "min_insync_replicas")


def with_one_copy(spec: TopicSpec) -> TopicSpec:
    """The spec as a provider on one machine keeps it. ConfigurationError where it wants more copies, or properties."""
    for name in _COPIES:
        if (value := getattr(spec, name)) is not None and value > 1:
            raise ConfigurationError(
                f"topic {spec.name!r}: {name} is {value}, and this provider keeps one copy; leave it out, or set "
                "queue.type to kafka"
            )
    if spec.properties:
        names = ", ".join(name for name, _ in spec.properties)
        raise ConfigurationError(f"topic {spec.name!r}: this provider has no {names}; leave the properties out")
    return replace(spec, replication_factor=None, min_insync_replicas=None)


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition of a topic: where it begins, and the offset its next record will get.

    Brokers are told by their ids: who leads the partition (None while nobody does), who has a copy, and whose copy is
    up to date. A provider without brokers names none.
    """

    place: ProviderPartition
    # None while nobody leads the partition, who alone knows.
    beginning: int | None
    end: int | None
    # None where the provider cannot say.
    size_bytes: int | None = None
    leader: int | None = None
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()

    @property
    def is_under_replicated(self) -> bool:
        return len(self.in_sync) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as it is, with its partitions in order."""

    spec: TopicSpec
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A consumer group: who reads for it now, and which partitions each member holds."""

    name: str
    members: Mapping[str, frozenset[ProviderPartition]]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider can do beyond the contract; asking for what it cannot raises NotSupported."""

    durable: bool
    transactions: bool
    compaction: bool
    # Whether members of a group share partitions by the strategy of ConsumerOptions.
    group_strategies: bool
    # What topics can be set to beyond `TopicSpec`, by the provider's own names.
    topic_properties: frozenset[str] = frozenset()


class SendFunction(Protocol):
    """`QueueProducer.send`, for those that have another's as their own."""

    def __call__(
        self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback, patience_s: float | None = None
    ) -> None: ...


class SendManyFunction(Protocol):
    """`QueueProducer.send_many`, likewise."""

    def __call__(self, sends: Sequence[Sending], patience_s: float | None = None) -> None: ...


class QueueProducer(Protocol):
    """Sends. Safe from any thread."""

    @property
    def default_topic(self) -> str:
        """The topic it was made for; empty where it was made for none."""

    def send(
        self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback, patience_s: float | None = None
    ) -> None:
        """Store one message. Waits only while the producer's buffer is full, for `max_block_ms` or for `patience_s`
        where that is less, and raises ProviderUnavailable when it stays full or the producer has been stopped.
        Otherwise the callback runs exactly once, on a thread of the producer's, with the metadata, which one that is
        `Brief` may not get, or the error:
        UnknownTopic, PayloadTooLarge, InvalidMessage for one that cannot be encoded or has no key where a compacted
        topic needs one. With `acks=0` the offset is unknown."""

    def send_many(self, sends: Sequence[Sending], patience_s: float | None = None) -> None:
        """As `send` for each, in this order, at less cost. One that there is no room for is told so by its callback,
        which may run on this thread then; nothing is raised."""

    def flush(self, timeout_s: float) -> bool:
        """True when every send so far has had its callback within the time."""

    def stop(self) -> None:
        """Flush and release. Later sends are refused."""


class SendObserver(Protocol):
    """Is told what becomes of messages before their callbacks run, on the producer's thread, or on the sender's if one
    is refused at once. It must not wait."""

    def stored(self, place: ProviderPartition, messages: Sequence[QueueMessage]) -> None: ...

    def refused(self, place: ProviderPartition, messages: Sequence[QueueMessage]) -> None: ...


@runtime_checkable
class ObservableProducer(Protocol):
    """A producer that stores many messages together, and tells of them together: whoever counts them needs no callback
    around each one's."""

    def observed(self, observer: SendObserver) -> QueueProducer:
        """Another one, of which the observer is told."""


def stopped() -> ProviderUnavailable:
    """What whoever sends through a producer is told after its end."""
    return ProviderUnavailable("this producer has been stopped; open a new one")


def refuse(
    info: TopicPartitionInfo,  # noqa: ARG001
    message: QueueMessage,  # noqa: ARG001
    callback: SendCallback,  # noqa: ARG001
    patience_s: float | None = None,  # noqa: ARG001
) -> None:
    """`send` of a producer that has been stopped."""
    raise stopped()


def refuse_many(sends: Sequence[Sending], patience_s: float | None = None) -> None:  # noqa: ARG001
    """`send_many` likewise."""
    for _info, _message, callback in sends:
        callback(None, stopped())


class AssignmentListener(Protocol):
    """Told inside `poll`, on the consumer's thread, when the group gives or takes partitions."""

    def assigned(self, partitions: frozenset[ProviderPartition]) -> None: ...

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        """They go to another member when this returns; what is done can still be committed."""

    def lost(self, partitions: frozenset[ProviderPartition]) -> None:
        """They are another member's already; a commit would be refused."""


class QueueConsumer(Protocol):
    """One member of a group. To be used by one thread."""

    @property
    def topic(self) -> str:
        """The topic it was made for; empty where it was made for none."""

    @property
    def partitions(self) -> frozenset[ProviderPartition]:
        """What it holds now: the group may give and take partitions in every `poll`."""

    @property
    def is_stopped(self) -> bool: ...

    def subscribe(
        self,
        partitions: Iterable[TopicPartitionInfo] | None = None,
        listener: AssignmentListener | None = None,
        epochs: Epochs | None = None,
    ) -> None:
        """Join the group for these partitions, or for all of the consumer's `topic` as it grows. The group divides
        among its members what they ask for, and each partition is read by one of them at a time, from its committed
        offset on, or from where `auto_offset_reset` says. UnknownTopic where there is none.

        Called again it is a change, told to this listener: what was held and is wanted still goes on where it is,
        without a word. What is wanted no longer is revoked in the next `poll`, and can be committed then; what is new
        is given as the group gives it. A refused change leaves all as it is. To begin anew, unsubscribe first.

        `epochs` fence: each is of one of these partitions, and rises with every new assignment of it. A commit carries
        the epoch that its partition was given under, and once the group has committed a partition under one, none of a
        lower epoch takes effect: StaleEpoch. Who is given a partition that was committed under a higher one hears that
        in `poll`, once, and wants the partition no longer. A partition whose epoch changes is revoked, and given anew.
        A partition without an epoch is not fenced."""

    def poll(self, duration_ms: int) -> list[Record]:
        """Up to a pack of records, waiting at most that long for the first. Each is given out once. QueueError
        when nothing is subscribed. Displaced, until it subscribes again, when another consumer has taken this one's
        place in the group (see `Provider.consumer`). StaleEpoch for each partition that was given under an epoch older
        than the group's newest; the others go on with the next poll. What the listener raises ends the poll, and what
        that would have given comes with the next."""

    def commit(self, offsets: Mapping[ProviderPartition, int] | None = None) -> None:
        """Everything below these offsets is done and will not be delivered to the group again. By default that is
        everything polled of the partitions held; one that nothing was polled of stays as it is. NotOwner, with nothing
        committed, when another consumer of the group holds one of the partitions, or when an offset is below all that
        this consumer read from since it holds the partition: that work is from before, and a consumer that held it
        meanwhile is further. Kafka knows only the first of these. StaleEpoch, with nothing committed, when the group
        has committed one of them under a higher epoch; Kafka says NotOwner. A commit without an epoch leaves the stored
        one as it is, but on Kafka, where it is lost. OffsetOutOfRange below 0 and, but on Kafka, beyond the end."""

    def pause(self, partitions: Iterable[ProviderPartition]) -> None:
        """Give out no records of these until `resume`; they stay this consumer's. NotOwner if they are not."""

    def resume(self, partitions: Iterable[ProviderPartition]) -> None: ...

    def seek(self, partition: ProviderPartition, offset: int) -> None:
        """Go on at this offset. NotOwner if the partition is not held, OffsetOutOfRange if it has no such offset."""

    def keep_alive(self) -> None:
        """Say that the consumer still works, without taking records: for a pack that takes long."""

    def unsubscribe(self) -> None:
        """Leave the group and release the partitions. Commits nothing."""

    def stop(self) -> None:
        """Unsubscribe for good. On Kafka one with a member id keeps its place in the group until its session ends, for
        a successor with the same id; where others shall have the partitions at once, unsubscribe first."""


class QueueReader(Protocol):
    """Reading without a group. To be used by one thread."""

    def read(self, partition: ProviderPartition, offset: int, max_records: int) -> list[Record]:
        """Records from `offset` on; empty at the end. OffsetOutOfRange below the beginning, UnknownTopic where
        there is no such partition."""

    def position(self, partition: ProviderPartition) -> int:
        """Where reading this partition goes on: behind what the last `read` gave, and behind what it left out as
        aborted or removed. A read that gave nothing stays below the end while a transaction is undecided: what is
        behind that one cannot be seen yet."""

    def close(self) -> None: ...


class DataColumn(NamedTuple):
    """The data of some records and nothing else of them, in one piece: for who reads millions.

    offsets   of the records
    lengths   of each one's data: numbers without a sign, of four bytes each, the lowest first
    data      of all, behind each other
    """

    offsets: Sequence[int]
    lengths: bytes
    data: memoryview


@runtime_checkable
class DataReader(Protocol):
    """A reader that need not make a record of each message: where the provider stores their data by columns."""

    def read_data(self, partition: ProviderPartition, offset: int) -> DataColumn | None:
        """Of the records that are stored together with the first from `offset` on, which may have some before it; None
        at the end, and where `read` would give nothing. It raises what `read` does."""


class Transaction(Protocol):
    """Messages and offsets that take effect together. Leaving the `with` block commits; an exception aborts."""

    def send(self, info: TopicPartitionInfo, message: QueueMessage) -> None:
        """Hand over one message; what became of it shows at `commit`."""

    def commit_offsets(self, consumer: QueueConsumer, offsets: Mapping[ProviderPartition, int]) -> None:
        """Commit these for the consumer's group with this transaction, under the epochs it has them now. NotOwner and
        StaleEpoch as for `QueueConsumer.commit`, here or at the commit; TransactionAborted on Kafka while the group
        divides its partitions anew."""

    def commit(self) -> None:
        """All of it, or QueueError and none of it. ProducerFenced when a newer producer has the transactional id.
        ProviderUnavailable where a provider falls silent meanwhile: then the committed offsets tell what became of it.
        """

    def abort(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class TransactionalProducer(Protocol):
    """Opening one aborts what an earlier one of the same transactional id left open, and fences that one."""

    def begin(self) -> Transaction:
        """One at a time. ProducerFenced when a newer producer has the transactional id."""

    def check(self, info: TopicPartitionInfo, message: QueueMessage) -> None:
        """InvalidMessage or PayloadTooLarge for one that can be seen to be refused, without a transaction. The provider
        may still refuse others."""

    def stop(self) -> None:
        """Abort what is open, and release."""


class QueueAdmin(Protocol):
    """Topics, offsets and groups, asked for in bulk. Safe from any thread."""

    def create_topics(self, specs: Iterable[TopicSpec]) -> None:
        """Create what does not exist yet; what exists stays as it is."""

    def alter_topics(self, specs: Iterable[TopicSpec]) -> None:
        """Make existing topics as these say; what they are already stays untouched. UnknownTopic for one there is not,
        ConfigurationError for fewer partitions than there are."""

    def delete_topics(self, names: Iterable[str]) -> None:
        """Remove them with their records and committed offsets; one that does not exist is fine."""

    def topics(self) -> Mapping[str, TopicSpec]:
        """All with their settings, which a cluster of many takes long to tell; `topic_names` are quicker."""

    def topic_names(self, behind: str = "", limit: int | None = None) -> list[str]:
        """In their order, those behind this one, and of them so many at most."""

    def describe_topics(self, names: Iterable[str]) -> Mapping[str, TopicDescription]:
        """UnknownTopic where there is none."""

    def delete_records(self, offsets: Mapping[ProviderPartition, int]) -> Mapping[ProviderPartition, int]:
        """Remove what is below these offsets; the new beginnings. OffsetOutOfRange beyond the end."""

    def beginning_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]: ...

    def end_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        """The offset the next record will get, for each."""

    def offsets_for_times(self, times_ms: Mapping[ProviderPartition, int]) -> Mapping[ProviderPartition, int]:
        """The first offset whose record is not older than that; the end where there is none."""

    def committed_offsets(
        self, groups: Mapping[str, Iterable[ProviderPartition] | None]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        """Per group, what it committed in these partitions, or wherever it did where None stands for them; a partition
        it never committed is absent."""

    def committed_epochs(
        self, groups: Mapping[str, Iterable[ProviderPartition]]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        """Per group, the newest epoch that it committed under; a partition it never committed under one is absent."""

    def alter_group_offsets(self, group: str, offsets: Mapping[ProviderPartition, int]) -> None:
        """Commit for the group, forwards or backwards; epochs stay. GroupActive while a member holds one of the
        partitions, OffsetOutOfRange below 0 or beyond the end; Kafka says neither of the latter."""

    def delete_group_offsets(self, group: str, partitions: Iterable[ProviderPartition]) -> None:
        """Forget what the group committed there, and under which epochs. GroupActive while a member holds one of the
        partitions."""

    def groups(self, behind: str = "", limit: int | None = None) -> Mapping[str, GroupDescription]:
        """Every group that has members or committed offsets; in their order those behind this one, and of them so many
        at most."""


class Provider(Protocol):
    """Where messages live. Whoever opens it closes it, and opens it after a fork, never before."""

    @property
    def capabilities(self) -> Capabilities: ...

    def producer(self, default_topic: str = "", *, lasting: bool = True) -> QueueProducer:
        """What is sent outlives every process, as `acks` says. What is not `lasting` need not outlive the machine: for
        messages that nobody waits for after its restart, a provider of one machine does not wait for the disk."""

    def transactional_producer(self, transactional_id: str) -> TransactionalProducer:
        """NotSupported where `capabilities` says so."""

    def consumer(
        self, group: str, topic: str = "", *, member_id: str | None = None, max_poll_records: int | None = None
    ) -> QueueConsumer:
        """A member of the group. One poll gives at most `max_poll_records`, where ConsumerOptions do not say less.

        With a `member_id` it is known again: who subscribes under one that another consumer of the group has, displaces
        that one at once and takes its partitions; the displaced one's commits are refused with NotOwner, and it is told
        that they are lost. InvalidName for an id that Kafka would not take."""

    def reader(self) -> QueueReader: ...

    def admin(self) -> QueueAdmin: ...

    def close(self) -> None: ...
