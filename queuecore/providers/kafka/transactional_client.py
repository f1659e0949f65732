"""The library's client for transactions, and what its errors mean.

It must be told how each transaction ends. One that has failed for good, or whose state is in doubt, is not used again:
when the next of the same transactional id opens, the brokers end whatever this one left.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer

from queuecore.clock import Clock
from queuecore.errors import ProducerFenced, ProviderUnavailable, QueueError, TransactionAborted
from queuecore.providers.base import Epochs
from queuecore.providers.kafka.codes import FENCED, MEANING, NO_SUCH_PARTITION, PASSING, REBALANCING
from queuecore.providers.kafka.connection import Connection, Setting
from queuecore.providers.kafka.epochs import to_commit
from queuecore.providers.kafka.outage import logger
from queuecore.providers.kafka.patience import Caller
from queuecore.providers.kafka.records import DeliveryReport, Encoded
from queuecore.providers.kafka.settings import producer_settings
from queuecore.providers.options import KafkaOptions, ProducerOptions
from queuecore.topics import ProviderPartition

# How long readers of committed messages, and a partition's next owner, wait for a transaction that nobody ends.
TIMEOUT_MS: Final = 60_000
_MOST_RETRIES: Final = 2**31 - 1
# A transaction that follows another meets its end at the brokers, which is over in milliseconds.
_FIRST_RETRY_MS: Final = 20
_LOOK_AGAIN_S: Final = 0.02
_POLL_S: Final = 0.05
# How much later than its time is over a call may come back that keeps to it.
_GRACE_S: Final = 1.0


class TransactionalClient:
    """Opening one fences the earlier ones of its id and aborts what they left open. For one thread."""

    def __init__(self, connection: Connection, transactional_id: str, options: ProducerOptions, clock: Clock) -> None:
        self._connection = connection
        self._id = transactional_id
        self._options = options
        self._clock = clock
        settings = transactional_settings(transactional_id, options, connection.options)
        self._library = connection.open(Producer, settings)
        self._timeout_s = int(settings["transaction.timeout.ms"]) / 1000
        # All messages have to be stored before the brokers are asked to commit.
        self._commit_s = int(settings["delivery.timeout.ms"]) / 1000 + connection.timeout_s
        # The library sends offsets whenever it finds the group's coordinator, and does not look at the time. Where that
        # broker was taken from the cluster it may never look for another (librdkafka 2.16, its issues 5456 and 5511).
        self._caller = Caller(connection)
        self.is_fenced = False
        # Whether it can carry another transaction.
        self.is_sound = True
        try:
            error = self._try(self._library.init_transactions, connection.timeout_s)
            self._raise(error, "open transactions")
        except BaseException:
            self.close()
            raise

    def begin(self) -> None:
        error = self._try(lambda _: self._library.begin_transaction(), 0)
        self._raise(error, "begin a transaction")

    def produce(self, place: ProviderPartition, message: Encoded, failed: DeliveryReport) -> None:
        """Hand over, waiting for room in the buffer. `failed` is called for a message that cannot be stored."""
        deadline = self._clock.monotonic() + self._options.max_block_ms / 1000
        looked_again = False
        while True:
            try:
                key, value, headers, _ = message
                return self._library.produce(place.topic, value, key, place.partition, failed, None, 0, headers)
            except BufferError:
                self._wait_for_room(deadline)
            except KafkaException as error:
                if looked_again or error.args[0].code() != NO_SUCH_PARTITION:
                    raise
                # The topic may have grown since the library looked.
                self._library.list_topics(place.topic, self._connection.timeout_s)
                looked_again = True

    def send_offsets(self, offsets: Mapping[ProviderPartition, int], group_metadata: object, epochs: Epochs) -> None:
        positions = [to_commit(place, offset, epochs) for place, offset in offsets.items()]

        def send(remaining_s: float) -> None:
            self._library.send_offsets_to_transaction(positions, group_metadata, remaining_s)

        doing, patience_s = "commit offsets in a transaction", self._connection.timeout_s
        try:
            error = self._caller.call(lambda: self._try(send, patience_s), patience_s + _GRACE_S)
        except ProviderUnavailable as late:
            # It may still be sent, and is refused then: the next of this id has a higher epoch.
            self.is_sound = False
            raise ProviderUnavailable(f"cannot {doing} as {self._id}: {late.message}") from late
        self._raise(error, doing)

    def commit(self) -> QueueError | None:
        """What kept it from taking effect; or that nobody can say whether it did."""
        if (error := self._try(self._library.commit_transaction, self._commit_s)) is None:
            return None
        reason = self.explain(error, "commit a transaction")
        if error.txn_requires_abort() or not reason.retryable:
            return reason
        self.is_sound = False
        return ProviderUnavailable(
            f"{reason.message}. The transaction may have taken effect: read again from what its group has committed"
        )

    def undo(self, reason: QueueError) -> QueueError:
        """Abort for this reason; the reason, unless it turns out that a newer client has the id."""
        self.abort()
        # Where a message was refused, the library goes on with numbers that the brokers do not expect.
        self.is_sound = False
        return self.fenced() if self.is_fenced else reason

    def abort(self) -> None:
        """Raises nothing: what is not committed takes no effect, whether the brokers hear of it or not."""
        if not self.is_sound:
            return
        error = self._try(self._library.abort_transaction, self._connection.timeout_s)
        if error is None:
            return
        self.is_sound = False
        if not self.is_fenced:
            logger.warning(
                "%s; readers of committed messages wait for the end of the transaction: until a producer of the same "
                "transactional id opens, or for at most %g s",
                self.explain(error, "abort a transaction"),
                self._timeout_s,
            )

    def close(self) -> None:
        """At once, or when a call that hangs is back. The library's own `close` would wait for brokers that are silent,
        for ever."""
        self.is_sound = False
        self._caller.end(partial(_let_go, self._library))
        del self._library

    def explain(self, error: KafkaError, doing: str) -> QueueError:
        """As Connection does. What else undoes a transaction leaves it to be tried again; so does a group that divides
        its partitions anew, until the member has heard in which generation it is."""
        if self.is_fenced:
            return self.fenced()
        code = error.code()
        if code in REBALANCING or (error.txn_requires_abort() and code not in MEANING and code not in PASSING):
            return TransactionAborted(
                f"cannot {doing} as {self._id}: {error.str()}; nothing of it took effect, try again"
            )
        return self._connection.explain(error, f"{doing} as {self._id}")

    def _try(self, call: Callable[[float], object], patience_s: float) -> KafkaError | None:
        """Call with the seconds that are left, again while the library says that the error will pass."""
        deadline = self._clock.monotonic() + patience_s
        while True:
            try:
                call(max(0.0, deadline - self._clock.monotonic()))
                return None
            except KafkaException as failure:
                error: KafkaError = failure.args[0]
            if error.fatal():
                self.is_sound = False
                self.is_fenced = self.is_fenced or error.code() in FENCED
            if not error.retriable() or self._clock.monotonic() >= deadline:
                return error
            self._clock.sleep(_LOOK_AGAIN_S)

    def _raise(self, error: KafkaError | None, doing: str) -> None:
        if error is not None:
            raise self.explain(error, doing)

    def _wait_for_room(self, deadline: float) -> None:
        if self._clock.monotonic() >= deadline:
            raise ProviderUnavailable(
                f"{len(self._library)} messages wait for Kafka at {self._connection.bootstrap_servers} and there is no "
                f"room for more after {self._options.max_block_ms} ms; check that the brokers run, then try again"
            )
        self._library.poll(_POLL_S)

    def fenced(self) -> ProducerFenced:
        return ProducerFenced(
            f"a newer producer has the transactional id {self._id}, or a transaction of this one was open for longer "
            f"than {self._timeout_s:g} s and the brokers have aborted it; stop this one, and read again from what "
            "the group has committed"
        )


def _let_go(library: Producer) -> None:
    library.purge()
    # It tells again what ended it.
    with suppress(KafkaException):
        library.poll(0)


def transactional_settings(transactional_id: str, options: ProducerOptions, kafka: KafkaOptions) -> dict[str, Setting]:
    """Only time ends the retries: an aborted transaction costs more than they do."""
    settings = {"retry.backoff.ms": _FIRST_RETRY_MS, **kafka.properties, **producer_settings(options, kafka)}
    chosen_ms = settings.get("transaction.timeout.ms")
    # The library takes none that is shorter than a request may be.
    timeout_ms = max(TIMEOUT_MS, kafka.request_timeout_ms) if chosen_ms is None else int(chosen_ms)
    return settings | {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": timeout_ms,
        "acks": "all",
        "enable.idempotence": True,
        "retries": _MOST_RETRIES,
        "max.in.flight.requests.per.connection": 5,
        "delivery.timeout.ms": min(int(settings["delivery.timeout.ms"]), timeout_ms),
        "delivery.report.only.error": True,
    }
