"""A group's reading, as a member of a Kafka consumer group."""

from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from queuecore.errors import NotOwner, QueueError
from queuecore.messages import Record
from queuecore.providers.kafka.codes import PASSING
from queuecore.providers.kafka.connection import Connection, Setting, logger
from queuecore.providers.kafka.records import place_of, to_record
from queuecore.topics import ProviderPartition, TopicPartitionInfo

MAX_POLL_RECORDS = 500
_SETTINGS: dict[str, Setting] = {
    "group.protocol": "classic",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    # How long the partitions of a killed consumer stay without a reader.
    "session.timeout.ms": 10_000,
}


class KafkaConsumer:
    """Reads the partitions the group gave to it, as long as it gives them.

    The brokers give each partition of a topic to one member. Where only some partitions inside a topic are wanted
    (`use_internal_partition`), the member still joins for the whole topic and leaves the others unread, so that
    ownership is the brokers' everywhere and a displaced member's commit is refused. Hence all consumers of one
    group must want the same partitions; ours do, a group's name says which.

    While the brokers are unreachable `poll` gives nothing, and goes on by itself when they are back.
    """

    def __init__(
        self, connection: Connection, group: str, check: Callable[[Iterable[ProviderPartition]], None]
    ) -> None:
        self._connection = connection
        self._group = group
        self._check = check
        self._consumer: Consumer | None = None
        self._wanted: set[ProviderPartition] = set()
        self._held: set[ProviderPartition] = set()
        self._early: list[Message] = []

    def subscribe(self, partitions: Iterable[TopicPartitionInfo]) -> None:
        self.stop()
        self._wanted = {info.place for info in partitions}
        self._check(self._wanted)
        self._consumer = self._connection.open(Consumer, {**_SETTINGS, "group.id": self._group})
        self._consumer.subscribe(
            sorted({place.topic for place in self._wanted}),
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._revoked,
        )

    def poll(self, duration_ms: int) -> list[Record]:
        if self._consumer is None:
            raise QueueError("this consumer reads no partitions; call subscribe first")
        early, self._early = self._early, []
        first = self._consumer.poll(0 if early else duration_ms / 1000)
        if first is None and not early:
            return []
        # `consume` waits until it is full or its time is over, so only the first message may be waited for.
        later = [] if first is None else [first, *self._consumer.consume(MAX_POLL_RECORDS - 1, 0)]
        messages = [*early, *later]
        stored = [message for message in messages if not self._is_error(message)]
        return [to_record(message) for message in stored if place_of(message) in self._held]

    def keep_alive(self) -> None:
        """Poll with all partitions paused. What a partition that is given meanwhile brings is kept for `poll`."""
        if self._consumer is None:
            return
        held = [TopicPartition(place.topic, place.partition) for place in self._held]
        self._consumer.pause(held)
        if (message := self._consumer.poll(0)) is not None:
            self._early.append(message)
        still = self._consumer.assignment()
        self._consumer.resume([place for place in held if place in still])

    def commit(self, offsets: Mapping[ProviderPartition, int]) -> None:
        for place in offsets:
            if place not in self._held:
                raise NotOwner(
                    f"group {self._group} does not hold {place} here; another consumer will get its records",
                    group=self._group,
                )
        if self._consumer is None or not offsets:
            return
        wanted = [TopicPartition(place.topic, place.partition, offset) for place, offset in offsets.items()]
        try:
            answers = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            raise self._connection.explain(error, f"commit for group {self._group}") from error
        for answer in answers:
            if answer.error is not None:
                raise self._connection.explain(answer.error, f"commit {answer.topic} for group {self._group}")

    def stop(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = None
        self._held.clear()
        self._early.clear()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        given = {ProviderPartition(given.topic, given.partition): given for given in partitions}
        self._held = self._wanted & given.keys()
        consumer.assign([given[place] for place in self._held])

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:  # noqa: ARG002
        """Forget them. What is not committed by now is the next owner's to deliver again."""
        lost = {ProviderPartition(taken.topic, taken.partition) for taken in partitions}
        self._held -= lost
        self._early = [message for message in self._early if place_of(message) not in lost]

    def _is_error(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return False
        if error.code() not in PASSING and not error.retriable():
            raise self._connection.explain(error, f"read as group {self._group}")
        logger.warning("group %s: %s; reading goes on when that is over", self._group, error.str())
        return True
