"""What a consumption is to do: everything about it that can be said beforehand."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from queuecore.deadletter.policy import DeadLetterPolicy
from queuecore.delivery import Delivery
from queuecore.errors import ConfigurationError
from queuecore.processing.strategies import ProcessingStrategy
from queuecore.providers.base import Epochs
from queuecore.submit.strategies import Burst, SubmitStrategy
from queuecore.topics import TopicPartitionInfo

# In use, a pack is what one poll gives: more at once would only wait, and keep the garbage collector busy.
PACK_SIZE: Final = 1_000


@dataclass(frozen=True, slots=True)
class ConsumptionPlan:
    """What to read, as whom, and what to do with it.

    queue             its name, for people
    group             the consumer group
    infos             the partitions that are read with one consumer
    handler_name      for letters and the log
    queue_id          what letters name as their queue; empty: `queue`
    service_id        who consumes, for letters
    delivery          what a crash may do to a message
    submit            in which order messages are handed to handlers
    processing        what becomes of those that fail
    letters           what becomes of those that are given up
    timeout_ms        how long one handler may take, and for how long an attempt hands over messages; None: for ever
    overrun_limit_ms  how long the rest of a lane waits for a handler that overran its time
    max_overruns      so many handlers may be left behind, still running, before no more are started
    concurrency       how many messages are handled side by side
    poll_interval_ms  how long one poll waits for messages
    pack_size         how many messages are processed together
    max_open          how many messages of a partition may be read and not yet committed
    max_open_bytes    how many bytes of them are held in memory; a pack may go beyond
    member_id         the consumer's place in its group, which a successor takes over; None: any
    hand_over_s       how long a partition that is given away waits for the messages under way
    from_end          whether a group that is new begins with what comes from now on
    state_topic       the compacted topic with the state of handlers, one partition for each of the queue's; empty: none
    epochs            by a partition's number, for which assignment of it this is; without one, it is not fenced
    """

    queue: str
    group: str
    infos: tuple[TopicPartitionInfo, ...]
    handler_name: str
    queue_id: str = ""
    service_id: str = ""
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    submit: SubmitStrategy = field(default_factory=Burst)
    processing: ProcessingStrategy = field(default_factory=ProcessingStrategy)
    letters: DeadLetterPolicy = field(default_factory=DeadLetterPolicy)
    timeout_ms: int | None = 60_000
    overrun_limit_ms: int = 60_000
    max_overruns: int = 16
    concurrency: int = 4
    poll_interval_ms: int = 25
    pack_size: int = PACK_SIZE
    max_open: int = 10 * PACK_SIZE
    max_open_bytes: int = 64 * 1024 * 1024
    member_id: str | None = None
    hand_over_s: float = 5.0
    from_end: bool = False
    state_topic: str = ""
    # Compared, but not hashed: a mapping cannot be.
    epochs: Mapping[int, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.state_topic and self.delivery is Delivery.AT_MOST_ONCE:
            raise ConfigurationError(
                f"queue {self.queue}: state is not kept with at_most_once, as it would miss what a crash loses; use "
                "at_least_once or exactly_once"
            )
        if unknown := self.epochs.keys() - {info.partition or 0 for info in self.infos}:
            named = ", ".join(map(str, sorted(unknown)))
            raise ConfigurationError(f"queue {self.queue}: epochs are given for {named}, which the plan does not read")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigurationError(f"queue {self.queue}: {name} is {value}; use {least} or more")
        if self.max_open < self.pack_size:
            raise ConfigurationError(
                f"queue {self.queue}: max_open is {self.max_open}, less than a pack of {self.pack_size}; raise it"
            )

    @property
    def name(self) -> str:
        return f"{self.queue}-{self.group}"

    @property
    def is_fenced(self) -> bool:
        return bool(self.epochs)

    def without(self, partitions: Collection[int]) -> "ConsumptionPlan":
        """The same, but for these partitions."""
        if not partitions:
            return self
        infos = tuple(info for info in self.infos if (info.partition or 0) not in partitions)
        epochs = {number: epoch for number, epoch in self.epochs.items() if number not in partitions}
        return replace(self, infos=infos, epochs=epochs)

    def epochs_by_place(self) -> Epochs:
        """As a provider wants them."""
        numbers = {info.place: info.partition or 0 for info in self.infos}
        return {place: self.epochs[number] for place, number in numbers.items() if number in self.epochs}


_LEAST: Final = {
    "timeout_ms": 1,
    "overrun_limit_ms": 0,
    "max_overruns": 1,
    "concurrency": 1,
    "poll_interval_ms": 1,
    "pack_size": 1,
    "max_open_bytes": 1,
}
