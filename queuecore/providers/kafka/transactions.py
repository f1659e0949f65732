"""Messages in several partitions and a group's offsets, all or nothing: Kafka's own transactions."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ConfigurationError, QueueError, TransactionAborted
from queuecore.groups.offsets import check_offsets
from queuecore.messages import QueueMessage
from queuecore.providers.base import QueueConsumer
from queuecore.providers.kafka.codes import PURGED
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.consumer import KafkaConsumer
from queuecore.providers.kafka.records import encode_within, not_encodable, place_of
from queuecore.providers.kafka.transactional_client import TransactionalClient
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class KafkaTransactionalProducer:
    """For one thread. That a newer producer has the transactional id shows when the brokers are asked: at a commit, and
    from then on when a transaction begins.

    When the brokers fall silent in the middle of a commit, nobody can say whether it took effect: ProviderUnavailable.
    The group's committed offsets tell, once the next transaction could begin.
    """

    def __init__(
        self, connection: Connection, transactional_id: str, options: ProducerOptions, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        if not transactional_id:
            raise ConfigurationError("a transactional producer needs a transactional id")
        self._connection = connection
        self._id = transactional_id
        self._options = options
        self._clock = clock
        self._client: TransactionalClient | None = self._open_client()
        self._open: KafkaTransaction | None = None
        self._is_stopped = False

    def begin(self) -> "KafkaTransaction":
        if self._is_stopped:
            raise QueueError("this producer has been stopped; open a new one")
        if self._open is not None and not self._open.is_over:
            raise QueueError(f"{self._id} has a transaction open; commit or abort it first")
        client = self._sound_client()
        client.begin()
        self._open = KafkaTransaction(client, self._options.max_request_size)
        return self._open

    def check(self, info: TopicPartitionInfo, message: QueueMessage) -> None:  # noqa: ARG002
        encode_within(message, self._options.max_request_size)

    def stop(self) -> None:
        if not self._is_stopped:
            self._is_stopped = True
            if self._open is not None:
                self._open.abort()
            if self._client is not None:
                self._client.close()

    def _sound_client(self) -> TransactionalClient:
        """A new one where the last has failed."""
        if self._client is not None and not self._client.is_sound:
            if self._client.is_fenced:
                raise self._client.fenced()
            self._client.close()
            self._client = None
        if self._client is None:
            self._client = self._open_client()
        return self._client

    def _open_client(self) -> TransactionalClient:
        return TransactionalClient(self._connection, self._id, self._options, self._clock)


class KafkaTransaction:
    """Made by `begin`."""

    def __init__(self, client: TransactionalClient, max_request_size: int) -> None:
        self._client = client
        self._max_request_size = max_request_size
        # Of the first message that cannot be stored. Shows at the commit, which is then none.
        self._failure: QueueError | None = None
        self.is_over = False

    def send(self, info: TopicPartitionInfo, message: QueueMessage) -> None:
        self._require_open()
        if self._failure is not None:
            return
        place = info.place
        try:
            self._client.produce(place, encode_within(message, self._max_request_size), self._failed)
        except QueueError as error:
            self._failure = error
        except KafkaException as error:
            self._failure = self._client.explain(error.args[0], f"send to {place}")
        except (TypeError, ValueError) as error:
            self._failure = not_encodable(error)

    def commit_offsets(self, consumer: QueueConsumer, offsets: Mapping[ProviderPartition, int]) -> None:
        self._require_open()
        if not isinstance(consumer, KafkaConsumer):
            raise QueueError("the consumer belongs to another provider; its offsets cannot be part of this transaction")
        check_offsets(offsets)
        if not offsets:
            return
        try:
            self._client.send_offsets(offsets, consumer.group_metadata(offsets), consumer.epochs_of(offsets))
        except QueueError as error:
            # The messages alone must not take effect either.
            self._failure = self._failure or error
            raise

    def commit(self) -> None:
        self._require_open()
        self.is_over = True
        error = self._failure or self._client.commit()
        if error is not None:
            # A message may have failed only now.
            raise self._client.undo(self._failure or error)

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._client.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        elif not self.is_over:
            self.commit()

    def _failed(self, error: KafkaError | None, message: Message) -> None:
        """Told by the library on this thread, while it waits. What was purged has been undone with the rest."""
        if error is not None and self._failure is None and error.code() not in PURGED:
            self._failure = self._client.explain(error, f"send to {place_of(message)}")

    def _require_open(self) -> None:
        if self.is_over:
            raise TransactionAborted("this transaction is over; begin another")
