"""Queues for a program of your own."""

import logging
import os
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from queuecore.delivery import Delivery
from queuecore.errors import ConfigurationError, QueueError
from queuecore.hashing import DEFAULT_HASH, Entity
from queuecore.messages import NO_HEADERS, Headers, RecordMetadata
from queuecore.processing import RetryFailed
from queuecore.providers.base import DAY_MS, FOR_EVER, Cleanup, Provider, TopicSpec
from queuecore.queues.composing import Composer, Payload
from queuecore.queues.context import MessageHandler
from queuecore.queues.directory import QueueDirectory
from queuecore.queues.letters import DeadLetter, read_letters
from queuecore.queues.subscription import Subscription, SubscriptionPlan
from queuecore.routing import RoutedQueue
from queuecore.sending import send

logger = logging.getLogger(__name__)

DEFAULT_RETRY = RetryFailed()


class Queues:
    """Create queues, publish to them, subscribe to them. Safe from any thread; belongs to the process that made it.

    provider     where the messages live; closed with the queues
    producer_id  who sends, for the header `producerId`; by default host and process
    hash_name    which partition an entity's messages go to; all programs that publish to a queue must agree on it
    debug        whether messages also say from which thread and which line they were sent
    hand_over_s  how long a partition that goes to another subscriber waits for the message at hand, which is else
                 handled again there; to be less than the provider's `session_timeout_ms`

    Subscriptions that still run when the queues are closed are stopped.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        producer_id: str | None = None,
        hash_name: str = DEFAULT_HASH,
        debug: bool = False,
        hand_over_s: float = 5.0,
    ) -> None:
        self._provider = provider
        self._directory = QueueDirectory(provider.admin(), hash_name)
        self._composer = Composer(self._directory, producer_id or f"{socket.gethostname()}-{os.getpid()}", debug=debug)
        self._hand_over_s = hand_over_s
        self._producer = provider.producer()
        self._subscriptions: list[Subscription] = []
        self._is_closed = False

    @property
    def provider(self) -> Provider:
        """Where the messages live, for what is not offered here."""
        return self._provider

    def create(
        self,
        queue: str,
        partitions: int = 1,
        *,
        retention_ms: int = 7 * DAY_MS,
        retention_bytes: int = FOR_EVER,
        cleanup: Cleanup = "delete",
        use_internal_partition: bool = False,
    ) -> None:
        """Create a queue, unless it is there already: every program that uses it may say so at its start.

        Each partition is a topic of its own, `<queue>.<n>`; with `use_internal_partition`, all are inside one topic
        `<queue>`. Messages that are given up go to `<queue>.dlq`. A retention of -1 is for ever.

        InvalidName where no provider could hold the name. ConfigurationError where the queue is there with another
        number of partitions: that never changes, as it decides where an entity's messages go.
        """
        routed = RoutedQueue(queue, partitions, use_internal_partition=use_internal_partition)
        spec = TopicSpec(queue, 1, retention_ms, retention_bytes, cleanup=cleanup)
        self._directory.create(queue, routed, spec)

    def names(self) -> list[str]:
        """All queues of this provider."""
        return self._directory.names()

    def publish(
        self, queue: str, entity: Entity | None, payload: Payload, headers: Headers = NO_HEADERS
    ) -> "Future[RecordMetadata]":
        """Send a message; the future ends with where it is stored, or with the QueueError that says why it is not.

        All messages of one entity (a UUID, text or bytes) go to the same partition and keep their order; those of None
        are spread evenly. The payload is bytes or a Protocol Buffers message. UnknownQueue and InvalidMessage are
        raised at once; so is ProviderUnavailable when the provider's buffer stays full.
        """
        info, message = self._composer.compose(queue, entity, payload, headers)
        stored = send(self._producer, info, message)
        stored.add_done_callback(_log_refusal)
        return stored

    def flush(self, timeout_s: float = 60.0) -> bool:
        """True when all that was published is stored or refused, within the time."""
        return self._producer.flush(timeout_s)

    def subscribe(
        self,
        queue: str,
        handler: MessageHandler,
        *,
        group: str,
        delivery: Delivery | str = Delivery.AT_LEAST_ONCE,
        retry: RetryFailed = DEFAULT_RETRY,
    ) -> Subscription:
        """Have a handler run for every message of a queue, on a thread of its own, from where the group is.

        Subscriptions of the same group share the queue; each group gets all messages. A handler that raises has failed:
        the message is tried again as `retry` says, and meanwhile holds up what follows it here. Then it becomes a dead
        letter in `<queue>.dlq`, with the reason, and the next one's turn comes. With `at_most_once` nothing is tried
        again.

        UnknownQueue where there is none of that name; NotSupported for `exactly_once` on a provider without
        transactions.
        """
        if self._is_closed:
            raise QueueError("these queues are closed; open them again")
        if not group:
            raise ConfigurationError("a subscription needs a group; those of the same group share the messages")
        plan = SubscriptionPlan(
            queue,
            group,
            handler,
            Delivery.of(delivery, self._provider.capabilities),
            retry,
            self._directory.partitions(queue),
            self._hand_over_s,
        )
        subscription = Subscription(plan, self._provider, self._producer, self._composer)
        self._subscriptions = [one for one in self._subscriptions if one.is_running or one.has_unseen_error]
        self._subscriptions.append(subscription)
        return subscription

    def dead_letters(self, queue: str) -> Iterator[DeadLetter]:
        """What was given up of a queue's messages, partition by partition, the oldest first. UnknownQueue where there
        is none of that name."""
        return read_letters(self._provider, self._directory.partitions(queue))

    def close(self) -> None:
        """Stop the subscriptions, store what was published, and close the provider. Raises what ended a subscription,
        unless that has been raised before."""
        if self._is_closed:
            return
        self._is_closed = True
        errors = [error for one in self._subscriptions if (error := _stop(one)) is not None]
        self._producer.stop()
        self._provider.close()
        if errors:
            raise errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception:
            # In the log already; an exception that is under way is the one to be seen.
            if kind is None:
                raise


def _stop(subscription: Subscription) -> Exception | None:
    if not (subscription.is_running or subscription.has_unseen_error):
        return None
    try:
        subscription.stop()
    except Exception as error:
        return error
    return None


def _log_refusal(stored: "Future[RecordMetadata]") -> None:
    """Nobody has to look at the future; what is lost is said all the same."""
    if (error := stored.exception()) is not None:
        logger.error("a published message is not stored: %s", error)
