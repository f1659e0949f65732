"""Everything queuecore raises.

QueueError
├── ConfigurationError      a setting is wrong; the process should not start
├── NotAuthorised           the provider does not let this client do that
├── InvalidName             a queue or topic name no provider could hold
├── UnknownTopic            the topic does not exist at the provider
├── UnknownHandler          a queue names a handler nobody registered
├── DeadLetterLimitExceeded more of a partition's messages were given up than its queue allows
├── GivenUp                 the handler says that trying this message again does not help
├── HandlersStuck           handlers that overran their time still run, and others cannot go on beside them
├── UnknownQueue            no queue of that name is known where messages are routed
├── UnknownTenant           nothing is known of the tenant whose messages are to be routed
├── UnknownService          no service instance of that id, or of that type, is in the cluster
├── InvalidMessage          the message cannot be stored as it is
│   └── UndecodableMessage  what is stored is not what its reader expects; reading it again does not help
├── PayloadTooLarge         one message is larger than the topic takes
├── PayloadMissing          what was stored apart from its dead letter is not there any more
├── PartitionFull           a bounded partition holds all it may (retryable)
├── QueueOverloaded         as many messages wait as may, or a quota is used up (retryable)
├── NotOwner                the partition to commit belongs to another consumer of the group
│   ├── Displaced           another consumer has joined with this one's member id and has its place
│   └── StaleEpoch          the group has committed the partition under a newer assignment than this one's
├── GroupActive             the group's offsets cannot be changed while its members read
├── LeaseLost               this instance is no longer, or not yet again, a member of its cluster
│   └── Superseded          another instance has joined with its id
├── NotCoordinator          another instance coordinates the cluster now
├── UnknownRebalance        there is no such rebalance
├── StoreUnavailable        the cluster's store cannot be reached (retryable)
├── TooManyRequests         as many requests wait for their answers as may (retryable)
├── RequestTimeout          no answer came in time; whether the request was worked on is not known
├── RequestFailed           the responder answered that it failed, and why
├── RequestCancelled        who sent the request waits for it no longer
├── RequestsStopped         the template that sent the request has been stopped
├── ProducerFenced          a newer producer has taken over this transactional id
├── TransactionAborted      the transaction was aborted, so nothing of it took effect (retryable)
├── StateUndone             what handlers remember has to be read anew (retryable)
├── OutOfSequence           a producer's batch does not follow its last one
├── OffsetOutOfRange        the offset asked for is no longer (or not yet) stored
├── CorruptLog              stored bytes do not match their checksum
├── ForeignFile             a file or folder was not written by this version of the log
├── NotSupported            the provider cannot do this
└── ProviderUnavailable     the provider cannot be reached or cannot write (retryable)

`code` is stable and meant for machines; the message is for people and names cause and remedy.
"""

from typing import Any


class QueueError(Exception):
    """Root of the tree. Keyword arguments are kept in `fields` and survive pickling."""

    code = "queue_error"
    retryable = False

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.fields)


def _rebuild(kind: type[QueueError], message: str, fields: dict[str, Any]) -> QueueError:
    return kind(message, **fields)


class ConfigurationError(QueueError):
    """A setting is wrong; the process should not start."""

    code = "configuration_error"


class NotAuthorised(QueueError):
    """The provider does not let this client do that."""

    code = "not_authorised"


class InvalidName(QueueError):
    """A queue or topic name no provider could hold."""

    code = "invalid_name"


class UnknownTopic(QueueError):
    """The topic does not exist at the provider."""

    code = "unknown_topic"


class UnknownHandler(QueueError):
    """A queue names a handler nobody registered."""

    code = "unknown_handler"


class UnknownQueue(QueueError):
    """No queue of that name is known where messages are routed."""

    code = "unknown_queue"


class UnknownTenant(QueueError):
    """Nothing is known of the tenant whose messages are to be routed."""

    code = "unknown_tenant"


class UnknownService(QueueError):
    """No service instance of that id, or of that type, is in the cluster."""

    code = "unknown_service"


class InvalidMessage(QueueError):
    """The message cannot be stored as it is."""

    code = "invalid_message"


class UndecodableMessage(InvalidMessage):
    """What is stored is not what its reader expects; reading it again does not help."""

    code = "undecodable_message"


class DeadLetterLimitExceeded(QueueError):
    """More messages of a partition were given up than its queue allows, and the queue says to halt."""

    code = "dead_letter_limit_exceeded"


class GivenUp(QueueError):
    """The handler says that trying this message again does not help: it becomes a dead letter at once. For handlers to
    raise, or to derive from."""

    code = "given_up"


class HandlersStuck(QueueError):
    """So many handlers have overrun their time that no thread is left to run others."""

    code = "handlers_stuck"


class PayloadTooLarge(QueueError):
    """One message is larger than the topic takes."""

    code = "payload_too_large"


class PayloadMissing(QueueError):
    """What was stored apart from its dead letter, being too large for it, is not there any more."""

    code = "payload_missing"


class PartitionFull(QueueError):
    """A bounded partition holds all it may."""

    code = "partition_full"
    retryable = True


class QueueOverloaded(QueueError):
    """As many messages wait in the queue as its configuration lets wait, or a quota is used up; nothing of this one was
    stored."""

    code = "queue_overloaded"
    retryable = True

    @property
    def retry_after_s(self) -> float:
        """So many seconds later there is room, if nobody else takes it."""
        return float(self.fields.get("retry_after_s", 1.0))


class NotOwner(QueueError):
    """The partition to commit belongs to another consumer of the group."""

    code = "not_owner"


class Displaced(NotOwner):
    """Another consumer has joined with this one's member id and has its place in the group."""

    code = "displaced"


class StaleEpoch(NotOwner):
    """The group has committed the partition under a newer assignment than this consumer's. The fields say where:
    `group`, `place`, its `epoch`, and the `newest`."""

    code = "stale_epoch"


class GroupActive(QueueError):
    """The group's offsets cannot be changed while its members read."""

    code = "group_active"


class LeaseLost(QueueError):
    """This instance is no longer, or not yet again, a member of its cluster."""

    code = "lease_lost"


class Superseded(LeaseLost):
    """Another instance has joined with this one's id."""

    code = "superseded"


class NotCoordinator(QueueError):
    """Another instance coordinates the cluster now."""

    code = "not_coordinator"


class UnknownRebalance(QueueError):
    """There is no such rebalance."""

    code = "unknown_rebalance"


class StoreUnavailable(QueueError):
    """The store of the cluster cannot be reached."""

    code = "store_unavailable"
    retryable = True


class TooManyRequests(QueueError):
    """As many requests wait for their answers as may."""

    code = "too_many_requests"
    retryable = True


class RequestTimeout(QueueError):
    """No answer came in time. Whether the request was worked on is not known: to ask again is its sender's choice."""

    code = "request_timeout"


class RequestFailed(QueueError):
    """The responder answered that it failed, and why. Handlers raise it, too, with an `error_code` of their own."""

    code = "request_failed"

    @property
    def error_code(self) -> str:
        """The responder's: stable, and meant for machines."""
        return str(self.fields.get("error_code", ""))


class RequestCancelled(QueueError):
    """Who sent the request waits for it no longer."""

    code = "request_cancelled"


class RequestsStopped(QueueError):
    """The template that sent the request has been stopped, or was never started."""

    code = "requests_stopped"


class ProducerFenced(QueueError):
    """A newer producer has taken over this transactional id."""

    code = "producer_fenced"


class TransactionAborted(QueueError):
    """The transaction was aborted, so nothing of it took effect."""

    code = "transaction_aborted"
    retryable = True


class StateUndone(QueueError):
    """What handlers remember was not stored, and has to be read anew."""

    code = "state_undone"
    retryable = True


class OutOfSequence(QueueError):
    """A producer's batch does not follow its last one."""

    code = "out_of_sequence"


class OffsetOutOfRange(QueueError):
    """The offset asked for is no longer (or not yet) stored."""

    code = "offset_out_of_range"


class CorruptLog(QueueError):
    """Stored bytes do not match their checksum."""

    code = "corrupt_log"


class ForeignFile(QueueError):
    """A file or folder was not written by this version of the log."""

    code = "foreign_file"


class NotSupported(QueueError):
    """The provider cannot do this."""

    code = "not_supported"


class ProviderUnavailable(QueueError):
    """The provider cannot be reached or cannot write."""

    code = "provider_unavailable"
    retryable = True
