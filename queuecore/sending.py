"""Sending for callers that want to wait for the answer."""

from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import NamedTuple

from queuecore.errors import ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import QueueProducer
from queuecore.topics import TopicPartitionInfo


class Addressed(NamedTuple):
    """A message and where it goes."""

    info: TopicPartitionInfo
    message: QueueMessage


def send(producer: QueueProducer, info: TopicPartitionInfo, message: QueueMessage) -> "Future[RecordMetadata]":
    """Start sending; the future ends with the metadata or a QueueError."""
    stored: Future[RecordMetadata] = Future()
    # What is sent cannot be taken back: `cancel` does nothing.
    stored.set_running_or_notify_cancel()

    def settle(metadata: RecordMetadata | None, error: QueueError | None) -> None:
        if metadata is not None:
            stored.set_result(metadata)
        else:
            stored.set_exception(error or QueueError("the provider gave neither metadata nor an error"))

    producer.send(info, message, settle)
    return stored


def wait_for(stored: "Future[RecordMetadata]", info: TopicPartitionInfo, timeout_s: float) -> RecordMetadata:
    """Where it was stored. ProviderUnavailable when no answer came in time; the message may then still be stored."""
    try:
        return stored.result(timeout_s)
    except FutureTimeout:
        raise ProviderUnavailable(
            f"{info} did not acknowledge the message within {timeout_s:g} s; look at the provider, then send again"
        ) from None


def send_and_wait(
    producer: QueueProducer, info: TopicPartitionInfo, message: QueueMessage, timeout_s: float
) -> RecordMetadata:
    """Send one message and return where it was stored, as `wait_for`."""
    return wait_for(send(producer, info, message), info, timeout_s)
