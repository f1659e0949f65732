"""Queues by the name of their provider."""

from pathlib import Path
from typing import Final, Literal

from queuecore.hashing import DEFAULT_HASH
from queuecore.providers.opening import ProviderName, open_provider
from queuecore.providers.options import (
    DEFAULT_PRODUCING,
    ConsumerOptions,
    KafkaOptions,
    ProducerOptions,
)
from queuecore.queues.queues import Queues

# A handler gets one message after the other: more at once would only wait, and keep the garbage collector busy.
SUBSCRIBING: Final = ConsumerOptions(max_poll_records=1_000)


def open_queues(
    provider: ProviderName,
    *,
    folder: Path | str | None = None,
    servers: str | None = None,
    kafka: KafkaOptions | None = None,
    producer_id: str | None = None,
    hash_name: str = DEFAULT_HASH,
    debug: bool = False,
    producing: ProducerOptions = DEFAULT_PRODUCING,
    consuming: ConsumerOptions = SUBSCRIBING,
    capacity: int | None = None,
    when_full: Literal["block", "reject"] | None = None,
) -> Queues:
    """Queues on a provider of this name, which is closed with them.

        with open_queues("log", folder="var/queues") as queues:
            queues.create("orders", partitions=10)
            queues.publish("orders", "customer-123", b"2 apples").result()

    `folder`, `servers`, `kafka`, `capacity` and `when_full` are those of `open_provider`, the rest is
    explained at `Queues`. Without `consuming`, at most 1,000 messages are read at once.
    """
    opened = open_provider(
        provider,
        folder=folder,
        servers=servers,
        kafka=kafka,
        producing=producing,
        consuming=consuming,
        capacity=capacity,
        when_full=when_full,
    )
    hand_over_s = consuming.session_timeout_ms / 2_000
    return Queues(
        opened,
        producer_id=producer_id,
        hash_name=hash_name,
        debug=debug,
        hand_over_s=hand_over_s,
        auto_offset_reset=consuming.auto_offset_reset,
    )
