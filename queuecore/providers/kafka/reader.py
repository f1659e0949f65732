"""Reading without a group."""

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import OffsetOutOfRange, ProviderUnavailable
from queuecore.messages import Record
from queuecore.providers.kafka.codes import END_OF_PARTITION, NO_RIGHT_TO_GROUP, NO_SUCH_PARTITION
from queuecore.providers.kafka.connection import Connection, Setting
from queuecore.providers.kafka.decoding import to_records
from queuecore.providers.kafka.records import to_kafka
from queuecore.providers.options import ConsumerOptions
from queuecore.topics import ProviderPartition

_SETTINGS: dict[str, Setting] = {
    "group.id": "switchyard-reader",  # the library wants one; nothing joins it or commits to it
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    # A read ends where the partition ends, so the broker need never hold an answer back for more.
    "fetch.wait.max.ms": 10,
}


class KafkaReader:
    """Reads any partition up to what was stored when the read began. For one thread."""

    def __init__(self, connection: Connection, options: ConsumerOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = connection
        self._clock = clock
        settings = {**connection.options.consumer_properties, **_SETTINGS} | {"isolation.level": options.isolation}
        self._consumer = connection.open(Consumer, settings)
        self._positions: dict[ProviderPartition, int] = {}

    def read(self, partition: ProviderPartition, offset: int, max_records: int) -> list[Record]:
        place = to_kafka(partition, offset)
        try:
            beginning, end = self._consumer.get_watermark_offsets(place, self._connection.timeout_s)
            if offset < beginning:
                raise OffsetOutOfRange(
                    f"{partition} begins at offset {beginning}; {offset} has been removed by retention",
                    beginning=beginning,
                )
            self._positions[partition] = offset
            if offset >= end:
                return []
            self._consumer.assign([place])
            return self._read_until(partition, end, max_records)
        except KafkaException as error:
            raise self._connection.explain(self._cause(error, partition.topic), f"read {partition}") from error
        finally:
            self._consumer.unassign()

    def position(self, partition: ProviderPartition) -> int:
        return self._positions[partition]

    def close(self) -> None:
        self._consumer.close()

    def _cause(self, error: KafkaException, topic: str) -> KafkaError | KafkaException:
        """To the library a topic that may not be read is an unknown one; the brokers tell them apart."""
        if error.args[0].code() != NO_SUCH_PARTITION:
            return error
        try:
            told = self._consumer.list_topics(topic, self._connection.timeout_s).topics[topic].error
        except KafkaException:
            return error
        return told or error

    def _read_until(self, partition: ProviderPartition, end: int, max_records: int) -> list[Record]:
        """Up to `end` or the end of the partition, whichever comes first: the last offsets may hold no record
        (a transaction's marker, a record removed by compaction)."""
        deadline = self._clock.monotonic() + self._connection.timeout_s
        messages: list[Message] = []
        at_end = False
        while not at_end and len(messages) < max_records:
            message = self._consumer.poll(max(0.0, deadline - self._clock.monotonic()))
            if message is None:
                raise ProviderUnavailable(
                    f"cannot read {partition}: Kafka at {self._connection.bootstrap_servers} gave nothing for "
                    f"{self._connection.timeout_s:g} s; check that the partition has a leader"
                )
            # `consume` waits until it is full or its time is over, so only the first message may be waited for.
            came = [message, *self._consumer.consume(max_records - len(messages) - 1, 0)]
            for one in (one for one in came if not _is_about_group(one)):
                # Behind the last message there may be markers of transactions: their end says how far it got.
                self._positions[partition] = (one.offset() or 0) + (not _is_end(one))
                at_end = at_end or _is_end(one) or (one.offset() or 0) >= end - 1
                if not _is_end(one):
                    messages.append(one)
        return [record for record in to_records(messages) if record.offset < end]


def _is_about_group(message: Message) -> bool:
    """The library asks who coordinates its group, and whoever may only read a topic has no right to one."""
    return (error := message.error()) is not None and error.code() == NO_RIGHT_TO_GROUP


def _is_end(message: Message) -> bool:
    error = message.error()
    if error is None:
        return False
    if error.code() == END_OF_PARTITION:
        return True
    raise KafkaException(error)
