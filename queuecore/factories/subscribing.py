"""What a consumer of a divided channel reads when it is told nothing: a provider knows only topics, no queues."""

from collections.abc import Iterable

from queuecore.providers.base import AssignmentListener, Epochs, QueueConsumer
from queuecore.topics import TopicPartitionInfo


def subscribing_to(consumer: QueueConsumer, default: tuple[TopicPartitionInfo, ...]) -> QueueConsumer:
    """This consumer, with `subscribe()` meaning these. It is no wrapper: a transaction takes only its provider's own
    consumers."""
    subscribe = consumer.subscribe

    def subscribe_by_default(
        partitions: Iterable[TopicPartitionInfo] | None = None,
        listener: AssignmentListener | None = None,
        epochs: Epochs | None = None,
    ) -> None:
        subscribe(default if partitions is None else partitions, listener, epochs)

    consumer.subscribe = subscribe_by_default  # type: ignore[method-assign]
    return consumer
