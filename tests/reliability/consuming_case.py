"""One consumption under test, and the journal of all that happens in it."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from queuecore.consuming.plan import ConsumptionPlan
from queuecore.delivery import Delivery
from queuecore.processing import ProcessingStrategy
from queuecore.providers.base import Provider
from queuecore.providers.options import ConsumerOptions
from queuecore.submit import SubmitStrategyType, submit_strategy
from queuecore.topics import TopicPartitionInfo
from tests.reliability.consuming_judge import Event, Promise, What

ProviderName = Literal["in-memory", "log", "kafka"]

TIMEOUT_MS: Final = 150
_BATCH_SIZE: Final = 3
# Small packs, so that there are many.
_PACK_SIZE: Final = 8
# Hardly ever waited for: a member that is killed is displaced by its next life. Kafka waits for one that was killed
# while the group divided its partitions.
_SESSION_MS: Final = 6_000


@dataclass(frozen=True, slots=True)
class Case:
    """What is consumed, how, and what everything random follows from.

    where   the log's folder, or Kafka's servers
    deadly  the numbers of messages that kill the process of their handler
    calm    whether all others are handled at once, and well
    """

    provider: ProviderName
    submit: SubmitStrategyType
    processing: ProcessingStrategy
    delivery: Delivery
    seed: str
    topic: str
    partitions: int
    where: str
    journal: Path
    deadly: frozenset[int] = frozenset()
    calm: bool = False

    @property
    def promise(self) -> Promise:
        return Promise(self.submit, self.processing, self.delivery)

    @property
    def group(self) -> str:
        return f"{self.topic}-group"

    @property
    def infos(self) -> tuple[TopicPartitionInfo, ...]:
        return tuple(TopicPartitionInfo(self.topic, number) for number in range(self.partitions))

    @property
    def output(self) -> TopicPartitionInfo:
        return TopicPartitionInfo(f"{self.topic}.output")

    def plan(self, member: str) -> ConsumptionPlan:
        return ConsumptionPlan(
            queue=self.topic,
            group=self.group,
            infos=self.infos,
            handler_name="misbehaving",
            service_id=member,
            delivery=self.delivery,
            submit=submit_strategy(self.submit, _BATCH_SIZE),
            processing=self.processing,
            timeout_ms=TIMEOUT_MS,
            pack_size=_PACK_SIZE,
            max_open=3 * _PACK_SIZE,
            member_id=member,
        )

    def open(self) -> Provider:
        """For a process of its own."""
        consuming = ConsumerOptions(max_poll_records=_PACK_SIZE, session_timeout_ms=_SESSION_MS)
        match self.provider:
            case "log":
                from queuecore.providers.log import LogProvider

                return LogProvider(Path(self.where), consuming=consuming)
            case "kafka":
                from queuecore.providers.kafka import KafkaProvider

                return KafkaProvider(self.where, consuming=consuming)
            case other:
                raise ValueError(f"{other} has no processes")


class Journal:
    """Lines that outlive their writer, in the order in which all processes wrote them. Safe from any thread; one that
    comes after `close` has nothing to say."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._file: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, what: What, who: str, partition: int = -1, number: int = -1, attempt: int = 0) -> None:
        with self._lock:
            if self._file is not None:
                os.write(self._file, Event(what, who, partition, number, attempt).line())

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
